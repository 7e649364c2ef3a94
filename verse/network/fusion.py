"""The body of a plastic network with its convolutions computed the fast way.

``fused(body)`` traces the body, and puts a ``Unit`` in place of every convolution for which there
is a faster form, together with the frozen normalisation and the activation behind it. Everything
else runs as it is. The units use the body's own parameters: nothing is copied.

With frozen statistics a normalisation is y ↦ s ⊙ y + t, where s = γ/σ and t = β − μ s. A unit
writes the gradients of its parameters where they belong instead of adding to them.
"""

from __future__ import annotations

import itertools
import operator
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.autograd.function import once_differentiable

from verse.network.conv3x3 import Conv3x3
from verse.network.products import multiply_tensors
from verse.network.same_conv import SameConv
from verse.network.scratch import scratch
from verse.network.tracing import trace
from verse.network.winograd import LARGEST_MAP

_ACTIVATIONS: dict[object, float] = {
    nn.ReLU: float("inf"),
    nn.ReLU6: 6.0,
    torch.relu: float("inf"),
    nn.functional.relu: float("inf"),
    nn.functional.relu6: 6.0,
}
_NARROW = 32  # with fewer channels the transforms cost as much as they spare
_serial = itertools.count()


class Unit(nn.Module):
    """A convolution with the frozen normalisation and the activation that follow it, if any.

    ``top`` is where the activation saturates (∞ for ReLU), None without one. ``flat`` is the
    vector that holds the weights; its version tells whether they changed. The result of an
    ``inner`` unit is used inside the body only.
    """

    def __init__(
        self,
        name: str,
        conv: nn.Conv2d,
        norm: nn.BatchNorm2d | None,
        top: float | None,
        *,
        inner: bool,
    ) -> None:
        super().__init__()
        self.inner = inner
        self.name, self.conv, self.norm, self.top = name, conv, norm, top
        self.fast = Conv3x3(name) if conv.kernel_size == (3, 3) else None
        self.bind(conv.weight.detach())

    def bind(self, flat: Tensor) -> None:
        self.flat = flat
        self.serial = next(_serial)

    @property
    def key(self) -> object:
        return self.serial, self.flat._version

    def forward(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return (_wide if self.fast else _thin)(None, x, self)
        y: Tensor = _Run.apply(x, self.conv.weight, self)  # type: ignore[no-untyped-call]
        return y

    def affine(self) -> tuple[Tensor, Tensor, Tensor]:
        """s, t and 1/σ."""
        norm = self.norm
        assert norm is not None and norm.running_mean is not None and norm.running_var is not None
        inverse = torch.rsqrt(norm.running_var + norm.eps)
        scale = norm.weight.detach() * inverse
        return scale, torch.addcmul(norm.bias.detach(), norm.running_mean, scale, value=-1), inverse

    def activate(self, y: Tensor) -> Tensor:
        if self.top is None:
            return y
        return y.relu_() if self.top == float("inf") else y.clamp_(0.0, self.top)

    def gate(self, dy: Tensor, y: Tensor) -> Tensor:
        """d/d(input) of the activation, given its output; contiguous."""
        if self.top is None:
            return dy.contiguous()
        g = self.buffer("gate", tuple(y.shape), y)
        # y is clamped already; the open interval is the one in which the activation is linear
        if self.top == float("inf"):
            torch.ops.aten.threshold_backward.grad_input(dy, y, 0.0, grad_input=g)
        else:
            torch.ops.aten.hardtanh_backward.grad_input(dy, y, 0.0, self.top, grad_input=g)
        return g

    def buffer(self, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Storage that is used only until the next batch."""
        return scratch.take(f"{self.name}.{name}", shape, like.device)

    def write(self, products: Tensor, beta: Tensor, inverse: Tensor) -> None:
        """d/dγ = (Σ g·y − μ Σ g) / σ and d/dβ = Σ g, from the sums."""
        norm = self.norm
        assert norm is not None and norm.weight.grad is not None and norm.bias.grad is not None
        assert norm.running_mean is not None
        torch.addcmul(products, norm.running_mean, beta, value=-1, out=norm.weight.grad)
        norm.weight.grad.mul_(inverse)
        norm.bias.grad.copy_(beta)


class _Run(torch.autograd.Function):
    """A unit as one node of the graph; [n, c, h, w] outside, whatever is fastest inside.

    ``weight`` is there for autograd to know that something learns.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, unit: Unit) -> Tensor:  # noqa: ARG004
        ctx.unit = unit
        return (_wide if unit.fast else _thin)(ctx, x, unit)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, None, None]:
        return (_wide_back if ctx.unit.fast else _thin_back)(ctx, dy), None, None


