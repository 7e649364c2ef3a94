"""The HTTP interface: routes, their documentation, and what each error becomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, File, Form, Header, HTTPException, Request, Response, UploadFile
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException

from verse import __version__, learners
from verse.durable import JournalFull, Taken
from verse.serve import schemas
from verse.serve.events import LISTENERS, Events
from verse.serve.metrics import Measured, Metrics
from verse.serve.refusals import Busy, Closing, Unknown
from verse.serve.security import Access, Guard, Limits, clean_label
from verse.serve.session import Session
from verse.types import BadSetting, BadState, VerseError

PAGE = Path(__file__).parent / "page"
STATUS_SECONDS = 1.0  # how often listeners hear the status
LARGEST_SEQ = 2**53 - 1
T = TypeVar("T")

Seq = Annotated[int, InPath(ge=1, le=LARGEST_SEQ, examples=[17])]
ClassName = Annotated[str, InPath(min_length=1, max_length=100, examples=["mug"])]
Upload = Annotated[UploadFile, File(description="JPEG, PNG, WebP, BMP, GIF, TIFF …")]


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of what can go wrong."""
    texts = {
        400: "Malformed request.",
        401: "A token is needed.",
        403: "From a page of another site.",
        404: "There is no such thing.",
        408: "The body did not arrive in time.",
        409: "It does not fit the classes there are.",
        413: "Too large.",
        421: "Called by an unknown name.",
        422: "Not an image, or a label that cannot be.",
        429: "Too many: come again after Retry-After seconds. Nothing was done.",
        503: "Shutting down or failing. Nothing was done.",
        507: "The disk is full. Nothing was done, everything before is safe.",
    }
    usual = (400, 401, 403, 408, 413, 421, 429, 503)
    return {
        code: {"model": schemas.Problem, "description": texts[code]}
        for code in sorted({*usual, *codes})
    }


def code_of(error: VerseError) -> int:
    """The HTTP status of an error.

    >>> from verse.types import BadImage
    >>> code_of(BadImage("no")), code_of(Busy("learn", 2))
    (422, 429)
    """
    table: tuple[tuple[type[VerseError], int], ...] = (
        (Busy, 429),
        (Closing, 503),
        (BadState, 503),
        (JournalFull, 507),
        (Unknown, 404),
        (Taken, 409),
        (BadSetting, 409),  # too late to undo; a class into itself
    )
    return next((code for kind, code in table if isinstance(error, kind)), 422)


