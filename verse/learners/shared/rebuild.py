"""Copies of a learner: rebuilt from its settings and its state."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from verse.learners.shared.outputs import Outputs
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import list_parameters


class Rebuildable(nn.Module):
    """Abstract: what a learner needs to be copied, pickled, and used as a PyTorch module.

    Parameters are views of one vector, which copying attribute by attribute would tear apart. So
    a copy is a new learner of the same settings that loads the state.
    """

    F: Plastic
    memory: Memory | None
    outputs: Outputs
    samples: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """``help`` of a method lists its settings, which stand in its signature alone."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and "Parameters\n" not in (cls.__doc__ or ""):
            section = textwrap.indent(list_parameters(cls), "    ")
            cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}\n\n{section}\n"

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

    def state(self) -> dict[str, Tensor]:
        """Everything that changes while learning."""
        raise NotImplementedError

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
