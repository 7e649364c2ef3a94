"""When an answer becomes an event: a scene changes only after the new answer has lasted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from verse.types import Label

Kind = Literal["appeared", "changed", "gone", "unknown", "offline", "online"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one frame shows: a label, something unknown, or nothing of interest.

    Parameters
    ----------
    label
        The class, or None.
    known
        False for something that fits no class that was taught.
    confidence
        Probability of the label.

    >>> Sighting("cup", True, 0.9).state
    ('known', 'cup')
    """

    label: Label | None
    known: bool
    confidence: float = 0.0

    @property
    def state(self) -> tuple[str, Label | None]:
        """What two sightings must share to be the same scene."""
        if not self.known:
            return ("unknown", None)
        return ("known", self.label) if self.label is not None else ("nothing", None)


@dataclass(frozen=True, slots=True)
class SceneEvent:
    """One change of the scene.

    Parameters
    ----------
    kind
        ``appeared`` (a class, where there was nothing or something unknown), ``changed`` (another
        class), ``gone``, ``unknown`` (nothing taught fits), ``offline`` and ``online`` (the camera
        went away and came back).
    label, previous
        The class now and the class before; None where there is or was none.
    confidence
        Probability of the label.
    seconds
        Since the first frame.
    source
        The camera.
    time
        Wall-clock time, ISO 8601 in UTC.

    >>> event = SceneEvent("appeared", "cup", None, 0.9, 3.5, "door", "2026-01-01T12:00:00Z")
    >>> event.document()["event"]
    'appeared'
    """

    kind: Kind
    label: Label | None
    previous: Label | None
    confidence: float
    seconds: float
    source: str
    time: str

    def document(self) -> dict[str, Any]:
        """As plain JSON; ``kind`` is called ``event`` there."""
        fields = asdict(self)
        return {"event": fields.pop("kind"), **fields}


class Scene:
    """The scene of one camera; ``see`` turns frames into events.

    Parameters
    ----------
    source
        Name of the camera, written into each event.
    hold
        Seconds that a new answer must last before it counts. One wrong frame is no event.
    background
        Labels that mean that nothing is there, such as an empty table.

    >>> scene = Scene("door", hold=0.5)
    >>> cup = Sighting("cup", True, 0.9)
    >>> [event and event.kind for event in (scene.see(t / 4, cup) for t in range(4))]
    [None, None, 'appeared', None]
    """

    def __init__(
        self, source: str, *, hold: float = 1.0, background: Collection[Label] = ()
    ) -> None:
        self.source, self.hold, self.background = source, hold, frozenset(background)
        self.current = Sighting(None, True)
        self._candidate: Sighting | None = None
        self._since = 0.0

    def see(self, seconds: float, sighting: Sighting) -> SceneEvent | None:
        """The event that this frame completes, or None."""
        if sighting.known and sighting.label in self.background:
            sighting = Sighting(None, True, sighting.confidence)
        if sighting.state == self.current.state:
            self._candidate = None
            return None
        if self._candidate is None or self._candidate.state != sighting.state:
            self._candidate, self._since = sighting, seconds
        if seconds - self._since < self.hold:
            return None
        before, self.current, self._candidate = self.current, sighting, None
        return self._event(_kind(before, sighting), seconds, sighting, before.label)

    def interrupt(self, seconds: float) -> SceneEvent:
        """The camera went away: a half-seen change counts no more, the scene stays."""
        self._candidate = None
        return self._event("offline", seconds, self.current, self.current.label)

    def resume(self, seconds: float) -> SceneEvent:
        """The camera is back; its frames are compared with the scene before it was lost."""
        return self._event("online", seconds, self.current, self.current.label)

    def _event(
        self, kind: Kind, seconds: float, sighting: Sighting, previous: Label | None
    ) -> SceneEvent:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return SceneEvent(
            kind,
            sighting.label,
            previous,
            round(sighting.confidence, 4),
            round(seconds, 3),
            self.source,
            now,
        )


def _kind(before: Sighting, now: Sighting) -> Kind:
    if not now.known:
        return "unknown"
    if now.label is None:
        return "gone"
    return "changed" if before.known and before.label is not None else "appeared"