def create_app(
    session: Session, *, access: Access | None = None, limits: Limits | None = None
) -> FastAPI:
    """The application around a session, which it starts and closes."""
    access, limits = access or Access(), limits or Limits()
    events, metrics = Events(), Metrics(session)
    session.listener = events.send

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        events.open()
        session.start()
        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking
            events.close()
            await asyncio.to_thread(session.close)

    async def tick() -> None:
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            if events.listeners:
                events.send("status", status().model_dump())

    app = FastAPI(
        title="verse",
        version=__version__,
        summary="Teach a vision model new classes from a live stream.",
        docs_url=None,  # they fetch scripts from elsewhere; /openapi.json is complete
        redoc_url=None,
        lifespan=life,
    )
    app.state.session, app.state.events = session, events

    @app.exception_handler(VerseError)
    async def refuse(_: Request, error: VerseError) -> JSONResponse:
        headers = {"Retry-After": str(error.seconds)} if isinstance(error, Busy) else None
        return JSONResponse({"detail": str(error)}, code_of(error), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        where = "; ".join(
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()[:5]
        )
        return JSONResponse({"detail": where}, 422)

    @app.exception_handler(StarletteHTTPException)
    async def told(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return JSONResponse({"detail": str(error.detail)}, error.status_code, error.headers)

    async def finished(future: Future[T]) -> T:
        return await asyncio.wrap_future(future)

    # ---- learning and asking ------------------------------------------------------------------

    @app.post(
        "/v1/learn",
        response_model=schemas.Learned,
        responses=problems(422, 507),
        summary="Teach one image",
    )
    async def learn(
        image: Upload,
        label: Annotated[str, Form(min_length=1, max_length=400, examples=["mug"])],
        idempotency_key: Annotated[
            str | None,
            Header(
                min_length=1,
                max_length=200,
                description="The same key is learned once, however often it is sent.",
                examples=["0b3c9a6e-9a3f-4b61-8a4e-3f2f6d1c7f10"],
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Learn an image. When this answers 200, the sample is learned and safe on disk."""
        clean = clean_label(label)
        learned = await finished(session.learn(await image.read(), clean, idempotency_key))
        return learned.document()

    @app.post(
        "/v1/predict",
        response_model=schemas.Answer,
        responses=problems(422),
        summary="Ask what an image shows",
    )
    async def predict(image: Upload) -> dict[str, Any]:
        """Answer from the latest published state; never waits for learning."""
        answer = await finished(session.predict(await image.read()))
        shares = sorted(answer.probabilities.items(), key=lambda item: -item[1])
        return {
            "label": answer.label,
            "confidence": answer.confidence,
            "probabilities": [{"label": label, "p": p} for label, p in shares],
            "step": answer.step,
        }

    # ---- looking ------------------------------------------------------------------------------

    @app.get("/v1/classes", response_model=list[schemas.ClassSummary], responses=problems())
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

    @app.get(
        "/v1/samples/{seq}/thumbnail",
        response_class=Response,
        responses={
            200: {"content": {"image/jpeg": {}}, "description": "A small JPEG."},
            **problems(404, 422),
        },
    )
    async def thumbnail(seq: Seq) -> Response:
        """A small picture of a sample taught lately."""
        jpeg = session.thumbnail(seq)
        if jpeg is None:
            raise HTTPException(404, f"sample {seq} has no thumbnail")
        return Response(jpeg, media_type="image/jpeg", headers={"Cache-Control": "private"})

    def status() -> schemas.Status:
        view = session.view
        return schemas.Status(
            samples=view.samples,
            classes=len(view.classes),
            queue=schemas.Queue(length=session.waiting, limit=session.limit),
            memory=schemas.MemoryUse(
                samples=view.memory_samples, limit=view.memory_limit, bytes=view.memory_bytes
            ),
            rates=schemas.Rates(
                learn_per_s=session.learning.per_second(),
                predict_per_s=session.predicting.per_second(),
            ),
            prequential=schemas.History(accuracy=view.accuracy, window=list(view.points)),
            step=view.samples,
            learner=session.classifier.learner_name,
            backbone=session.classifier.backbone.name,
            version=__version__,
            auth=schemas.Needs(learn=access.token is not None, predict=access.private),
        )

    @app.get("/v1/learner", response_model=schemas.LearnerSettings, responses=problems())
    async def get_learner() -> schemas.LearnerSettings:
        """The method that learns, its settings, and what each setting means."""
        classifier = session.classifier
        return schemas.LearnerSettings(
            name=classifier.learner_name,
            settings=classifier.learner.settings(),
            schema=learners.schema(classifier.learner_name),
        )

    @app.get("/v1/status", response_model=schemas.Status, responses=problems())
    async def get_status() -> schemas.Status:
        """Counts, queue, memory, rates and accuracy at this moment."""
        return status()

    @app.get(
        "/v1/events",
        response_class=StreamingResponse,
        responses={
            200: {"content": {"text/event-stream": {}}, "description": "An endless stream."},
            **problems(),
        },
    )
    async def listen() -> StreamingResponse:
        """Server-sent events: "learned", "undone", "class" at each change, "status" every second.

        "learned" carries what /v1/learn answers, "undone" {seq, label}, "class" {change, label}
        with change "forgotten", "renamed" (to) or "merged" (into), "status" what /v1/status says.
        """
        if events.listeners >= LISTENERS:
            raise HTTPException(429, "too many listeners", {"Retry-After": "10"})
        first = f"event: status\ndata: {json.dumps(status().model_dump())}\n\n"
        return StreamingResponse(events.stream(first), media_type="text/event-stream")

    # ---- changing one's mind ------------------------------------------------------------------

    @app.delete(
        "/v1/samples/{seq}",
        response_model=schemas.Undone,
        responses=problems(409, 422, 507),
        summary="Take one of the latest samples back",
    )
    async def undo(seq: Seq) -> dict[str, Any]:
        """As if it had never come: weights and memory are those without it."""
        label = await finished(session.undo(seq))
        return {"seq": seq, "label": label, "samples": session.view.samples}

    @app.delete(
        "/v1/classes/{label}",
        response_model=schemas.Forgotten,
        responses=problems(404, 422, 507),
        summary="Forget a class for good",
    )
    async def forget(label: ClassName) -> dict[str, Any]:
        """Its samples leave memory, journal, thumbnails and checkpoints; its output is retired.

        Weights that it shares with other classes are not unlearned.
        """
        return {"label": label, "removed": await finished(session.forget(label))}

    @app.post(
        "/v1/classes/{label}/rename",
        response_model=schemas.Renamed,
        responses=problems(404, 409, 422, 507),
        summary="Give a class another label",
    )
    async def rename(label: ClassName, body: schemas.Rename) -> dict[str, Any]:
        to = clean_label(body.to)
        await finished(session.rename(label, to))
        return {"label": to}

    @app.post(
        "/v1/classes/{label}/merge",
        response_model=schemas.Merged,
        responses=problems(404, 409, 422, 507),
        summary="Make two classes one",
    )
    async def merge(label: ClassName, body: schemas.Merge) -> dict[str, Any]:
        """What is remembered of this class becomes the other's."""
        return {"into": body.into, "moved": await finished(session.merge(label, body.into))}

    # ---- operating ----------------------------------------------------------------------------

    @app.get("/healthz", response_model=schemas.Health, responses=problems())
    async def alive() -> dict[str, str]:
        """The process runs."""
        return {"status": "ok"}

    @app.get("/readyz", response_model=schemas.Health, responses=problems())
    async def ready() -> dict[str, str]:
        """It learns and answers."""
        if not session.ready:
            raise HTTPException(503, "not learning")
        return {"status": "ready"}

    @app.get("/metrics", response_class=PlainTextResponse, responses=problems())
    async def prometheus() -> Response:
        """Numbers for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    app.add_middleware(Guard, access=access, limits=limits)
    app.add_middleware(Measured, metrics=metrics)  # the outermost: it counts refusals, too
    return app
