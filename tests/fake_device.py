"""A device that is not there: tensors on it hold values, and refuse to meet tensors of the CPU.

It stands for a GPU where there is none: what mixes devices, or forgets to move a tensor, fails here
as it would there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

aten = torch.ops.aten
NAME = "meta"  # torch knows it, and needs no driver for it
# copies, and indices, which may lie on the CPU for a GPU, too
MAY_MIX = (
    aten._to_copy.default,
    aten.copy_.default,
    aten.index.Tensor,
    aten.index_put_.default,
    aten.index_put.default,
    aten._index_put_impl_.default,
)


class Elsewhere(torch.Tensor):
    """A tensor on the fake device; ``inner`` is its content."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Elsewhere:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=NAME,
            requires_grad=inner.requires_grad,
        )
        made.inner = inner.detach()
        return made

    def tolist(self) -> Any:
        return self.inner.tolist()

    def __repr__(self) -> str:
        return f"Elsewhere({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: Any) -> Any:
    flat = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
    there = [x for x in flat if isinstance(x, Elsewhere)]
    here = [x for x in flat if not isinstance(x, Elsewhere) and x.dim() > 0]
    asked = kwargs.get("device")
    if there and here and func not in MAY_MIX:
        raise RuntimeError(f"{func}: tensors on the CPU and on the fake device in one operation")
    to_there = bool(there) if asked is None else torch.device(asked).type == "meta"
    if func is torch.ops.aten.copy_.default:
        to_there = isinstance(args[0], Elsewhere)
    plain = {**kwargs, "device": torch.device("cpu")} if asked is not None else kwargs
    plain.pop("pin_memory", None)
    inner_args, inner_kwargs = tree_map(
        lambda x: x.inner if isinstance(x, Elsewhere) else x, (args, plain)
    )
    out = func(*inner_args, **inner_kwargs)
    if func is torch.ops.aten._to_copy.default and asked is None:
        to_there = bool(there)
    if to_there:
        out = tree_map(lambda x: Elsewhere(x) if type(x) is torch.Tensor else x, out)
    if there and to_there:
        return return_and_correct_aliasing(func, args, kwargs, out)
    return out


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """What happens out of the sight of operations: ``torch.tensor``, and ``p.data = …``."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.tensor and kwargs.get("device") is not None:
            return func(*args, **kwargs | {"device": "cpu"}).to(kwargs["device"])
        if func == torch.Tensor.data.__get__ and isinstance(args[0], Elsewhere):
            return args[0].detach()
        result = func(*args, **kwargs)
        if func == torch.Tensor.data.__set__ and isinstance(args[0], Elsewhere):
            args[0].inner = args[1].inner
        return result


@contextlib.contextmanager
def fake_device() -> Iterator[str]:
    """While it is on, tensors can be made on and moved to the device of the name that it gives."""
    with _Operations(), _Functions():
        yield NAME
