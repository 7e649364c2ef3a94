"""What the routes share: the session, and everything around it."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request, UploadFile

from verse import __version__
from verse.serve import schemas
from verse.serve.access import Access
from verse.serve.events import Events
from verse.serve.limits import Limits, Turns
from verse.serve.metrics import Metrics
from verse.serve.pictures import AnsweredFrame, AnsweredFrames, Picture
from verse.serve.session import Session
from verse.serve.views import Reply
from verse.serve.workers.decoder import Decoder

LONGEST_NAME = 60  # characters of an uploaded file's name in a message
AT_ONCE = 2  # pictures of one address that are answered: one is decoded while another is asked
T = TypeVar("T")


@dataclass
class Service:
    """A session with its decoding processes, event listeners and limits."""

    session: Session
    decoder: Decoder
    access: Access
    limits: Limits
    events: Events = field(init=False)
    metrics: Metrics = field(init=False)
    frames: AnsweredFrames = field(default_factory=AnsweredFrames)

    def __post_init__(self) -> None:
        self.events = Events(self.limits)
        self.metrics = Metrics(self.session)
        self.session.listen(self.events.send)
        limit, free = self.session.limit, self.decoder.workers
        alone = self.limits.per_address
        self._decoding = Turns("image", share=max(1, free - 1) if alone else free, waiting=limit)
        self._asking = Turns("predict", share=AT_ONCE if alone else limit, waiting=limit)

    async def picture(self, request: Request, upload: UploadFile) -> Picture:
        """Decode an upload. One address can use all decoding processes except one."""
        image = await upload.read()
        async with self._decoding.turn(address(request)):
            return await result(self.decoder.decode(image, name_upload(upload)))

    async def answer(self, request: Request, upload: UploadFile) -> tuple[Reply, str]:
        """What an upload shows, and the id of its frame."""
        async with self._asking.turn(address(request)):
            picture = await self.picture(request, upload)
            answer = await result(self.session.predict(picture))
        kept = picture.encoded if self.session.classifier.keep_images else b""
        frame = self.frames.add(address(request), AnsweredFrame(answer.z, picture.small, kept))
        return answer, frame

    def status(self) -> schemas.Status:
        """The service at this moment."""
        session, view = self.session, self.session.view
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
            last=None if view.last is None else schemas.LastSample(**view.last),
            step=view.samples,
            learner=session.classifier.learner_name,
            backbone=session.classifier.backbone.name,
            version=__version__,
            auth=schemas.Needs(learn=self.access.token is not None, predict=self.access.private),
        )


async def result(future: Future[T]) -> T:
    """Wait for a thread's answer."""
    return await asyncio.wrap_future(future)


def address(request: Request) -> str:
    """Whom a request counts as (the guard notes it)."""
    return str(request.scope.get("verse.address", ""))


def name_upload(upload: UploadFile) -> str:
    """What messages call an upload.

    >>> name_upload(UploadFile(None, filename="C:\\\\photos\\\\mug.heic"))
    'mug.heic'
    """
    name = os.path.basename((upload.filename or "").replace("\\", "/"))
    return name[:LONGEST_NAME] if name.isprintable() and name else "the file"
