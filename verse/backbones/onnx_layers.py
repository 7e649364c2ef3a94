"""What each layer and function becomes in ONNX. A new kind of layer is one line in ``LAYERS``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.backbones import onnx_wire as wire
from verse.backbones.grid import LENGTH, Scale
from verse.backbones.outputs import (
    ClassDistances,
    Columns,
    Cosine,
    Positions,
    SignedPower,
    Smallest,
    UnitLength,
)
from verse.backbones.preprocess import Normalise
from verse.network.plastic import Head
from verse.network.same_conv import SameConv
from verse.types import VerseError


class Unconvertible(VerseError):
    """The network uses something this converter does not know; PyTorch can still run it."""


class Graph:
    """Nodes and constants gathered so far; ``put`` adds a node and returns its output's name."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self._n = 0

    def _fresh(self, stem: str) -> str:
        self._n += 1
        return f"{stem}_{self._n}"

    def put(self, op: str, inputs: Sequence[str], **attributes: wire.Attribute) -> str:
        """One operator."""
        name = self._fresh(op.lower())
        self.nodes.append(wire.node(op, inputs, name, attributes))
        return name

    def smallest(self, x: str, count: int) -> str:
        """The ``count`` smallest of each row, in order."""
        name, places = self._fresh("smallest"), self._fresh("places")
        wanted = self.constant(np.array([count], np.int64))
        options = {"axis": 1, "largest": 0}
        self.nodes.append(wire.node("TopK", [x, wanted], name, options, more=[places]))
        return name

    def constant(self, array: Tensor | npt.NDArray[np.generic]) -> str:
        """One constant."""
        if isinstance(array, Tensor):
            array = array.detach().cpu().numpy()
        name = self._fresh("constant")
        self.constants.append(wire.tensor(name, array))
        return name


Layer: TypeAlias = Callable[[Graph, Any, str], str]


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else [int(v) for v in value]


def _pads(padding: int | Sequence[int]) -> list[int]:
    return _pair(padding) * 2


def conv(g: Graph, m: nn.Conv2d, x: str, folded: tuple[Tensor, Tensor] | None = None) -> str:
    if isinstance(m.padding, str) or m.padding_mode != "zeros":
        raise Unconvertible("a convolution with padding given by name or not of zeros")
    pads = _pads(m.padding)
    if isinstance(m, SameConv) and m.extra:
        left, right, top, bottom = m.extra
        pads = [top, left, bottom, right]
    weight, bias = folded if folded is not None else (m.weight, m.bias)
    inputs = [x, g.constant(weight)] + ([] if bias is None else [g.constant(bias)])
    return g.put(
        "Conv",
        inputs,
        kernel_shape=list(m.kernel_size),
        strides=list(m.stride),
        pads=pads,
        dilations=list(m.dilation),
        group=m.groups,
    )


def _batchnorm(g: Graph, m: nn.BatchNorm2d, x: str) -> str:
    if m.running_mean is None or m.running_var is None or not m.affine:
        raise Unconvertible("a BatchNorm without running statistics or without scale and shift")
    constants = [g.constant(t) for t in (m.weight, m.bias, m.running_mean, m.running_var)]
    return g.put("BatchNormalization", [x, *constants], epsilon=float(m.eps))


def _clip(g: Graph, low: float, high: float, x: str) -> str:
    bounds = [g.constant(np.array(b, np.float32)) for b in (low, high)]
    return g.put("Clip", [x, *bounds])


def _maxpool(g: Graph, m: nn.MaxPool2d, x: str) -> str:
    return g.put(
        "MaxPool",
        [x],
        kernel_shape=_pair(m.kernel_size),
        strides=_pair(m.stride),
        pads=_pads(m.padding),
        dilations=_pair(m.dilation),
        ceil_mode=int(m.ceil_mode),
    )


def _avgpool(g: Graph, m: nn.AvgPool2d, x: str) -> str:
    if m.divisor_override is not None or m.ceil_mode:
        raise Unconvertible("an average pooling with ceil_mode or divisor_override")
    return g.put(
        "AveragePool",
        [x],
        kernel_shape=_pair(m.kernel_size),
        strides=_pair(m.stride),
        pads=_pads(m.padding),
        count_include_pad=int(m.count_include_pad),
    )


def _global_pool(g: Graph, size: Any, x: str) -> str:
    if size not in (1, (1, 1), [1, 1]):
        raise Unconvertible(f"an adaptive pooling to {size}")
    return g.put("GlobalAveragePool", [x])


def _flatten(g: Graph, x: str, start: int, end: int) -> str:
    if (start, end) != (1, -1):
        raise Unconvertible(f"a flatten from {start} to {end}")
    return g.put("Flatten", [x], axis=1)


def _linear(g: Graph, weight: Tensor, bias: Tensor | None, x: str) -> str:
    # MatMul, not Gemm: it also takes inputs with more than two dimensions
    y = g.put("MatMul", [x, g.constant(weight.detach().T.contiguous())])
    return y if bias is None else g.put("Add", [y, g.constant(bias)])


def _normalise(g: Graph, m: Normalise, x: str) -> str:
    y = g.put("Cast", [g.put("Transpose", [x], perm=[0, 3, 1, 2])], to=wire.TYPES["float32"])
    return g.put("Add", [g.put("Mul", [y, g.constant(m.scale)]), g.constant(m.shift)])


def _scale(g: Graph, x: str) -> str:
    rows = g.put("LpNormalization", [g.put("Flatten", [x], axis=1)], axis=1, p=2)
    longer = g.put("Mul", [rows, g.constant(np.array(LENGTH, np.float32))])
    return g.put("Reshape", [longer, g.put("Shape", [x])])


