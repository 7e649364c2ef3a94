"""From a PyTorch module to an ONNX model: trace, fold BatchNorm, write one node per layer."""

from __future__ import annotations

from collections.abc import Mapping

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


def convert(
    module: nn.Module,
    example: Tensor,
    *,
    metadata: Mapping[str, str] | None = None,
    output: str = "output",
) -> bytes:
    """An ONNX model with input "input" [n, …] (any n) that computes what ``module`` computes.

    >>> len(convert(nn.ReLU(), torch.zeros(1, 3))) > 50
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
    last = ""
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
            raise Unconvertible(f"a parameter used outside a layer ({item.target})")
    if not isinstance(last, str):
        raise Unconvertible("a network with several outputs")
    with torch.no_grad():
        shape = module(example).shape
    g.nodes.append(wire.node("Identity", [last], output))
    dtype = str(example.dtype).removeprefix("torch.")
    return wire.model(
        g.nodes,
        g.constants,
        [wire.value("input", dtype, ["n", *example.shape[1:]])],
        [wire.value(output, "float32", ["n", *shape[1:]])],
        metadata or {},
    )


def _find_norm(item: fx.Node, layers: Mapping[str, nn.Module]) -> nn.BatchNorm2d | None:
    """The BatchNorm that alone reads this convolution."""
    users = list(item.users)
    if len(users) != 1 or users[0].op != "call_module":
        return None
    norm = layers[str(users[0].target)]
    plain = isinstance(norm, nn.BatchNorm2d) and norm.running_var is not None and norm.affine
    return norm if plain and isinstance(norm, nn.BatchNorm2d) else None
