"""Ridge regression of a stream equals that of the whole batch."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import one_hot

from verse.kernels.lazy_ridge import PENDING, LazyRidge
from verse.kernels.running_inverse import FIRST, MOST
from verse.kernels.running_ridge import LEAST, RunningRidge

D, CLASSES, RIDGE = 12, 5, 0.5
CPU = torch.device("cpu")


def data(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    y = torch.randint(CLASSES, (n,), generator=g)
    y[:CLASSES] = torch.arange(CLASSES)
    X = torch.randn(CLASSES, D, generator=g)[y] + torch.randn(n, D, generator=g)
    return torch.nn.functional.normalize(X), y


def batch(X: torch.Tensor, Y: torch.Tensor, ridge: float = RIDGE) -> torch.Tensor:
    """W of all samples at once."""
    X = X.double()
    return torch.linalg.solve(X.t() @ X + ridge * torch.eye(D).double(), X.t() @ Y.double()).t()


def teach(kind: type, X: torch.Tensor, y: torch.Tensor, ridge: float = RIDGE):
    regression = kind(D, ridge, CPU)
    for k in range(CLASSES):
        regression.add_class(k + 1, torch.zeros(D + 1))
    for x, label in zip(X, y.tolist(), strict=True):
        regression.add(x, label)
    return regression


@pytest.mark.parametrize("kind", [RunningRidge, LazyRidge])
@pytest.mark.parametrize("n", [CLASSES, FIRST, PENDING + 1, FIRST + MOST, 2000])
def test_equals_the_batch(kind: type, n: int) -> None:
    X, y = data(n)
    expected = batch(X, one_hot(y, CLASSES))
    assert torch.allclose(teach(kind, X, y).weights.double(), expected, atol=1e-4)


@pytest.mark.parametrize("kind", [RunningRidge, LazyRidge])
def test_classes_leave_and_merge_exactly(kind: type) -> None:
    X, y = data(300)
    left = teach(kind, X, y)
    left.drop_class(1, None, CLASSES - 1)
    without = one_hot(y, CLASSES)[:, [0, 2, 3, 4]]
    assert torch.allclose(left.weights.double(), batch(X, without), atol=1e-4)
    merged = teach(kind, X, y)
    merged.drop_class(3, 0, CLASSES - 1)
    joined = one_hot(torch.where(y == 3, 0, y), CLASSES)[:, [0, 1, 2, 4]]
    assert torch.allclose(merged.weights.double(), batch(X, joined), atol=1e-4)


@pytest.mark.parametrize("kind", [RunningRidge, LazyRidge])
def test_no_single_sample_of_a_class_that_left_is_saved(kind: type) -> None:
    X, y = data(20)
    regression = teach(kind, X, y)
    regression.drop_class(2, None, CLASSES - 1)
    saved = {name: rows for name, rows in regression.state().items() if rows.shape[1:] == (D,)}
    gone = X[y == 2]
    for name, rows in saved.items():
        if len(rows):
            assert float(torch.cdist(rows, gone).min()) > 1e-3, name


def test_a_ridge_too_small_for_single_precision_is_raised() -> None:
    X, y = data(FIRST + MOST)
    X[:, 1:] = X[:, :1]  # one direction only: without a penalty there is no inverse
    regression = teach(RunningRidge, X, y, ridge=1e-12)
    assert regression.inverse.ridge == pytest.approx(LEAST * regression.size)
    assert bool(torch.isfinite(regression.weights).all())
