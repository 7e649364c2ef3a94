"""Any user's network as a backbone: traced with torch.fx, cut before a layer or behind a map."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, fx, nn

from verse.backbones.base import Backbone, content_key, plastic
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.grid import grid_name, grid_size, with_grid
from verse.backbones.preprocess import Normalise, Preprocess, Preprocessor
from verse.network.tracing import trace
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
    at: str = "grid",
    *,
    grid: int | None = None,
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
    it, then F is the head alone. With ``at="grid"`` G is everything up to the last map, averaged to
    2 × 2 positions, and F is linear behind it. ``grid`` is another number of positions a side, or,
    beside a layer's name, asks for a grid of the map before that layer.

    ``preprocess`` is a ``Preprocess`` (default: ImageNet's constants, 224 pixels) or any function
    from an image to the input array of ``module``, without batch dimension; ``example`` is
    something it accepts, if not an RGB image. ``module`` itself stays as it is.

    >>> net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    >>> backbone = split(net, at="1", preprocess=Preprocess(size=8))
    >>> backbone.G.z_shape, backbone.F.head.d
    ((4, 6, 6), 144)
    >>> split(net, grid=3, preprocess=Preprocess(size=8)).G.z_shape
    (4, 3, 3)
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
    prepare = Preprocess() if preprocess is None else preprocess
    example = _probe() if example is None else example
    normalise: list[nn.Module] = []
    if isinstance(prepare, Preprocess):
        normalise = [Normalise(prepare.mean, prepare.std)]
    nodes = list(graph.nodes)
    size = grid_size(at) if at not in dict(module.named_modules()) else None
    positions = grid if grid is not None else size
    body: nn.Module
    if positions is None:
        front, body = _cut(module, nodes, at, tracer.inside)
    else:
        x = nn.Sequential(*normalise)(torch.from_numpy(np.stack([prepare(example)])))
        if size is not None:
            value, at = _last_map(module, graph, x), grid_name(positions)
        else:
            _, value = _before(module, nodes, at, tracer.inside)
            at = f"{at}-{grid_name(positions)}"
        map_ = _part(module, nodes[: nodes.index(value) + 1], None, value)
        front, body = with_grid(map_, x, positions), nn.Flatten(1)
    network = nn.Sequential(*normalise, front)
    G = FrozenNetwork(network, prepare, example=example, engine=engine, threads=threads)
    F = plastic(body, torch.zeros(1, *G.z_shape), precision=precision, batchnorm=batchnorm)
    # any function is known by what it makes of the example
    how = repr(prepare) if isinstance(prepare, Preprocess) else prepare(example).tobytes()
    return Backbone(name, at, G, F, content_key([name, at, how], [front, body]))


def _cut(
    module: nn.Module, nodes: list[fx.Node], at: str, inside: dict[fx.Node, tuple[str, ...]]
) -> tuple[nn.Module, nn.Module]:
    """The operations before the layer ``at``, and those from there to the final linear layer."""
    end = _final_linear(module, nodes)
    start, crossing = _before(module, nodes[: end + 1], at, inside)
    source = nodes[end].args[0]
    assert isinstance(source, fx.Node)
    front = _part(module, nodes[:start], None, crossing)
    if source is crossing:
        return front, nn.Identity()
    return front, _part(module, nodes[start:end], crossing, source)


def _before(
    module: nn.Module, nodes: list[fx.Node], at: str, inside: dict[fx.Node, tuple[str, ...]]
) -> tuple[int, fx.Node]:
    """Where the layer ``at`` begins, and the one value that it is given."""
    points = _points(nodes, inside)
    if at not in points:
        known = dict(module.named_modules())
        reason = "several values cross there" if at in known else "no layer has that name"
        raise BadSetting(f"cannot split at {at!r} ({reason}): use one of {', '.join(points)}")
    crossing = _find_boundary(nodes, points[at], len(nodes) - 1)
    assert crossing is not None
    return points[at], crossing


def _last_map(module: nn.Module, graph: fx.Graph, x: Tensor) -> fx.Node:
    """The last value [n, c, h, w] with more than one position."""
    maps: list[fx.Node] = []

    class Looking(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            value = super().run_node(n)
            is_map = isinstance(value, Tensor) and value.ndim == 4 and min(value.shape[2:]) > 1
            if is_map and n.op.startswith("call"):
                maps.append(n)
            return value

    with torch.no_grad():
        Looking(fx.GraphModule(module, graph)).run(x)
    if not maps:
        raise BadSetting(
            f"{type(module).__name__} makes no map [n, c, h, w]: name a layer to split at"
        )
    return maps[-1]


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
        if i > 1 and _find_boundary(nodes, i, len(nodes) - 1) is not None
    }


def _find_boundary(nodes: Sequence[fx.Node], start: int, end: int) -> fx.Node | None:
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
