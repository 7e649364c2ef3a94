"""Any user's network as a backbone: traced with torch.fx and cut before a named layer."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import fx, nn

from verse.backbones.base import Backbone, content_key, plastic
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.preprocess import Normalise, Preprocess, Preprocessor
from verse.kernels.tracing import trace
from verse.types import BadSetting

_OUT_OF_PLACE: dict[object, fx.node.Target] = {
    operator.iadd: operator.add,
    operator.imul: operator.mul,
    "relu_": "relu",
    "add_": "add",
    "mul_": "mul",
}


class _Tracer(fx.Tracer):
    """Remembers which modules every operation runs inside of."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: dict[fx.Node, tuple[str, ...]] = {}
        self._open: list[str] = []

    def call_module(self, m: nn.Module, forward: object, args: object, kwargs: object) -> object:
        self._open.append(self.path_of_module(m))
        try:
            return super().call_module(m, forward, args, kwargs)  # type: ignore[arg-type]
        finally:
            self._open.pop()

    def create_node(self, *args: object, **kwargs: object) -> fx.Node:
        node = super().create_node(*args, **kwargs)  # type: ignore[arg-type]
        self.inside[node] = tuple(self._open)
        return node


def split(
    module: nn.Module,
    at: str,
    *,
    preprocess: Preprocess | Preprocessor | None = None,
    example: object = None,
    name: str = "custom",
    engine: str = "auto",
    precision: str = "float32",
    batchnorm: str = "frozen",
    threads: int | None = None,
) -> Backbone:
    """G = everything before the layer named ``at``; F = from there to the final ``nn.Linear``.

    That last linear layer becomes F's growing head (its own weights are not used); ``at`` may name
    it, then F is the head alone. ``preprocess`` is a ``Preprocess`` (default: ImageNet's
    constants, 224 pixels) or any function from an image to the input array of ``module``, without
    batch dimension; ``example`` is something it accepts, if not an RGB image. ``module`` itself
    stays as it is.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> backbone = split(net, at="1", preprocess=Preprocess(size=8))
    >>> backbone.G.z_shape, backbone.F.head.d
    ((4, 6, 6), 144)
    """
    module = copy.deepcopy(module).eval()
    tracer = _Tracer()
    try:
        graph = trace(tracer, module)
    except Exception as error:  # control flow that depends on data raises whatever it likes
        raise BadSetting(
            f"{type(module).__name__} cannot be traced ({error}): split it by hand into two "
            "modules, and build Backbone from them"
        ) from error
    nodes = list(graph.nodes)
    end = _final_linear(module, nodes)
    points = _points(nodes[: end + 1], tracer.inside)
    if at not in points:
        known = dict(module.named_modules())
        reason = "several values cross there" if at in known else "no layer has that name"
        raise BadSetting(f"cannot split at {at!r} ({reason}): use one of {', '.join(points)}")
    start = points[at]
    crossing = _crossing(nodes, start, end)
    front = _part(module, nodes[:start], None, crossing)
    source = nodes[end].args[0]
    assert isinstance(source, fx.Node)
    body: nn.Module = nn.Identity()
    if source is not crossing:
        body = _part(module, nodes[start:end], crossing, source)
    prepare = Preprocess() if preprocess is None else preprocess
    network: nn.Module = front
    if isinstance(prepare, Preprocess):
        network = nn.Sequential(Normalise(prepare.mean, prepare.std), front)
    example = _probe() if example is None else example
    G = FrozenNetwork(network, prepare, example=example, engine=engine, threads=threads)
    F = plastic(body, torch.zeros(1, *G.z_shape), precision=precision, batchnorm=batchnorm)
    # any function is known by what it makes of the example
    how = repr(prepare) if isinstance(prepare, Preprocess) else prepare(example).tobytes()
    return Backbone(name, at, G, F, content_key([name, at, how], [front, body]))


def _probe() -> npt.NDArray[np.uint8]:
    """An image without symmetry, the same everywhere."""
    return (np.arange(64 * 48 * 3).reshape(64, 48, 3) * 37 % 251).astype(np.uint8)


def _final_linear(module: nn.Module, nodes: Sequence[fx.Node]) -> int:
    """The index of the linear layer whose result is the network's output."""
    if sum(node.op == "placeholder" for node in nodes) != 1:
        raise BadSetting(f"{type(module).__name__} must take one input")
    last = nodes[-1].args[0]
    if isinstance(last, fx.Node) and last.op == "call_module":
        layer = module.get_submodule(str(last.target))
        if isinstance(layer, nn.Linear):
            return nodes.index(last)
    raise BadSetting(f"{type(module).__name__} must end in an nn.Linear, which becomes the head")


def _points(nodes: Sequence[fx.Node], inside: dict[fx.Node, tuple[str, ...]]) -> dict[str, int]:
    """Layer names before which exactly one value crosses, with the index of their first node."""
    first: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in inside[node]:
            first.setdefault(name, i)
    first.pop("", None)
    return {
        name: i
        for name, i in first.items()
        if i > 1 and _crossing(nodes, i, len(nodes) - 1) is not None
    }


def _crossing(nodes: Sequence[fx.Node], start: int, end: int) -> fx.Node | None:
    """The one value computed before ``start`` that is used from there on; None if several are."""
    later = set(nodes[start : end + 1])
    values = [n for n in nodes[:start] if later.intersection(n.users)]
    needed = [n for n in values if n.op != "get_attr"]  # a parameter belongs to its user
    return needed[0] if len(needed) == 1 == len(values) and needed[0].op != "placeholder" else None


def _part(
    module: nn.Module, nodes: Sequence[fx.Node], source: fx.Node | None, result: fx.Node | None
) -> fx.GraphModule:
    """Some consecutive operations as a module of their own, from ``source`` to ``result``."""
    graph = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    if source is not None:
        made[source] = graph.placeholder("z")
    for node in nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
        made[node].target = _OUT_OF_PLACE.get(node.target, node.target)
        if "inplace" in node.kwargs:
            made[node].kwargs = {**made[node].kwargs, "inplace": False}
    assert result is not None
    graph.output(made[result])
    part = fx.GraphModule(module, graph)
    part.delete_all_unused_submodules()
    for layer in part.modules():
        if vars(layer).get("inplace"):
            vars(layer)["inplace"] = False  # z must stay as it is: it may lie in a memory
    return part.eval()
