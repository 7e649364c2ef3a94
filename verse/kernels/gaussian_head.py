"""A linear layer whose weights are independent Gaussians, on a given embedding.

Weights and biases together are ``mean`` and ``log_var`` [n, d + 1]; an embedding e [b, d] counts as
(e, 1). A score is then Gaussian too, with mean m = e·mean and variance v = e²·exp(log_var), so
drawing scores m + √v ε draws weights (the local reparameterisation of Kingma et al., NIPS 2015).
"""

from __future__ import annotations

import torch
from torch import Tensor


def with_one(e: Tensor) -> Tensor:
    """(e, 1): the bias is the weight of a constant.

    >>> with_one(torch.zeros(1, 2)).tolist()
    [[0.0, 0.0, 1.0]]
    """
    return torch.cat((e, e.new_ones(e.shape[0], 1)), 1)


def kl(mean: Tensor, log_var: Tensor, prior_mean: Tensor, prior_log_var: Tensor) -> Tensor:
    """KL(q ‖ p) of two such layers: ½ Σ [log v₀ − log v + (v + (m − m₀)²) / v₀ − 1].

    >>> float(kl(torch.ones(2), torch.zeros(2), torch.zeros(2), torch.zeros(2)))
    1.0
    """
    gap = (mean - prior_mean).square() + log_var.exp()
    return (prior_log_var - log_var + gap / prior_log_var.exp() - 1).sum() / 2


def kl_gradient(
    mean: Tensor, log_var: Tensor, prior_mean: Tensor, prior_log_var: Tensor
) -> tuple[Tensor, Tensor]:
    """d KL / d mean and d KL / d log_var.

    >>> kl_gradient(torch.ones(1), torch.zeros(1), torch.zeros(1), torch.zeros(1))
    (tensor([1.]), tensor([0.]))
    """
    precision = torch.exp(-prior_log_var)
    return (mean - prior_mean) * precision, (log_var.exp() * precision - 1) / 2


def expected_cross_entropy(
    e: Tensor, y: Tensor, mean: Tensor, log_var: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean over batch and draws of the cross-entropy, and its gradients by e, mean and log_var.

    ``noise`` [draws, b, n] is standard normal.
    """
    draws, b, _ = noise.shape
    one = with_one(e)
    var = log_var.exp()
    deviation = (one.square() @ var.t()).sqrt()  # [b, n]
    log_p = torch.log_softmax(one @ mean.t() + deviation * noise, 2)
    target = y.view(1, b, 1).expand(draws, b, 1)
    value = -log_p.gather(2, target).mean()
    ds = log_p.exp().scatter_add_(2, target, log_p.new_full((draws, b, 1), -1.0)).div_(draws * b)
    dm = ds.sum(0)
    dv = (ds * noise).sum(0) / (2 * deviation)
    de = dm @ mean + 2 * one * (dv @ var)
    return value, de[:, :-1], dm.t() @ one, (dv.t() @ one.square()) * var


def log_predictive(e: Tensor, mean: Tensor, log_var: Tensor, noise: Tensor) -> Tensor:
    """log of the mean over draws of softmax(scores) [b, n]; ``noise`` [draws, n] serves every row.

    >>> log_predictive(torch.ones(1, 2), torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(4, 2))
    tensor([[-0.6931, -0.6931]])
    """
    one = with_one(e)
    m, deviation = one @ mean.t(), (one.square() @ log_var.exp().t()).sqrt()
    total = torch.zeros_like(m)
    for draw in noise:  # a draw at a time: [draws, b, n] would not fit for thousands of rows
        total += torch.softmax(m + deviation * draw, 1)
    tiny = torch.finfo(total.dtype).tiny  # a class may have no probability in any draw
    return (total / noise.shape[0]).clamp_min_(tiny).log_()
