"""States of the latest moments, in memory: undoing a few samples begins at one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from verse.durable.state import State

SPACING = 5  # samples between two; farther apart the longer they are ago
WIDE = 20  # the same of large states, which take long to copy
LARGE = 8 * 2**20  # bytes of a large state
MOST_BYTES = 128 * 2**20  # of all of them; a state of more than a third of that is not kept


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state as it was after an entry."""

    position: int
    samples: int
    tensors: dict[str, Tensor]
    spec: dict[str, Any]

    @classmethod
    def of(cls, state: State) -> Snapshot:
        tensors = {name: tensor.clone() for name, tensor in state.classifier.state().items()}
        return cls(state.position, state.classifier.samples, tensors, state.spec())

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors.values())

    def put_back(self, state: State) -> None:
        state.restore(self.tensors, self.spec)


class Snapshots:
    """The latest ones are ``SPACING`` samples apart (large ones ``WIDE``), older ones a quarter of
    their age.

    >>> from verse import backbones
    >>> from verse.classifier import StreamClassifier
    >>> state = State(StreamClassifier(backbone=backbones.identity((2,))))
    >>> snapshots = Snapshots()
    >>> snapshots.offer(state)
    >>> snapshots.before(1).position
    0
    """

    def __init__(self) -> None:
        self._kept: list[Snapshot] = []  # oldest first

    def offer(self, state: State) -> None:
        """Keep the state as it is, if the latest one is long enough ago."""
        samples = state.classifier.samples
        if self._kept and samples - self._kept[-1].samples < SPACING:
            return
        size = sum(t.numel() * t.element_size() for t in state.classifier.state().values())
        if size > MOST_BYTES // 3:
            self.clear()
            return
        if size > LARGE and self._kept and samples - self._kept[-1].samples < WIDE:
            return
        self._kept.append(Snapshot.of(state))
        self._thin_out(samples)
        while sum(snapshot.bytes for snapshot in self._kept) > MOST_BYTES:
            del self._kept[0]

    def _thin_out(self, samples: int) -> None:
        for i in range(len(self._kept) - 2, 0, -1):
            older, newer = self._kept[i - 1].samples, self._kept[i + 1].samples
            if newer - older <= max(SPACING, (samples - newer) / 4):
                del self._kept[i]

    def before(self, seq: int) -> Snapshot | None:
        """The latest one that does not contain an entry."""
        return next((s for s in reversed(self._kept) if s.position < seq), None)

    def drop_from(self, seq: int) -> None:
        """Those that contain an entry go."""
        self._kept = [snapshot for snapshot in self._kept if snapshot.position < seq]

    def clear(self) -> None:
        self._kept = []
