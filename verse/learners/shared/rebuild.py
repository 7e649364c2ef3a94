"""What a learner is made of: its settings and its parts, from which a copy is rebuilt."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from verse.kernels.randomness import Random
from verse.learners.shared.feature_range import FeatureRange
from verse.learners.shared.outputs import Outputs
from verse.memory.base import Memory
from verse.network.net import Net
from verse.network.plastic import Plastic
from verse.settings import list_parameters
from verse.stateful import Attributes, Parts, PerClass, Stateful

_POSITIONAL = (
    "F",
    "    The plastic network; learning starts from its weights.",
    "memory",
    "    The samples to replay; None for a method that replays nothing.",
)  # the same for every method


class Rebuildable(nn.Module):
    """Abstract: what a learner needs to be saved, followed, copied, and used as a PyTorch module.

    Parameters are views of one vector, which copying attribute by attribute would tear apart. So
    a copy is a new learner of the same settings that loads the state.
    """

    F: Plastic
    theta: Net
    memory: Memory | None
    outputs: Outputs
    random: Random
    range: FeatureRange
    samples: int
    STATE: ClassVar[tuple[str, ...]] = ()
    ANSWERS_FROM_MEMORY: ClassVar[bool] = False  # does ``logits`` look into memory?

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """``help`` of a method lists its settings, which stand in its signature alone."""
        super().__init_subclass__(**kwargs)
        if "Parameters\n" not in (cls.__doc__ or ""):
            title, rule, *settings = list_parameters(cls).split("\n")
            section = "\n".join((title, rule, *_POSITIONAL, *settings))
            cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n\n{textwrap.indent(section, '    ')}\n"

    def __repr__(self) -> str:
        memory = "" if self.memory is None else f", {self.memory!r}"
        classes, samples = len(self.outputs), self.samples
        return f"<{type(self).__name__}: {classes} classes, {samples} samples{memory}>"

    def settings(self) -> dict[str, Any]:
        """The keyword arguments that rebuild this learner."""
        return {
            name: getattr(self, name)
            for name, parameter in inspect.signature(type(self)).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }

    @property
    def device(self) -> torch.device:
        return self.theta.data.device

    @cached_property
    def state_parts(self) -> Parts:
        """Everything that changes, by name."""
        named = {name: getattr(self, name) for name in self.STATE}
        parts = {n: part for n, part in named.items() if isinstance(part, Stateful)}
        plain = ("samples", *(name for name in named if name not in parts))
        if self.memory is not None:
            parts["memory"] = self.memory
        return Parts(
            {"": Attributes(self, plain, self.device), "labels": self.outputs, "range": self.range}
            | {"theta": self.theta, "random": self.random, **parts}
        )

    @property
    def parts_per_class(self) -> list[PerClass]:
        """Those with a place for every class."""
        return [part for part in self.state_parts.parts.values() if isinstance(part, PerClass)]

    @final
    @torch.no_grad()
    def follow(self, other: Rebuildable) -> None:
        """Take over what another learner of the same settings answers with, so that a reader can
        answer while a writer learns. Memory comes along only where the method answers from it."""
        parts, all_of_them = self.state_parts.parts, self.ANSWERS_FROM_MEMORY
        answering = {n: p for n, p in parts.items() if all_of_them or not isinstance(p, Memory)}
        Parts(answering).follow(other.state_parts)

    @final
    def state(self) -> dict[str, Tensor]:
        """The whole learner as flat tensors; saving, loading and going on changes no bit."""
        return self.state_parts.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become what was saved."""
        raise NotImplementedError

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """The same as ``state()``, under PyTorch's name."""
        return {name: tensor.clone() for name, tensor in self.state().items()}

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as ``load_state``, under PyTorch's name."""
        self.load_state(dict(state_dict))

    def __reduce__(self) -> tuple[Any, ...]:
        memory = self.memory
        made_of = (type(memory), memory.settings()) if memory is not None else None
        return _rebuild, (type(self), self.F, made_of, self.settings(), self.state_dict())


def _rebuild(
    method: Callable[..., Rebuildable],
    F: Plastic,
    memory: tuple[type[Memory], dict[str, Any]] | None,
    settings: dict[str, Any],
    state: dict[str, Tensor],
) -> Rebuildable:
    learner = method(F, memory[0](**memory[1]) if memory is not None else None, **settings)
    learner.load_state(state)
    return learner