def _positions(g: Graph, m: Positions, x: str) -> str:
    by_channel = np.array([0, -1, m.mix.shape[1]], np.int64)
    maps = g.put("Reshape", [x, g.constant(by_channel)])
    mixed = g.put("MatMul", [maps, g.constant(m.mix.t().contiguous())])
    return g.put("Flatten", [mixed], axis=1)


def _cosine(g: Graph, m: Cosine, x: str) -> str:
    return g.put("Mul", [g.put("Cos", [x]), g.constant(np.array(m.factor, np.float32))])


def _signed_power(g: Graph, m: SignedPower, x: str) -> str:
    exponent = g.constant(np.array(m.exponent, np.float32))
    return g.put("Mul", [g.put("Sign", [x]), g.put("Pow", [g.put("Abs", [x]), exponent])])


def _class_distances(g: Graph, m: ClassDistances, x: str) -> str:
    by_class = g.put("MatMul", [x, g.constant(m.metrics)])  # [classes, n, d]
    gaps = g.put("Add", [by_class, g.constant(m.shifts)])
    squared = g.put("ReduceSumSquare", [gaps], axes=[2], keepdims=0)
    half = g.constant(np.array(-0.5, np.float32))
    return g.put("Mul", [g.put("Transpose", [squared], perm=[1, 0]), half])


def _sum(g: Graph, x: str, dim: int, keepdim: bool = False) -> str:
    return g.put("ReduceSum", [x, g.constant(np.array([dim], np.int64))], keepdims=int(keepdim))


def _silu(g: Graph, x: str) -> str:
    return g.put("Mul", [x, g.put("Sigmoid", [x])])


LAYERS: dict[type[nn.Module], Layer] = {
    SameConv: conv,
    nn.Conv2d: conv,
    nn.BatchNorm2d: _batchnorm,
    nn.ReLU: lambda g, m, x: g.put("Relu", [x]),
    nn.ReLU6: lambda g, m, x: _clip(g, 0, 6, x),
    nn.SiLU: lambda g, m, x: _silu(g, x),
    nn.Sigmoid: lambda g, m, x: g.put("Sigmoid", [x]),
    nn.Hardswish: lambda g, m, x: g.put("HardSwish", [x]),
    nn.Softmax: lambda g, m, x: g.put("Softmax", [x], axis=m.dim),
    nn.MaxPool2d: _maxpool,
    nn.AvgPool2d: _avgpool,
    nn.AdaptiveAvgPool2d: lambda g, m, x: _global_pool(g, m.output_size, x),
    nn.Flatten: lambda g, m, x: _flatten(g, x, m.start_dim, m.end_dim),
    nn.Linear: lambda g, m, x: _linear(g, m.weight, m.bias, x),
    nn.Identity: lambda g, m, x: x,
    nn.Dropout: lambda g, m, x: x,
    Normalise: _normalise,
    Scale: lambda g, m, x: _scale(g, x),
    UnitLength: lambda g, m, x: g.put("LpNormalization", [x], axis=1, p=2),
    Positions: _positions,
    Cosine: _cosine,
    SignedPower: _signed_power,
    ClassDistances: _class_distances,
    Smallest: lambda g, m, x: g.smallest(x, 1),
    Columns: lambda g, m, x: g.put("Gather", [x, g.constant(m.index)], axis=1),
    Head: lambda g, m, x: _linear(g, m.weight[: m.n], m.bias[: m.n], x),
}


_BINARY: dict[Any, str] = {operator.sub: "Sub", operator.matmul: "MatMul"}
_UNARY: dict[Any, str] = {torch.sqrt: "Sqrt", torch.exp: "Exp"}


def call(g: Graph, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """A function or a method inside someone's ``forward``."""
    if target in (operator.add, operator.iadd, torch.add, "add", "add_") and not kwargs:
        return g.put("Add", [_as_input(g, a) for a in args])
    if target in (operator.mul, operator.imul, torch.mul, "mul", "mul_") and not kwargs:
        return g.put("Mul", [_as_input(g, a) for a in args])
    if target in _BINARY and not kwargs:
        return g.put(_BINARY[target], [_as_input(g, a) for a in args])
    if target in _UNARY and len(args) == 1 and not kwargs:
        return g.put(_UNARY[target], [args[0]])
    if target is torch.sum and len(args) > 1 and not kwargs:
        return _sum(g, *args)
    if target is torch.clamp and len(args) == 3 and not kwargs:
        return _clip(g, args[1], args[2], args[0])
    if target is torch.log_softmax and len(args) == 2 and not kwargs:
        return g.put("LogSoftmax", [args[0]], axis=args[1])
    if target in (torch.relu, nn.functional.relu, "relu", "relu_"):
        return g.put("Relu", [args[0]])
    if target is nn.functional.relu6:
        return _clip(g, 0, 6, args[0])
    if target is nn.functional.adaptive_avg_pool2d:
        return _global_pool(g, kwargs.get("output_size", args[-1]), args[0])
    if target in (torch.flatten, "flatten"):
        given = dict(zip(("start_dim", "end_dim"), args[1:], strict=False)) | dict(kwargs)
        return _flatten(g, args[0], given.get("start_dim", 0), given.get("end_dim", -1))
    if target in (torch.cat, torch.concat) and isinstance(args[0], list | tuple):
        axis = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        return g.put("Concat", list(args[0]), axis=axis)
    raise Unconvertible(f"the operation {target}")


def _as_input(g: Graph, value: str | float) -> str:
    return value if isinstance(value, str) else g.constant(np.array(value, np.float32))
