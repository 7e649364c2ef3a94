"""Gradients turned so that old losses do not grow: the rules of A-GEM and GEM."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from verse.extras import OptionalImport
from verse.types import Refused

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
RIDGE = 1e-6  # relative to the mean squared norm: references may be collinear


def turn_from(g: Tensor, reference: Tensor) -> Tensor:
    """g − (g·r / r·r) r if g·r < 0, else g itself: the result never points against r.

    >>> turn_from(torch.tensor([1.0, -1.0]), torch.tensor([0.0, 2.0])).tolist()
    [1.0, 0.0]
    """
    product = torch.dot(g, reference)
    if product >= 0:
        return g
    return g - (product / torch.dot(reference, reference)) * reference


def turn_from_all(g: Tensor, references: Tensor, margin: float) -> Tensor:
    """The nearest vector with a non-negative product with every row of ``references`` [t, P].

    If all products are non-negative already, g itself. Otherwise Gᵀv + g, where v solves
    min ½ vᵀ G Gᵀ v + (G g)ᵀ v with v ≥ margin; a margin above 0 leans towards the references.

    >>> G = torch.eye(2, 3)
    >>> turned = turn_from_all(torch.tensor([-1.0, 2.0, 3.0]), G, margin=0.0)
    >>> torch.allclose(turned, torch.tensor([0.0, 2.0, 3.0]), atol=1e-5)
    True
    """
    products = references @ g
    if bool((products >= 0).all()):
        return g
    gram = (references @ references.t()).cpu().double().numpy()
    v = solve_bounded(gram, products.cpu().double().numpy(), margin)
    return g + torch.from_numpy(v).to(references) @ references


def solve_bounded(H: Floats, f: Floats, low: float) -> Floats:
    """argmin ½ vᵀHv + fᵀv with v ≥ low, by the active-set solver DAQP."""
    t = len(f)
    if not (np.isfinite(H).all() and np.isfinite(f).all()):
        raise Refused("the loss or its gradient is not finite; nothing was learned")
    scale = float(np.trace(H)) / t or 1.0  # the solver's tolerances are absolute
    solution = solver().solve(
        H / scale + RIDGE * np.eye(t),
        f / scale,
        np.zeros((0, t)),
        np.full(t, 1e30),
        np.full(t, low),
    )
    if solution[2] < 1:
        raise Refused(f"the quadratic program has no solution (code {solution[2]})")
    v: Floats = np.maximum(solution[0], low)
    return v


def solver() -> Any:
    """The QP library, an extra."""
    with OptionalImport():
        return import_module("daqp")
