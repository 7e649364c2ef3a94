"""From a PyTorch module to an ONNX model: trace, fold BatchNorm, write one node per layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, fx, nn

from verse.backbones import onnx_wire as wire
from verse.backbones.onnx_layers import LAYERS, Graph, Unconvertible, call, conv
from verse.network.tracing import trace


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return type(m) in LAYERS or super().is_leaf_module(m, module_qualified_name)


def fold(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Weight and bias of one convolution that does both (in double precision)."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    bias = conv.bias.double() if conv.bias is not None else torch.zeros_like(scale)
    shift = (bias - norm.running_mean.double()) * scale + norm.bias.double()
    return (conv.weight.double() * scale[:, None, None, None]).float(), shift.float()


def convert_module(
    module: nn.Module,
    example: Tensor,
    *,
    metadata: Mapping[str, str] | None = None,
    output: str | Sequence[str] = "output",
) -> bytes:
    """An ONNX model with input "input" [n, …] (any n) that computes what ``module`` computes.

    A module that gives several tensors has a sequence of names in ``output``.

    >>> len(convert_module(nn.ReLU(), torch.zeros(1, 3))) > 50
    True
    """
    module.eval()
    try:
        traced = trace(_Tracer(), module)
    except Exception as error:  # control flow that depends on data raises whatever it likes
        raise Unconvertible(f"a forward that cannot be traced ({error})") from error
    layers = dict(module.named_modules())
    g, names = Graph(), dict[fx.Node, str]()
    folded: dict[fx.Node, tuple[Tensor, Tensor]] = {}
    last: object = ""
    for item in traced.nodes:
        args = fx.node.map_arg(item.args, lambda n: names[n])
        if item.op == "placeholder":
            if names:
                raise Unconvertible("a network with several inputs")
            names[item] = "input"
        elif item.op == "call_module":
            layer = layers[str(item.target)]
            norm = _find_norm(item, layers)
            source = item.args[0]
            if isinstance(layer, nn.Conv2d) and norm is not None:
                folded[item] = fold(layer, norm)
                names[item] = conv(g, layer, args[0], folded[item])
            elif isinstance(source, fx.Node) and source in folded:
                names[item] = names[source]  # this BatchNorm is inside the convolution
            elif type(layer) in LAYERS:
                names[item] = LAYERS[type(layer)](g, layer, args[0])
            else:
                raise Unconvertible(f"the layer {type(layer).__name__}")
        elif item.op in ("call_function", "call_method"):
            names[item] = call(g, item.target, args, fx.node.map_arg(item.kwargs, names.get))
        elif item.op == "output":
            last = args[0]
        else:
            names[item] = g.constant(_constant(module, str(item.target)))
    outputs = [output] if isinstance(output, str) else list(output)
    found = last if isinstance(last, tuple) else (last,)
    if len(found) != len(outputs) or not all(isinstance(name, str) for name in found):
        raise Unconvertible(f"a network with {len(found)} outputs instead of {len(outputs)}")
    with torch.no_grad():
        given = module(example)
    shapes = [t.shape for t in (given if isinstance(given, tuple) else (given,))]
    g.nodes += [wire.node("Identity", [f], o) for f, o in zip(found, outputs, strict=True)]
    dtype = str(example.dtype).removeprefix("torch.")
    return wire.model(
        g.nodes,
        g.constants,
        [wire.value("input", dtype, ["n", *example.shape[1:]])],
        [wire.value(o, "float32", ["n", *s[1:]]) for o, s in zip(outputs, shapes, strict=True)],
        metadata or {},
    )


def _constant(module: nn.Module, name: str) -> Tensor:
    """A tensor that a ``forward`` uses outside a layer."""
    owner, _, last = name.rpartition(".")
    value = getattr(module.get_submodule(owner), last, None)
    if not isinstance(value, Tensor):
        raise Unconvertible(f"{name}, which is no tensor")
    return value


def _find_norm(item: fx.Node, layers: Mapping[str, nn.Module]) -> nn.BatchNorm2d | None:
    """The BatchNorm that alone reads this convolution."""
    users = list(item.users)
    if len(users) != 1 or users[0].op != "call_module":
        return None
    norm = layers[str(users[0].target)]
    plain = isinstance(norm, nn.BatchNorm2d) and norm.running_var is not None and norm.affine
    return norm if plain and isinstance(norm, nn.BatchNorm2d) else None