def _wide(ctx: Any, x: Tensor, unit: Unit) -> Tensor:
    """3×3: maps as [h, w, n, c]. Without ``ctx`` nothing is kept for a gradient."""
    assert unit.fast is not None
    X = x.permute(2, 3, 0, 1).contiguous()
    W = unit.conv.weight.detach().permute(2, 3, 1, 0)
    if ctx is None:
        raw = unit.fast.answer(X, W, unit.key)
    else:
        shape = (*X.shape[:3], W.shape[3])
        raw = unit.buffer("raw", shape, x) if unit.norm is not None else x.new_empty(shape)
        ctx.saved, ctx.key = unit.fast.forward(X, W, unit.key, raw), unit.key
    y = raw
    if unit.norm is not None:
        scale, shift, _ = unit.affine()
        y = unit.activate(torch.addcmul(shift, raw, scale))
    else:
        y = unit.activate(raw)
    if ctx is not None:
        ctx.raw, ctx.y = raw, y.detach()
    return y.permute(2, 3, 0, 1)


def _wide_back(ctx: Any, dy: Tensor) -> Tensor | None:
    unit: Unit = ctx.unit
    assert unit.fast is not None and unit.conv.weight.grad is not None
    g = unit.gate(dy.permute(2, 3, 0, 1), ctx.y)
    if unit.norm is not None:
        rows = g.view(-1, g.shape[3])
        beta = rows.sum(0)
        scale, _, inverse = unit.affine()
        scaled = unit.buffer("back", tuple(g.shape), g)
        torch.mul(g, ctx.raw, out=scaled)
        unit.write(scaled.view(rows.shape).sum(0), beta, inverse)
        g = torch.mul(g, scale, out=scaled)
    dx = unit.fast.backward(
        g,
        ctx.saved,
        unit.conv.weight.detach().permute(2, 3, 1, 0),
        unit.conv.weight.grad.permute(2, 3, 1, 0),
        ctx.key,
        need_dx=ctx.needs_input_grad[0],
    )
    return None if dx is None else dx.permute(2, 3, 0, 1)


def _thin(ctx: Any, x: Tensor, unit: Unit) -> Tensor:
    """1×1: one product over all positions, the normalisation folded into the weights."""
    n, c, high, wide = x.shape
    X = x.permute(0, 2, 3, 1).reshape(-1, c)
    W = unit.conv.weight.detach().flatten(1)
    shape = (X.shape[0], W.shape[0])
    rows = unit.buffer("y", shape, x) if unit.inner else x.new_empty(shape)
    if unit.norm is not None:
        scale, shift, _ = unit.affine()
        multiply_tensors(X, (W * scale.unsqueeze(1)).t(), rows).add_(shift)
    else:
        multiply_tensors(X, W.t(), rows)
    y = unit.activate(rows).view(n, high, wide, -1).permute(0, 3, 1, 2)
    if ctx is not None:
        ctx.X, ctx.y = X, y.detach()
    return y


def _thin_back(ctx: Any, dy: Tensor) -> Tensor | None:
    unit: Unit = ctx.unit
    weight = unit.conv.weight
    assert weight.grad is not None
    W, dW = weight.detach().flatten(1), weight.grad.view(weight.shape[:2])
    n, c, high, wide = ctx.y.shape
    g = unit.gate(dy.permute(0, 2, 3, 1), ctx.y.permute(0, 2, 3, 1)).view(-1, c)
    multiply_tensors(g.t(), ctx.X, dW)
    if unit.norm is not None:
        # Σ g · (w·x) over positions = w · dW: the products themselves need not be kept
        scale, _, inverse = unit.affine()
        unit.write(torch.linalg.vecdot(dW, W, dim=1), g.sum(0), inverse)
        dW.mul_(scale.unsqueeze(1))
        W = W * scale.unsqueeze(1) if ctx.needs_input_grad[0] else W
    if not ctx.needs_input_grad[0]:
        return None
    dx = multiply_tensors(g, W, g.new_empty(g.shape[0], W.shape[1]))
    return dx.view(n, high, wide, -1).permute(0, 3, 1, 2)


class Pool(nn.Module):
    """The mean over all positions; its gradient stays a view that repeats one row."""

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = _Mean.apply(x)  # type: ignore[no-untyped-call]
        return y


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.shape = x.shape
        return x.mean((2, 3))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        n, c, high, wide = ctx.shape
        dx: Tensor = (dy / (high * wide)).view(n, c, 1, 1).expand(ctx.shape)
        return dx


# ---- finding what can be fused ----------------------------------------------------------------


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, SameConv) or super().is_leaf_module(m, module_qualified_name)


def taps_first(body: nn.Module, z_shape: tuple[int, ...]) -> frozenset[str]:
    """Names of the 3×3 weights for which ``fuse`` takes the order [3, 3, in, out]."""
    if len(z_shape) != 3 or max(z_shape[1:]) > LARGEST_MAP:
        return frozenset()
    return frozenset(f"{name}.weight" for name, conv in body.named_modules() if _is_wide(conv))


