"""What learners share that keep running moments of their classes."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from verse.kernels.moments import Moments
from verse.learners.base import Learner


class WithMoments(Learner):
    """Keeps ``moments`` in step with the classes; they count as memory, for they stand for samples.

    A method makes ``moments`` when it is built and calls ``add`` in its step.
    """

    STATE: ClassVar[tuple[str, ...]] = ("moments",)
    moments: Moments

    def new_output(self, output: int) -> None:
        self.moments.grow()

    def absorb(self, output: int, into: int) -> None:
        self.moments.absorb(output, into)

    def erase(self, output: int) -> None:
        self.moments.erase(output)

    def refuse_endless(self, e: Tensor, y: int) -> None:
        """Raise before anything is changed if the sample would make the moments infinite."""
        self.clip_scale(self.moments.largest(e, y), None)

    @property
    def memory_bytes(self) -> int:
        """Samples and statistics."""
        return super().memory_bytes + self.moments.bytes
