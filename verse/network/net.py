"""A plastic network bound to one vector of parameters: scores, embeddings and gradients of it."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from verse.kernels.losses import Loss, stack_losses
from verse.network.fusion import Unit, fuse
from verse.network.plastic import Plastic, head_capacity
from verse.network.products import Floats, multiply
from verse.network.vector import Layout, Vector


def layout_of(F: Plastic, n: int, taps_first: Collection[str] = ()) -> Layout:
    """Where the parameters of F lie with a head of ``n`` classes; the head comes last."""
    capacity = head_capacity(n)
    body = [(f"body.{k}", tuple(p.shape)) for k, p in F.body.named_parameters()]
    head = [("head.weight", (capacity, F.head.d)), ("head.bias", (capacity,))]
    return Layout(body + head, channels_last=F.channels_last, taps_first=taps_first)


def _adjacent(a: Tensor, b: Tensor) -> bool:
    """Does ``b`` lie right behind ``a``, as batches of one gather do?"""
    return (
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
        and a.is_contiguous()
        and b.is_contiguous()
        and a.storage_offset() + a.numel() == b.storage_offset()
    )


def _join(a: Tensor, b: Tensor) -> Tensor:
    """Both batches as one, without a copy where they are adjacent."""
    if _adjacent(a, b):
        return a.as_strided((a.shape[0] + b.shape[0], *a.shape[1:]), a.stride())
    return torch.cat((a, b))


class Net(Vector):
    """F_θ, with θ = ``data``. Its module's parameters are views of ``data`` (or, for bfloat16
    computation, a rounded copy that ``sync`` refreshes), and their gradients views of ``grad``.

    Batch-normalisation statistics, which move only with ``batchnorm="train"``, are ``stats``.

    Parameters
    ----------
    F
        The network; a copy of it is trained.

    >>> from verse.network.plastic import Head
    >>> net = Net(Plastic(nn.Identity(), Head(2), z_shape=(2,)))
    >>> net.grow_to(3)
    >>> net.scores(torch.ones(1, 2)).tolist()
    [[0.0, 0.0, 0.0]]
    """

    def __init__(self, F: Plastic) -> None:
        device = F.head.weight.device
        self.module = copy.deepcopy(F)
        self._body, self.units = self.module.body, list[Unit]()
        if F.precision == "float32":
            frozen = F.batchnorm == "frozen"
            self._body, self.units = fuse(self.module.body, F.z_shape, norms=frozen)
        taps_first = {f"body.{u.name}.weight" for u in self.units if u.fast}
        super().__init__(layout_of(F, F.head.n, taps_first), device)
        self.module.requires_grad_(True)
        self.module.eval()
        self.n = F.head.n
        self.channels_last = F.channels_last
        self._norms = [
            m for m in self.module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)
        ]
        self._momenta = [m.momentum for m in self._norms]
        for norm in self._norms:
            norm.num_batches_tracked = None  # a counter nobody reads would be one more state
        self.trains_norms = F.batchnorm == "train" and bool(self._norms)
        self.stats = self._gather_stats(device)
        self._half = {
            f"body.{k}"
            for k, p in self.module.body.named_parameters()
            if F.precision == "bfloat16" and p.dim() > 1
        }
        self._copy_in(self.module)
        self._bind()

    # ---- storage ----------------------------------------------------------------------------

    def _gather_stats(self, device: torch.device) -> Tensor:
        """Running means and variances of all normalisations as views of one vector."""
        sizes = [
            b.numel()
            for norm in self._norms
            for b in (norm.running_mean, norm.running_var)
            if b is not None
        ]
        flat, at = torch.zeros(sum(sizes), device=device), 0
        for norm in self._norms:
            for name in ("running_mean", "running_var"):
                old = getattr(norm, name)
                view = flat[at : at + old.numel()]
                view.copy_(old)
                setattr(norm, name, view)
                at += old.numel()
        return flat

    def _copy_in(self, F: Plastic) -> None:
        for slot in self.layout.slots:
            slot.view(self.data).copy_(F.get_parameter(slot.name).detach())

    def _bind(self) -> None:
        """Point the module's parameters and their gradients at the vectors."""
        self.grad = torch.zeros_like(self.data)
        rounded = self.data.to(torch.bfloat16) if self._half else None
        half_grad = torch.zeros_like(rounded) if rounded is not None else None
        self._rounded: list[tuple[Tensor, Tensor]] = []  # (compute copy, master)
        self._half_grads: list[tuple[Tensor, Tensor]] = []  # (compute gradient, master gradient)
        for slot in self.layout.slots:
            parameter = self.module.get_parameter(slot.name)
            master, gradient = slot.view(self.data), slot.view(self.grad)
            parameter.grad = None
            if slot.name in self._half:
                assert rounded is not None and half_grad is not None
                parameter.data = slot.view(rounded)
                parameter.grad = slot.view(half_grad)
                self._rounded.append((parameter.data, master))
                self._half_grads.append((parameter.grad, gradient))
            else:
                parameter.data = master
                parameter.grad = gradient
        for unit in self.units:
            unit.bind(self.data)
        written = {id(p) for unit in self.units for p in unit.parameters()}
        self.adds_gradients = any(id(p) not in written for p in self.module.body.parameters())
        self._half_flat = half_grad
        self._body_size = self.layout.slots[-2].offset
        self._body_trains = self._body_size > 0
        self.linear = type(self.module.body) in (nn.Identity, nn.Flatten) and not self._half
        self._weight = self.module.head.weight.data
        self._bias = self.module.head.bias.data
        self._weight_grad = self.layout.slots[-2].view(self.grad)
        self._bias_grad = self.layout.slots[-1].view(self.grad)
        self.module.head.n = self.n
        self._on_processor = self.data.device.type == "cpu"

    def sync(self) -> None:
        """Refresh what was derived from ``data`` after it changed."""
        if self._rounded:
            torch._foreach_copy_([c for c, _ in self._rounded], [m for _, m in self._rounded])

    def grow_to(self, n: int) -> None:
        """Have ``n`` outputs, more or fewer; new rows are zero."""
        if n == self.n:
            return
        layout = self.layout.for_classes(n)
        if layout != self.layout:
            self.move_to(layout)
            self.n = n
            self._bind()
        self._set_outputs(n)

    def _set_outputs(self, n: int) -> None:
        before, self.n = self.n, n
        self.module.head.n = n
        # ``gradient`` writes live rows only; a row that was live and is no more must not linger
        self._weight_grad[n:before].zero_()
        self._bias_grad[n:before].zero_()

    def add_class(self, classes: int, row: Tensor) -> None:
        self.grow_to(classes)
        views, d = self.layout.views(self.data), self.module.head.d
        views["head.weight"][classes - 1] = row[:d]
        views["head.bias"][classes - 1] = row[d]
        self.sync()

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        self._close_row(output)
        self.grow_to(classes)
        self.sync()
        return 0

    def mark(self) -> Any:
        return super().mark(), self.n, self.stats.clone() if self.trains_norms else None

    def undo(self, mark: Any) -> None:
        vector, n, stats = mark
        if stats is not None:
            self.stats.copy_(stats)
        if vector[1] is not self.data:
            super().undo(vector)
            self.n = n
            self._bind()
        if n != self.n:
            self._set_outputs(n)
            for slot in self.layout.slots[-2:]:
                slot.view(self.data)[n:] = 0
        self.sync()

    def follow(self, other: Any) -> None:
        self.grow_to(other.n)
        self.assign(other)

    def copy(self) -> Net:
        """An independent network with the same parameters."""
        twin = Net(self.module)
        twin.assign(self)
        return twin

    def freeze(self, weight: Tensor | None = None, bias: Tensor | None = None) -> Plastic:
        """The same network with float32 weights of its own, or behind it another linear layer
        (weight [classes, d], bias [classes])."""
        F = copy.deepcopy(self.module).requires_grad_(False)
        for slot in self.layout.slots:
            F.get_parameter(slot.name).data = slot.view(self.data).clone()
        if weight is not None and bias is not None:
            F.head.weight.data, F.head.bias.data = weight.clone(), bias.clone()
            F.head.n = weight.shape[0]
        return F

    def assign(self, other: Net) -> None:
        """Take over another network's parameters and statistics, in place."""
        self.data.copy_(other.data)
        self.stats.copy_(other.stats)
        self.sync()

    def step_from(self, origin: Net, gradient: Tensor, lr: float) -> None:
        """Become origin − lr · gradient (origin may have grown or shrunk meanwhile)."""
        self.grow_to(origin.n)
        torch.add(origin.data, gradient, alpha=-lr, out=self.data)
        self.stats.copy_(origin.stats)
        self.sync()

    # ---- computing --------------------------------------------------------------------------

    def _input(self, Z: Tensor) -> Tensor:
        """Stored features [n, h, w, c] of a channels-last network as [n, c, h, w], no copy."""
        Z = Z.permute(0, 3, 1, 2) if self.channels_last and Z.dim() == 4 else Z
        return Z.to(torch.bfloat16) if self._half else Z

    @property
    def head(self) -> tuple[Tensor, Tensor]:
        """(weight [classes, d], bias [classes]) as views: writing to them writes to θ."""
        return self._weight[: self.n], self._bias[: self.n]

    @property
    def head_gradient(self) -> tuple[Tensor, Tensor]:
        """The same of the gradient."""
        return self._weight_grad[: self.n], self._bias_grad[: self.n]

    def embed(self, Z: Tensor) -> Tensor:
        """The embedding [n, d] before the head."""
        if self.linear:
            return Z.flatten(1)
        with torch.no_grad():
            e: Tensor = self._body(self._input(Z)).float()
        return e

    def scores(self, Z: Tensor) -> Tensor:
        """Scores [n, classes]."""
        return self._score(self.embed(Z))

    def _score(self, e: Tensor) -> Tensor:
        """Scores of embeddings."""
        if self._on_processor:
            return torch.from_numpy(self.score_rows(e.numpy()))
        return torch.addmm(self._bias[: self.n], e, self._weight[: self.n].t())

    def score_rows(self, E: Floats) -> Floats:
        """Scores [m, classes] of embeddings [m, d], on the processor."""
        weight, bias = self.head
        S = np.empty((len(E), self.n), np.float32)
        with np.errstate(all="ignore"):  # the caller judges what is not finite
            multiply(E, weight.numpy().T, S)
            S += bias.numpy()
        return S

    def gradient(self, Z: Tensor, loss: Loss, *, move_stats: bool = True) -> tuple[Tensor, Tensor]:
        """(loss value, its gradient as a vector). The vector is overwritten by the next call.

        The head is differentiated by hand; automatic differentiation serves the body alone.
        ``move_stats=False`` keeps running statistics still in ``batchnorm="train"``.
        """

        def at_embedding(e: Tensor) -> tuple[Tensor, Tensor]:
            value, ds = loss(self._score(e))
            self.write_head_gradient(ds, e)
            return value, ds @ self._weight[: self.n] if self._body_trains else e

        return self.body_gradient(Z, at_embedding, move_stats=move_stats)

    def write_head_gradient(self, ds: Tensor, e: Tensor) -> None:
        """The head's part of ``grad``, from d loss / d scores and the embeddings [m, d]."""
        weight, bias = self.head_gradient
        if self._on_processor:
            with np.errstate(all="ignore"):
                multiply(ds.numpy().T, e.numpy(), weight.numpy())
        else:
            torch.mm(ds.t(), e, out=weight)
        torch.sum(ds, 0, out=bias)

    def body_gradient(
        self, Z: Tensor, loss: Loss, *, move_stats: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Like ``gradient`` for a loss of the embedding [n, d], which returns (value, d loss / de).

        It leaves the head's part of the vector to the caller.
        """
        if self.linear:
            return loss(Z.flatten(1))[0], self.grad
        if self.trains_norms:
            self._set_training(True, move_stats)
        try:
            if self._body_trains:
                with torch.enable_grad():
                    embedding = self._body(self._input(Z))
            else:
                embedding = self._body(self._input(Z))
            value, de = loss(embedding.detach().float())
            if self._body_trains:
                if self.adds_gradients:  # units overwrite, everything else adds to its gradient
                    self.grad[: self._body_size].zero_()
                if self._half_flat is not None:
                    self._half_flat[: self._body_size].zero_()
                embedding.backward(de.to(embedding.dtype))
                if self._half_grads:
                    torch._foreach_copy_(
                        [m for _, m in self._half_grads], [c for c, _ in self._half_grads]
                    )
        finally:
            if self.trains_norms:
                self._set_training(False, True)
        return value, self.grad

    def joint_gradient(
        self, Z_a: Tensor, loss_a: Loss, Z_b: Tensor, loss_b: Loss
    ) -> tuple[Tensor, Tensor]:
        """The gradient of loss_a on Z_a plus loss_b on Z_b, by one forward where that is the same.

        Where batches are normalised by their own statistics the two go separately, and only the
        first moves the running statistics.
        """
        if not self.trains_norms:
            if _adjacent(Z_b, Z_a):
                Z_a, loss_a, Z_b, loss_b = Z_b, loss_b, Z_a, loss_a
            return self.gradient(_join(Z_a, Z_b), stack_losses(loss_a, Z_a.shape[0], loss_b))
        value_a, gradient = self.gradient(Z_a, loss_a)
        first = gradient.clone()
        value_b, gradient = self.gradient(Z_b, loss_b, move_stats=False)
        return value_a + value_b, gradient.add_(first)

    def _set_training(self, training: bool, move_stats: bool) -> None:
        for norm, momentum in zip(self._norms, self._momenta, strict=True):
            norm.training = training
            norm.momentum = momentum if move_stats else 0.0

    # ---- state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Live parameters only: the head's unused rows are zero by definition."""
        state = super().state()
        state["head.weight"] = state["head.weight"][: self.n]
        state["head.bias"] = state["head.bias"][: self.n]
        if self.trains_norms:
            state["stats"] = self.stats
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        n = int(state["head.bias"].shape[0])
        self.grow_to(n)
        self.data.zero_()
        for slot in self.layout.slots:
            value = state[slot.name]
            slot.view(self.data)[: value.shape[0]].copy_(value)
        if self.trains_norms:
            self.stats.copy_(state["stats"])
        self.sync()