def _is_wide(module: nn.Module) -> bool:
    return (
        type(module) is nn.Conv2d
        and module.kernel_size == (3, 3)
        and module.stride == (1, 1)
        and module.padding == (1, 1)
        and module.padding_mode == "zeros"
        and module.dilation == (1, 1)
        and module.groups == 1
        and module.bias is None
        and min(module.weight.shape[:2]) >= _NARROW
    )


def _is_thin(module: nn.Module) -> bool:
    return (
        type(module) in (nn.Conv2d, SameConv)
        and isinstance(module, nn.Conv2d)
        and module.kernel_size == (1, 1)
        and module.stride == (1, 1)
        and module.padding == (0, 0)
        and module.groups == 1
        and module.bias is None
    )


def fuse(body: nn.Module, z_shape: tuple[int, ...], *, norms: bool) -> tuple[nn.Module, list[Unit]]:
    """(the fast form of ``body``, its units); without any it is the body itself.

    ``norms`` says whether normalisations are frozen, so that they can be part of a unit.
    """
    wide = taps_first(body, z_shape)
    convs = {
        n: m
        for n, m in body.named_modules()
        if isinstance(m, nn.Conv2d) and (f"{n}.weight" in wide or _is_thin(m))
    }
    if len(z_shape) != 3 or not convs:
        return body, []
    try:
        graph = trace(_Tracer(), body)
    except Exception:  # any Python may be in a user's forward; then it runs as it is
        return body, []
    modules = dict(body.named_modules())
    calls: dict[str, int] = {}
    for node in graph.nodes:
        if node.op == "call_module":
            calls[node.target] = calls.get(node.target, 0) + 1
    made: dict[str, nn.Module] = {}
    units: list[Unit] = []
    for node in list(graph.nodes):
        if node.op == "call_module" and node.target in convs and calls[node.target] == 1:
            end, norm, top = _tail(node, modules, calls, norms)
            inner = all(
                user.op == "call_module" and _reads(modules[user.target]) for user in end.users
            )
            unit = Unit(node.target, convs[node.target], norm, top, inner=inner)
            units.append(unit)
            _replace(graph, node, end, made, unit)
        elif node.op == "call_module" and _is_pool(modules[node.target]):
            users = list(node.users)
            if len(users) == 1 and _is_flatten(users[0], modules):
                _replace(graph, node, users[0], made, Pool())
    if not units:
        return body, []
    remaining = {n.target for n in graph.nodes if n.op in ("call_module", "get_attr")}
    parts: dict[str, Any] = {**made}
    for target in remaining - made.keys():
        parts[target] = operator.attrgetter(target)(body)
    graph.lint()
    return fx.GraphModule(parts, graph), units


def _replace(
    graph: fx.Graph, first: fx.Node, last: fx.Node, made: dict[str, nn.Module], part: nn.Module
) -> None:
    name = f"fast_{len(made)}"
    made[name] = part
    with graph.inserting_after(last):
        node = graph.call_module(name, (first.args[0],))
    last.replace_all_uses_with(node)
    while last is not first:
        before = last.args[0]
        assert isinstance(before, fx.Node)
        graph.erase_node(last)
        last = before
    graph.erase_node(first)


def _tail(
    node: fx.Node, modules: dict[str, nn.Module], calls: dict[str, int], norms: bool
) -> tuple[fx.Node, nn.BatchNorm2d | None, float | None]:
    """The last node of convolution → frozen normalisation → activation, and what they are."""
    norm = None
    user = _only_user(node)
    if norms and user is not None and user.op == "call_module":
        module = modules[str(user.target)]
        if (
            type(module) is nn.BatchNorm2d
            and module.affine
            and module.track_running_stats
            and calls[str(user.target)] == 1
        ):
            norm, node = module, user
            user = _only_user(node)
    if user is not None and len(user.args) == 1:
        what = type(modules[str(user.target)]) if user.op == "call_module" else user.target
        if what in _ACTIVATIONS:
            return user, norm, _ACTIVATIONS[what]
    return node, norm, None


def _reads(module: nn.Module) -> bool:
    """Does it make a new tensor from its input, so that the input may be overwritten later?"""
    return isinstance(module, nn.Conv2d | nn.AdaptiveAvgPool2d) or type(module) is nn.BatchNorm2d


def _only_user(node: fx.Node) -> fx.Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 else None


def _is_pool(module: nn.Module) -> bool:
    return type(module) is nn.AdaptiveAvgPool2d and module.output_size in (1, (1, 1))


def _is_flatten(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        module = modules[str(node.target)]
        return type(module) is nn.Flatten and module.start_dim == 1 and module.end_dim == -1
    return node.op == "call_function" and node.target is torch.flatten and node.args[1:] == (1,)
