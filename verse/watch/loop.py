"""The loop: frames → answers → events → sinks, and corrections back into the classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from verse.types import BadImage, BadLabel, Label, Refused
from verse.watch.events import Scene, SceneEvent, Sighting
from verse.watch.frames import Frame
from verse.watch.sinks import Sink


class AnswerLike(Protocol):
    """What a classifier says of an image: see ``verse.StreamClassifier.ask``."""

    @property
    def label(self) -> Label | None: ...
    @property
    def known(self) -> bool: ...
    @property
    def confidence(self) -> float: ...


class Watcher:
    """Watches one camera.

    Parameters
    ----------
    ask
        Image → answer, for instance ``classifier.ask``.
    scene
        Turns answers into events.
    sinks
        Where events go.
    teach
        (image, label) → None, for instance ``classifier.learn_one``; None refuses corrections.
    tell
        Gets sentences for people.

    >>> from verse import types
    >>> cup = types.Answer("cup", "cup", True, 0.0, {"cup": 1.0}, step=1)
    >>> watcher = Watcher(lambda image: cup, Scene("door"), [])
    >>> [event.kind for t in range(3) for event in watcher.see(Frame(t, "an image"))]
    ['appeared']
    """

    def __init__(
        self,
        ask: Callable[[Any], AnswerLike],
        scene: Scene,
        sinks: Sequence[Sink],
        *,
        teach: Callable[[Any, str], object] | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.scene, self.sinks = scene, sinks
        self._ask, self._teach, self._tell = ask, teach, tell
        self._image: Any = None
        self._offline = False

    def watch(self, frames: Iterable[Frame], lessons: Callable[[], list[str]] = list) -> int:
        """Go through the frames; ``lessons`` gives the labels that arrived since. Counts events."""
        count = 0
        for frame in frames:
            for label in lessons():
                self.correct(label)
            for event in self.see(frame):
                count += 1
                for sink in self.sinks:
                    sink.send(event)
        return count

    def see(self, frame: Frame) -> list[SceneEvent]:
        """The events that one frame completes."""
        if frame.image is None:
            self._offline = True
            return [self.scene.interrupt(frame.seconds)]
        events = []
        if self._offline:
            self._offline = False
            events.append(self.scene.resume(frame.seconds))
        try:
            answer = self._ask(frame.image)
        except BadImage as error:
            self._tell(f"a frame was passed over: {error}")
            return events
        self._image = frame.image
        sighting = Sighting(answer.label, answer.known, answer.confidence)
        event = self.scene.see(frame.seconds, sighting)
        return events if event is None else [*events, event]

    def correct(self, label: str) -> None:
        """Teach the frame that was seen last."""
        if self._teach is None or self._image is None:
            self._tell(f"{label!r} was not taught: no frame was seen yet")
            return
        try:
            self._teach(self._image, label)
        except (BadImage, BadLabel, Refused) as error:
            self._tell(f"{label!r} was not taught: {error}")
        else:
            self._tell(f"taught the last frame as {label!r}")
