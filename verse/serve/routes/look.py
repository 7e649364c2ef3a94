"""Looking: classes, thumbnails, status, events."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Response
from fastapi.responses import StreamingResponse

from verse import learners
from verse.serve import schemas
from verse.serve.events import EventStream, as_text
from verse.serve.problems import problems
from verse.serve.service import Service, result

LARGEST_SEQ = 2**53 - 1
Seq = Annotated[int, Path(ge=1, le=LARGEST_SEQ, examples=[17])]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1")
    session = service.session

    @routes.get("/classes", response_model=list[schemas.ClassSummary], responses=problems())
    async def classes() -> list[dict[str, Any]]:
        """Every class in order of arrival."""
        return [
            {
                "label": c.label,
                "taught": c.taught,
                "remembered": c.remembered,
                "thumbnails": list(c.thumbnails),
            }
            for c in session.view.classes
        ]

    @routes.get(
        "/samples/{seq}/thumbnail",
        response_class=Response,
        responses={
            200: {"content": {"image/jpeg": {}}, "description": "A small JPEG."},
            **problems(404, 422),
        },
    )
    async def thumbnail(seq: Seq) -> Response:
        """A small picture of a recent sample."""
        jpeg = session.thumbnail(seq)
        if jpeg is None:
            raise HTTPException(404, f"sample {seq} has no thumbnail")
        return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": "private"})

    @routes.get("/report", response_model=schemas.ReportDocument, responses=problems(422))
    async def report() -> dict[str, Any]:
        """How well it was taught: advice per class, confused classes, suspicious samples."""
        return await result(session.report())

    @routes.get("/learner", response_model=schemas.LearnerSettings, responses=problems())
    async def get_learner() -> schemas.LearnerSettings:
        """The learner, its settings, and the meaning of each setting."""
        classifier = session.classifier
        return schemas.LearnerSettings(
            name=classifier.learner_name,
            settings=classifier.learner.settings(),
            schema=learners.schema(classifier.learner_name),
        )

    @routes.get("/status", response_model=schemas.Status, responses=problems())
    async def get_status() -> schemas.Status:
        """The current counts, queue, memory, rates and accuracy."""
        return service.status()

    @routes.get(
        "/events",
        response_class=StreamingResponse,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "An endless stream."},
            **problems(),
        },
    )
    async def listen() -> StreamingResponse:
        """Server-sent events: "learned", "undone", "class" at each change, "status" every second.

        "learned" contains the response of /v1/learn, "undone" {seq, label}, "class"
        {change, label} with change "forgotten", "renamed" (to) or "merged" (into), and "status"
        the response of /v1/status.
        """
        return EventStream(service.events, lambda: as_text("status", service.status().model_dump()))

    return routes
