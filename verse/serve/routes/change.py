"""Changing one's mind: undo, forget, rename, merge."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from verse.serve import schemas
from verse.serve.labels import clean_label
from verse.serve.problems import problems
from verse.serve.routes.look import Seq
from verse.serve.service import Service, result

ClassName = Annotated[str, Path(min_length=1, max_length=1000, examples=["mug"])]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1")
    session = service.session

    @routes.delete(
        "/samples/{seq}",
        response_model=schemas.Undone,
        responses=problems(409, 422, 507),
        summary="Undo one of the latest samples",
    )
    async def undo_one(seq: Seq) -> dict[str, Any]:
        """Weights and memory are then the same as if the sample had never been taught."""
        ((_, label),) = await result(session.undo([seq]))
        return {"seq": seq, "label": label, "samples": session.view.samples}

    @routes.post(
        "/undo",
        response_model=schemas.UndoneSamples,
        responses=problems(409, 422, 507),
        summary="Undo several of the latest samples",
    )
    async def undo(body: schemas.Undo) -> dict[str, Any]:
        """Undo all of them or none. The result is as if they had never been taught."""
        if body.seqs is not None:
            undone = await result(session.undo(body.seqs))
        else:
            undone = await result(session.undo_last(body.count or 1))
        return {
            "undone": [{"seq": seq, "label": label} for seq, label in undone],
            "samples": session.view.samples,
        }

    @routes.delete(
        "/classes/{label}",
        response_model=schemas.Forgotten,
        responses=problems(404, 409, 422, 507),
        summary="Forget a class permanently",
    )
    async def forget(label: ClassName, exact: bool = False) -> dict[str, Any]:
        """Remove its samples from memory, journal, thumbnails and checkpoints, and its output.

        Weights shared with other classes keep what they learned from it. With `exact`, the
        classifier becomes the one that never saw the class. This replays all later samples, and
        needs a directory that keeps features.
        """
        return {"label": label, "removed": await result(session.forget(label, exact=exact))}

    @routes.post(
        "/classes/{label}/rename",
        response_model=schemas.Renamed,
        responses=problems(404, 409, 422, 507),
        summary="Rename a class",
    )
    async def rename(label: ClassName, body: schemas.Rename) -> dict[str, Any]:
        to = clean_label(body.to)
        await result(session.rename(label, to))
        return {"label": to}

    @routes.post(
        "/classes/{label}/merge",
        response_model=schemas.Merged,
        responses=problems(404, 409, 422, 507),
        summary="Merge two classes",
    )
    async def merge(label: ClassName, body: schemas.Merge) -> dict[str, Any]:
        """The stored samples of this class become samples of the other one."""
        return {"into": body.into, "moved": await result(session.merge(label, body.into))}

    return routes
