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
        summary="Take one of the latest samples back",
    )
    async def undo_one(seq: Seq) -> dict[str, Any]:
        """As if it had never come: weights and memory are those without it."""
        ((_, label),) = await result(session.undo([seq]))
        return {"seq": seq, "label": label, "samples": session.view.samples}

    @routes.post(
        "/undo",
        response_model=schemas.UndoneSamples,
        responses=problems(409, 422, 507),
        summary="Take several of the latest samples back",
    )
    async def undo(body: schemas.Undo) -> dict[str, Any]:
        """All of them or none: as if they had never come."""
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
        summary="Forget a class for good",
    )
    async def forget(label: ClassName, exact: bool = False) -> dict[str, Any]:
        """Its samples leave memory, journal, thumbnails and checkpoints; its output is retired.

        Weights that it shares with other classes are not unlearned, unless it is forgotten
        exactly: then the classifier becomes the one that never saw it. That replays what came
        after it, and needs a directory that keeps features.
        """
        return {"label": label, "removed": await result(session.forget(label, exact=exact))}

    @routes.post(
        "/classes/{label}/rename",
        response_model=schemas.Renamed,
        responses=problems(404, 409, 422, 507),
        summary="Give a class another label",
    )
    async def rename(label: ClassName, body: schemas.Rename) -> dict[str, Any]:
        to = clean_label(body.to)
        await result(session.rename(label, to))
        return {"label": to}

    @routes.post(
        "/classes/{label}/merge",
        response_model=schemas.Merged,
        responses=problems(404, 409, 422, 507),
        summary="Make two classes one",
    )
    async def merge(label: ClassName, body: schemas.Merge) -> dict[str, Any]:
        """What is remembered of this class becomes the other's."""
        return {"into": body.into, "moved": await result(session.merge(label, body.into))}

    return routes
