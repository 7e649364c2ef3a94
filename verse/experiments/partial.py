"""The checkpoint of a run in flight: what it holds, and when a run may go on from it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verse import checkpoint
from verse.evaluate import SoFar
from verse.learners.base import Learner
from verse.types import BadState


class InexactResume(UserWarning):
    """A resumed run is correct, but its bits may differ from an uninterrupted one."""


class CannotResume(BadState):
    """A checkpoint is damaged or belongs to something else: the run can only start again."""

    def __init__(self, file: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"cannot go on from {file}: {reason}. To start again, give --fresh (in Python: "
            "resume=False) or delete that file"
        )


@dataclass(frozen=True)
class Partial:
    """A run in flight in one file.

    With other data or another backbone the learner would go on with features that do not fit what
    it has learned: refused. Other versions, threads and machines change last bits: a warning.
    """

    file: Path
    run: str
    """The run's identity."""
    data: str
    """The data set's fingerprint."""
    backbone: str
    """The key of the backbone."""
    circumstances: dict[str, str]
    """What must be equal for equal bits."""

    def save(self, learner: Learner, so_far: SoFar) -> None:
        """Replace what was saved before, all or nothing."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        spec = {
            "run": self.run,
            "data": self.data,
            "backbone": self.backbone,
            "circumstances": self.circumstances,
            "so_far": so_far.document(),
        }
        checkpoint.write(self.file, learner.state(), spec)

    def load(self, learner: Learner) -> SoFar:
        """Bring the learner to where it was saved; returns the sum of the stream up to there."""
        try:
            tensors, document = checkpoint.read(self.file)
            spec = document["spec"]
            self._refuse_other(spec)
            # a run notes more than every file does: the version of verse, the engine of G, …
            saved = spec.get("circumstances", document["circumstances"])
            changes = checkpoint.differences(saved, self.circumstances)
            learner.load_state(tensors)
            so_far = SoFar.load(spec["so_far"])
        except BadState as error:
            raise CannotResume(self.file, str(error)) from error
        except (AttributeError, KeyError, TypeError) as error:
            raise CannotResume(self.file, f"it is no checkpoint of a run: {error!r}") from error
        for change in changes:
            warnings.warn(f"resuming is not exact: {change}", InexactResume, stacklevel=3)
        return so_far

    def _refuse_other(self, spec: dict[str, Any]) -> None:
        for what, saved, mine in (
            ("another run", spec["run"], self.run),
            # a version that did not note these is not known to have had others
            ("other data", spec.get("data", self.data), self.data),
            ("another backbone", spec.get("backbone", self.backbone), self.backbone),
        ):
            if saved != mine:
                raise BadState(f"it belongs to {what} ({saved[:16]}, now {mine[:16]})")
