"""The contract of every learner: one labelled feature at a time, an answer at any moment.

A method writes ``step(z, y)``; everything around it (counting, growing heads, taking a refused
sample back, masking, state) is here and final.
"""

from __future__ import annotations

import math
from typing import ClassVar, final

import torch
from torch import Tensor, nn

from verse.kernels.interrupts import defer_interrupt
from verse.kernels.randomness import Random
from verse.learners.shared.feature_range import FeatureRange
from verse.learners.shared.loading import load_checked
from verse.learners.shared.outputs import Outputs
from verse.learners.shared.rebuild import Rebuildable
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.storage import Fields
from verse.network.net import Net
from verse.network.plastic import Plastic
from verse.settings import Seed, require, require_settings
from verse.types import BadSetting, Refused

__all__ = ["Learner", "Traits", "require", "require_settings"]


class Learner(Rebuildable):
    """One method. Its constructor's signature is its only configuration.

    ``STATE`` names every attribute that changes while learning, besides ``theta`` and ``memory``:
    tensors, numbers, lists, or anything ``Stateful`` (``Vector``, ``Net``, ``Random``, ``Memory``,
    ``Moments``), which is made in the constructor and stays the same object. Values that follow
    the parameters are ``Vector``s, so they grow with the head.

    Parameters
    ----------
    F
        The plastic network; its weights θ₀ are where ``theta`` starts.
    memory
        The samples to replay, or None.
    fields
        What memory stores of a sample besides ``y``, by name, as a shape or a ``Field``. Without
        an entry ``z`` it stores the feature itself.
    seed
        Random seed.
    """

    name: ClassVar[str]
    traits: ClassVar[Traits]
    class_shares: ClassVar[bool] = False
    """With a budget per class, every class has a share of its own that no other can take."""

    def __init__(
        self, F: Plastic, memory: Memory | None, fields: Fields | None = None, *, seed: Seed
    ) -> None:
        super().__init__()
        require_settings(Learner, locals())
        self.F = F  # start weights θ₀, never changed: restarts begin from them
        self.F.requires_grad_(False)
        self.seed = seed
        self.random = Random(seed, 0)
        self.theta = Net(F)
        self.outputs = Outputs()
        self.samples = 0
        self.range = FeatureRange()
        self.losses: dict[str, float] = {}  # the latest, by name, for trackers
        self.memory = memory
        self._protected: list[tuple[Tensor, Tensor]] = []
        self._stores_features = "z" not in (fields or {})
        if memory is not None:
            memory.allocate(self.device, **{"z": F.stored_shape, **(fields or {})})

    # ---- what a method writes: step, and any of the others -----------------------------------

    def step(self, z: Tensor, y: int) -> None:
        """One update from one sample; ``z`` is [1, …] as memory stores it, ``y`` an output.

        Compute first and change state last: then an error leaves everything as it was. If a tensor
        must change earlier, pass it to ``protect`` first.
        """
        raise NotImplementedError

    def logits(self, Z: Tensor) -> Tensor:
        """Scores [n, classes] for features as memory stores them."""
        return self.theta.scores(Z)

    def network(self) -> nn.Module:
        """What ``logits`` computes of features [n, *z_shape], as a module with weights of its own,
        for export. A method that answers by more than a network refuses."""
        return self.theta.freeze()

    def fit(self, Z: Tensor, y: Tensor) -> None:
        """Optional start on a batch (REMIND trains its codec here)."""

    def consolidate(self) -> None:
        """Deferred learning before an evaluation; most methods have none."""

    def new_output(self, output: int) -> None:
        """A class arrived: give plain per-class state its place; ``PerClass`` parts have theirs."""

    def drop_output(self, output: int, into: int | None) -> None:
        """A class leaves: remove its place from plain per-class state, so that later ones move up.
        If it is merged, what it held joins that of ``into`` (numbered as before)."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of stored samples and statistics, for reports. A second memory counts once it
        has had a sample."""
        return sum(
            part.bytes
            for part in self.parts_per_class
            if not isinstance(part, Memory) or part is self.memory or part.seen
        )

    # ---- learning ---------------------------------------------------------------------------

    @final
    def learn_one(self, z: Tensor, y: int) -> None:
        """Learn one sample, seen once. A refused sample leaves everything as it was."""
        with torch.no_grad(), defer_interrupt():
            row = self.F.stored(z)
            if row.shape[0] != 1:
                raise Refused(f"learn_one takes one feature, not {row.shape[0]}")
            parts = self.state_parts
            mark = parts.mark()
            try:
                self.range.add(row)
                if self.memory is not None and self._stores_features:
                    self.memory.require_storable(row)
                output = self.outputs.of.get(y)
                self.step(row, self.add_label(y) if output is None else output)
                self.samples += 1
            except BaseException:
                for tensor, before in self._protected:
                    tensor.copy_(before)
                parts.undo(mark)
                raise
            finally:
                self._protected.clear()

    def add_label(self, y: int) -> int:
        """One more class in every network, vector and memory; returns its output."""
        output, d = self.outputs.add(y), self.F.head.d
        # 1/√d either side, as linear layers usually start; the same new row in every network
        row = self.random.uniform_tensor((d + 1,), -(d**-0.5), d**-0.5).to(self.device)
        for part in self.parts_per_class:
            part.add_class(len(self.outputs), row)
        self.new_output(output)
        return output

    def protect(self, *tensors: Tensor) -> None:
        """Remember values that change before the step can no longer fail."""
        self._protected += [(t, t.clone()) for t in tensors]

    def descend(self, gradient: Tensor, lr: float, clip: float | None = None) -> None:
        """θ ← θ − lr · gradient, or refuse the sample if the gradient is not finite."""
        self.theta.data.add_(gradient, alpha=-lr * self.clip_scale(gradient, clip))
        self.theta.sync()

    def clip_scale(self, gradient: Tensor, clip: float | None) -> float:
        """min(1, clip / ‖gradient‖); refuses a gradient that is not finite."""
        norm = self.require_finite(gradient)
        return 1.0 if clip is None or norm <= clip else clip / norm

    def require_finite(self, values: Tensor) -> float:
        """The norm of what a step computed; refuses the sample if that is not finite."""
        norm = float(torch.linalg.vector_norm(values))
        if not math.isfinite(norm):
            raise Refused("the loss or its gradient is not finite; nothing was learned")
        return norm

    # ---- answering --------------------------------------------------------------------------

    @property
    def labels(self) -> list[int]:
        """The label of each output, in order of arrival."""
        return self.outputs.labels

    @final
    @torch.no_grad()
    def predict_proba_many(self, Z: Tensor) -> Tensor:
        """Probabilities [n, classes], in the order of ``labels``."""
        if not self.labels:
            return torch.zeros(Z.shape[0], 0)
        rows = self.F.stored(Z)
        if not bool(torch.isfinite(rows).all()):
            raise Refused("a feature is not finite: there is no answer to it")
        return torch.softmax(self.logits(rows).float(), 1)

    @final
    def predict_many(self, Z: Tensor) -> list[int | None]:
        """The label of each feature; None before anything was learned."""
        if not self.labels:
            return [None] * Z.shape[0]
        return [self.labels[o] for o in self.predict_proba_many(Z).argmax(1).tolist()]

    @final
    def predict_one(self, z: Tensor) -> int | None:
        """The label of one feature."""
        return self.predict_many(z.unsqueeze(0))[0]

    @final
    def predict_proba_one(self, z: Tensor) -> dict[int, float]:
        """Label → probability; empty before anything was learned."""
        return dict(
            zip(self.labels, self.predict_proba_many(z.unsqueeze(0))[0].tolist(), strict=True)
        )

    # ---- fewer classes ----------------------------------------------------------------------

    @final
    def forget(self, y: int) -> int:
        """A class leaves: its output is removed, its samples leave memory; returns how many.

        Weights shared with other classes are not unlearned. A budget per class shrinks, so that
        samples of a class that held more than its share may leave, too.
        """
        return self._drop(y, None)

    @final
    def merge(self, y: int, into: int) -> int:
        """``y`` leaves, and what memory holds of it becomes ``into``; returns how many samples."""
        if y == into:
            raise BadSetting("a class cannot be merged into itself")
        return self._drop(y, into)

    @torch.no_grad()
    def _drop(self, y: int, into: int | None) -> int:
        for label in (y, into):
            if label is not None and label not in self.outputs.of:
                raise BadSetting(f"class {label} was never learned")
        target = None if into is None else self.outputs.of[into]
        output, left = self.outputs.drop(y), len(self.outputs)
        self.drop_output(output, target)
        return sum(part.drop_class(output, target, left) for part in self.parts_per_class)

    # ---- state ------------------------------------------------------------------------------

    @final
    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the saved learner. The constructor's settings must be the same."""
        load_checked(self, state)
