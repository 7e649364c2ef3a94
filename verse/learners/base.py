"""The contract of every learner: one labelled feature at a time, an answer at any moment.

A method writes ``step(z, y)``; everything around it (counting, growing heads, taking a refused
sample back, masking, state) is here and final.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from verse.backbones.plastic import Plastic
from verse.kernels.interrupts import deferred_interrupt
from verse.kernels.randomness import Random
from verse.kernels.vector import Vector
from verse.learners import parts
from verse.learners.allowed import keeps, kind_in_words, of_kind, rule
from verse.learners.json_schema import properties
from verse.learners.network import Net
from verse.learners.setting import Seed
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.types import BadSetting, BadState, Refused


def require(condition: bool, message: str) -> None:
    """Validate a hyper-parameter at construction."""
    if not condition:
        raise BadSetting(message)


def require_settings(make: Callable[..., object], given: Mapping[str, Any]) -> None:
    """Validate all hyper-parameters by what the constructor's annotations say of them.

    A constructor calls it first: ``require_settings(VERSE, locals())``.

    >>> from verse.learners.setting import Rate
    >>> def tune(*, lr: Rate) -> None:
    ...     require_settings(tune, locals())
    >>> tune(lr=-1)
    Traceback (most recent call last):
    verse.types.BadSetting: lr must be > 0, not -1
    """
    for name, allowed in properties(make).items():
        value = given[name]
        require(of_kind(allowed, value), f"{name} must be {kind_in_words(allowed)}, not {value!r}")
        require(keeps(allowed, value), f"{name} must be {rule(allowed)}, not {value!r}")


class Learner(nn.Module):
    """One method. Its constructor's signature is its only configuration.

    ``STATE`` names every attribute that changes while learning, besides ``theta`` and ``memory``:
    tensors, numbers, ``Vector``s, ``Net``s, ``Random``s or ``Memory``s. Values that follow the
    parameters are ``Vector``s, so they grow with the head.
    """

    name: ClassVar[str]
    traits: ClassVar[Traits]
    STATE: ClassVar[tuple[str, ...]] = ()
    ANSWERS_FROM_MEMORY: ClassVar[bool] = False  # does ``logits`` look into memory?

    def __init__(self, F: Plastic, memory: Memory | None, *, seed: Seed) -> None:
        super().__init__()
        require_settings(Learner, locals())
        self.F = F  # start weights θ₀, never changed: restarts begin from them
        self.F.requires_grad_(False)
        self.seed = seed
        self.random = Random(seed, 0)
        self.theta = Net(F)
        self.labels: list[int] = []  # output → label, in order of arrival
        self.retired: set[int] = set()  # outputs of forgotten classes
        self.samples = 0
        self.memory = memory
        self._outputs: dict[int, int] = {}  # label → output
        self._protected: list[tuple[Tensor, Tensor]] = []
        if memory is not None:
            memory.allocate(self.device, self.memory_types(), **self.memory_fields())

    # ---- what a method writes ---------------------------------------------------------------

    def step(self, z: Tensor, y: int) -> None:
        """One update from one sample; ``z`` is [1, …] as memory stores it, ``y`` an output.

        Compute first and change state last: an error before the first change takes the sample
        back by itself. What must change earlier is named by ``protect`` before.
        """
        raise NotImplementedError

    def logits(self, Z: Tensor) -> Tensor:
        """Scores [n, classes] for features as memory stores them."""
        return self.theta.scores(Z)

    def network(self) -> nn.Module:
        """What ``logits`` computes, as a module with weights of its own, of features [n, *z_shape].

        For export; a method that answers by more than a network refuses.
        """
        return self.theta.frozen()

    def fit(self, Z: Tensor, y: Tensor) -> None:
        """Optional start on a batch (REMIND trains its codec here)."""

    def consolidate(self) -> None:
        """Deferred learning before an evaluation; most methods have none."""

    def losses(self) -> dict[str, float]:
        """The latest losses by name, for trackers; most methods report none."""
        return {}

    def new_output(self, output: int) -> None:
        """A class arrived: give further per-class state its place (Nets have theirs already)."""

    def absorb(self, output: int, into: int) -> None:
        """Two classes become one: further per-class state of ``output`` joins that of ``into``."""

    def erase(self, output: int) -> None:
        """A class is forgotten: further state that is its own alone must leave, too."""

    def memory_fields(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the memory's fields; a method that stores more adds to it."""
        return {"z": self.stored_shape}

    def memory_types(self) -> dict[str, torch.dtype]:
        """Types of fields that are no floating-point values."""
        return {}

    def kept(self, z: Tensor) -> Tensor:
        """What memory stores of a feature [1, …]; most methods keep it whole."""
        return z

    # ---- learning ---------------------------------------------------------------------------

    @final
    def learn_one(self, z: Tensor, y: int) -> None:
        """Learn one sample, seen once. A refused sample leaves everything as it was."""
        with torch.no_grad(), deferred_interrupt():
            row = self._stored(z)
            if row.shape[0] != 1:
                raise Refused(f"learn_one takes one feature, not {row.shape[0]}")
            # a sum is one pass and keeps every NaN and infinity; only if it is odd look closer
            if not math.isfinite(float(row.sum())) and not bool(torch.isfinite(row).all()):
                raise Refused("the feature is not finite; nothing was learned")
            if self.memory is not None and self.memory.dtype != "float32":
                self._refuse_unstorable(self.kept(row), self.memory)
            n, marks = len(self.labels), parts.marks(self._parts())
            try:
                self.step(row, self._output(y))
            except BaseException:
                self._undo(n, marks)
                raise
            finally:
                self._protected.clear()
            self.samples += 1

    def _refuse_unstorable(self, kept: Tensor, memory: Memory) -> None:
        """A value stored as infinity would spoil every later step that draws it."""
        if not memory.holds(kept):
            raise Refused(
                f"a value of {float(kept.abs().max()):.6g} is too large for a memory of "
                f"{memory.dtype}; nothing was learned"
            )

    def _output(self, y: int) -> int:
        """The output of a label, which grows the head if the label is new."""
        output = self._outputs.get(y)
        if output is None:
            output = len(self.labels)
            self.labels.append(y)
            self._outputs[y] = output
            self._grow()
        return output

    def _grow(self) -> None:
        """One more class in every network, vector and memory; the same new row everywhere."""
        n = len(self.labels)
        d = self.F.head.d
        # 1/√d either side, as linear layers usually start
        row = self.random.uniform_tensor((d + 1,), -(d**-0.5), d**-0.5).to(self.device)
        for net in self._nets():
            net.grow_to(n)
            views = net.layout.views(net.data)
            views["head.weight"][n - 1] = row[:d]
            views["head.bias"][n - 1] = row[d]
            net.sync()
        for vector in self._vectors():
            vector.move_to(self.theta.layout)
        self._share_budget()
        self.new_output(n - 1)

    def _share_budget(self) -> None:
        """A budget per class is for the classes there are: forgotten ones count no more."""
        for memory in self._memories():
            memory.welcome(len(self._outputs))

    def protect(self, *tensors: Tensor) -> None:
        """Remember values that change before the step can no longer fail."""
        self._protected += [(t, t.clone()) for t in tensors]

    def descend(self, gradient: Tensor, lr: float, clip: float | None = None) -> None:
        """θ ← θ − lr · gradient, or refuse the sample if the gradient is not finite."""
        self.theta.data.add_(gradient, alpha=-lr * self.clip_scale(gradient, clip))
        self.theta.sync()

    def clip_scale(self, gradient: Tensor, clip: float | None) -> float:
        """min(1, clip / ‖gradient‖); refuses a gradient that is not finite."""
        norm = float(torch.linalg.vector_norm(gradient))
        if not math.isfinite(norm):
            raise Refused("the loss or its gradient is not finite; nothing was learned")
        return 1.0 if clip is None or norm <= clip else clip / norm

    # ---- answering --------------------------------------------------------------------------

    @property
    def live(self) -> list[int]:
        """Outputs that may answer."""
        return [o for o in range(len(self.labels)) if o not in self.retired]

    @final
    @torch.no_grad()
    def predict_proba_many(self, Z: Tensor) -> Tensor:
        """Probabilities [n, classes]; retired outputs have probability 0."""
        if not self.live:
            return torch.zeros(Z.shape[0], len(self.labels))
        scores = self.logits(self._stored(Z)).float()
        if self.retired:
            scores = scores.clone()
            scores[:, sorted(self.retired)] = -math.inf
        return torch.softmax(scores, 1)

    @final
    def predict_many(self, Z: Tensor) -> list[int | None]:
        """The label of each feature; None before anything was learned."""
        if not self.live:
            return [None] * Z.shape[0]
        return [self.labels[o] for o in self.predict_proba_many(Z).argmax(1).tolist()]

    @final
    def predict_one(self, z: Tensor) -> int | None:
        """The label of one feature."""
        return self.predict_many(z.unsqueeze(0))[0]

    @final
    def predict_proba_one(self, z: Tensor) -> dict[int, float]:
        """Label → probability; empty before anything was learned."""
        if not self.live:
            return {}
        p = self.predict_proba_many(z.unsqueeze(0))[0].tolist()
        return {self.labels[o]: p[o] for o in self.live}

    @final
    def forget(self, y: int) -> int:
        """Retire a class: its output never answers again and its samples leave memory.

        Weights shared with other classes are not unlearned. Returns how many samples left.
        A budget per class shrinks, so that samples of a class that held more than its share may
        leave, too. A later sample with the same label starts a new class.
        """
        if y not in self._outputs:
            raise BadSetting(f"class {y} was never learned")
        output = self._outputs.pop(y)
        self.retired.add(output)
        self.erase(output)
        removed = sum(memory.discard(output) for memory in self._memories())
        self._share_budget()
        return removed

    @final
    def merge(self, y: int, into: int) -> int:
        """Two labels are one class: what memory holds of ``y`` becomes ``into``; ``y`` retires.

        Returns how many samples moved.
        """
        for label in (y, into):
            if label not in self._outputs:
                raise BadSetting(f"class {label} was never learned")
        if y == into:
            raise BadSetting("a class cannot be merged into itself")
        output = self._outputs.pop(y)
        self.retired.add(output)
        self.absorb(output, self._outputs[into])
        moved = sum(memory.relabel(output, self._outputs[into]) for memory in self._memories())
        self._share_budget()
        return moved

    @final
    @torch.no_grad()
    def follow(self, other: Learner) -> None:
        """Take over what another learner of the same settings answers with.

        A reader follows the writer now and then and answers while the writer learns. Memory comes
        along only where the method answers from it; random generators never do.
        """
        self.labels, self.retired = list(other.labels), set(other.retired)
        self._outputs, self.samples = dict(other._outputs), other.samples
        self._set(parts.followed(self._parts(), other._parts(), memories=self.ANSWERS_FROM_MEMORY))

    # ---- layout -----------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        return self.theta.data.device

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """A feature's shape in memory: [h, w, c] where the network is channels-last."""
        shape = self.F.z_shape
        if self.F.channels_last and len(shape) == 3:
            return (shape[1], shape[2], shape[0])
        return shape

    def _stored(self, Z: Tensor) -> Tensor:
        """Features [n, *z_shape] (or one of them) in the layout and type of memory."""
        Z = Z.unsqueeze(0) if Z.dim() == len(self.F.z_shape) else Z
        if tuple(Z.shape[1:]) != self.F.z_shape:
            raise Refused(f"a feature has shape {self.F.z_shape}, this one {tuple(Z.shape[1:])}")
        Z = Z.to(self.device, torch.float32)
        if self.F.channels_last and Z.dim() == 4:
            return Z.permute(0, 2, 3, 1).contiguous()
        return Z.contiguous()

    # ---- taking back ------------------------------------------------------------------------

    def _parts(self) -> dict[str, Any]:
        always: dict[str, Any] = {"theta": self.theta, "random": self.random}
        if self.memory is not None:
            always["memory"] = self.memory
        return always | {name: getattr(self, name) for name in self.STATE}

    def _nets(self) -> list[Net]:
        return [p for p in self._parts().values() if isinstance(p, Net)]

    def _vectors(self) -> list[Vector]:
        return [
            p for p in self._parts().values() if isinstance(p, Vector) and not isinstance(p, Net)
        ]

    def _memories(self) -> list[Memory]:
        return [p for p in self._parts().values() if isinstance(p, Memory)]

    @property
    def memory_bytes(self) -> int:
        """Bytes of the budgets of all its memories, what a comparison reports; one beside
        ``memory`` counts once a sample was in it."""
        return sum(m.bytes for m in self._memories() if m is self.memory or m.seen)

    def _set(self, plain: dict[str, Any]) -> None:
        for name, value in plain.items():
            setattr(self, name, value)

    def _undo(self, n: int, marks: dict[str, Any]) -> None:
        """Back to ``n`` classes and to the marks: the sample leaves no trace."""
        grew = len(self.labels) > n
        for tensor, before in self._protected:
            tensor.copy_(before)
        for label in self.labels[n:]:
            del self._outputs[label]
        del self.labels[n:]
        self._set(parts.undone(self._parts(), marks))
        for net in self._nets():
            if grew and n < net.layout.slots[-1].shape[0]:
                views = net.layout.views(net.data)
                views["head.weight"][n:] = 0
                views["head.bias"][n:] = 0
            net.sync()

    # ---- settings and state -----------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this learner."""
        return {
            name: getattr(self, name)
            for name, parameter in inspect.signature(type(self)).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }

    @final
    def state(self) -> dict[str, Tensor]:
        """The whole learner as flat tensors; saving, loading and going on changes no bit."""
        return {
            "labels": torch.tensor(self.labels, dtype=torch.int64),
            "retired": torch.tensor(sorted(self.retired), dtype=torch.int64),
            "samples": torch.tensor(self.samples),
        } | parts.saved(self._parts())

    @final
    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the saved learner. The constructor's settings must be the same."""
        try:
            self.labels = [int(v) for v in state["labels"]]
            self.retired = {int(v) for v in state["retired"]}
            self.samples = int(state["samples"])
            self._outputs = {
                label: o for o, label in enumerate(self.labels) if o not in self.retired
            }
            for net in self._nets():
                net.grow_to(len(self.labels))
            for vector in self._vectors():
                vector.move_to(self.theta.layout)
            self._set(parts.restored(self._parts(), state, self.device))
            self._share_budget()
        except (KeyError, IndexError, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, BadState):
                raise
            raise BadState(f"the saved state does not fit this learner: {error}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are rebuilt from settings and state: parameters are views of one
        vector, which copying attribute by attribute would tear apart."""
        memory = self.memory
        kept = (type(memory), memory.settings()) if memory is not None else None
        state = {name: tensor.clone() for name, tensor in self.state().items()}
        return _rebuilt, (type(self), self.F, kept, self.settings(), state)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """The same as ``state()``, under PyTorch's name."""
        return {name: tensor.clone() for name, tensor in self.state().items()}

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as ``load_state``, under PyTorch's name."""
        self.load_state(dict(state_dict))


def _rebuilt(
    method: Callable[..., Learner],
    F: Plastic,
    memory: tuple[type[Memory], dict[str, Any]] | None,
    settings: dict[str, Any],
    state: dict[str, Tensor],
) -> Learner:
    learner = method(F, memory[0](**memory[1]) if memory is not None else None, **settings)
    learner.load_state(state)
    return learner
