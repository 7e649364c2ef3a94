"""The supervised contrastive loss of a linear projection, with its gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def supervised_contrast(
    e: Tensor, projection: Tensor, y: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(loss, its gradient by e [n, d], its gradient by the projection [p, d]).

    P. Khosla et al., "Supervised contrastive learning", NeurIPS 2020, with one view of each sample.
    With φ the rows of e Pᵀ scaled to length one: the mean over all samples that have another one
    of their class of the mean over these others j of −log softmax over k ≠ i of φ_i·φ_k / τ, at j.
    Without any such pair it is zero.

    >>> e, P = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.eye(2)
    >>> loss, de, dP = supervised_contrast(e, P, torch.tensor([0, 0, 1]), 1.0)
    >>> round(float(loss), 4)  # log(1 + exp(-1))
    0.3133
    """
    with torch.enable_grad():
        e, projection = e.detach().requires_grad_(), projection.detach().requires_grad_()
        phi = normalize(e @ projection.t())
        self_ = torch.eye(len(y), dtype=torch.bool, device=e.device)
        log_p = torch.log_softmax((phi @ phi.t() / temperature).masked_fill(self_, -torch.inf), 1)
        pairs = (y.view(-1, 1) == y) & ~self_
        others = pairs.sum(1)
        each = -torch.where(pairs, log_p, 0.0).sum(1) / others.clamp(min=1)
        value = each.sum() / max(1, int((others > 0).sum()))
        de, dP = torch.autograd.grad(value, (e, projection))
    return value.detach(), de, dP
