"""The application: routes, guard and page around a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from verse import __version__
from verse.serve.access import Access
from verse.serve.guard import Guard
from verse.serve.limits import Limits
from verse.serve.metrics import RequestMeter
from verse.serve.problems import handle_errors
from verse.serve.process_memory import MemoryTrimmer
from verse.serve.routes import change, look, operate, teach
from verse.serve.service import Service
from verse.serve.session import Session
from verse.serve.workers.decoder import MAX_PIXELS, SECONDS, Decoder, square_of

PAGE = Path(__file__).parent / "page"
STATUS_SECONDS = 1.0  # how often listeners hear the status


def create_app(
    session: Session,
    *,
    access: Access | None = None,
    limits: Limits | None = None,
    max_pixels: int = MAX_PIXELS,
    decode_seconds: float = SECONDS,
    decoders: int | None = None,
) -> FastAPI:
    """The application around a session, which it starts and closes.

    An upload of more than ``max_pixels``, or one that takes longer than ``decode_seconds``, is
    refused; ``decoders`` processes decode (default: one for each core, two to four).
    """
    access, limits = access or Access(), limits or Limits()
    G = session.classifier.backbone.G
    decoder = Decoder(
        G.preprocess,
        square=square_of(G),
        max_pixels=max_pixels,
        seconds=decode_seconds,
        workers=decoders,
    )
    service = Service(session, decoder, access, limits)
    app = FastAPI(
        title="verse",
        version=__version__,
        summary="Teach a vision model new classes from a live stream.",
        docs_url=None,  # they fetch scripts from elsewhere; /openapi.json is complete
        redoc_url=None,
        lifespan=_lifespan(service),
    )
    app.state.session, app.state.events = session, service.events
    handle_errors(app)
    for part in (teach, look, change, operate):
        app.include_router(part.router(service))
    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    app.add_middleware(Guard, access=access, limits=limits)
    app.add_middleware(RequestMeter, metrics=service.metrics)  # outermost: counts refusals, too
    return app


def _lifespan(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.events.open()
        service.decoder.start()
        service.session.start()
        ticking = asyncio.create_task(_tick(service))
        try:
            yield
        finally:
            ticking.cancel()
            with suppress(asyncio.CancelledError):
                await ticking
            service.events.close()
            await asyncio.to_thread(service.decoder.close)
            await asyncio.to_thread(service.session.close)

    return life


async def _tick(service: Service) -> None:
    """Tell listeners the status, and hand freed memory back, now and then."""
    memory = MemoryTrimmer()
    while True:
        await asyncio.sleep(STATUS_SECONDS)
        if service.events.listeners:
            service.events.send("status", service.status().model_dump())
        await asyncio.to_thread(memory.trim)  # some milliseconds
