"""For operating it: health, metrics, a backup."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.background import BackgroundTask

from verse.durable import backup
from verse.serve import schemas
from verse.serve.problems import problems
from verse.serve.service import Service


def router(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.get("/healthz", response_model=schemas.Health, responses=problems())
    async def alive() -> dict[str, str]:
        """Whether the process is running."""
        return {"status": "ok"}

    @routes.get("/readyz", response_model=schemas.Health, responses=problems())
    async def ready() -> dict[str, str]:
        """Whether the service can learn and predict."""
        if not service.session.ready:
            raise HTTPException(503, "not learning")
        return {"status": "ready"}

    @routes.get("/metrics", response_class=PlainTextResponse, responses=problems())
    async def prometheus() -> Response:
        """Metrics for Prometheus."""
        text = service.metrics.text()
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    one_at_a_time = asyncio.Lock()

    @routes.post(
        "/v1/backup",
        response_class=FileResponse,
        responses={
            200: {"content": {"application/zip": {}}, "description": "For verse restore."},
            **problems(507),
        },
        summary="Download the classifier as one file",
    )
    async def get_backup() -> FileResponse:
        """The file that `verse backup` makes. Learning and prediction continue meanwhile."""
        place = Path(tempfile.mkdtemp(prefix="verse-backup-"))
        try:
            async with one_at_a_time:
                await asyncio.to_thread(
                    backup, service.session.classifier.path, place / "verse.zip"
                )
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return FileResponse(
            place / "verse.zip",
            media_type="application/zip",
            filename="verse-backup.zip",
            background=BackgroundTask(shutil.rmtree, place, ignore_errors=True),
        )

    return routes
