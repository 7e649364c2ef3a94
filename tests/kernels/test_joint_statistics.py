"""One covariance that follows every sample: against the plain solve, and classes that leave."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from verse.kernels.discriminant import within_class
from verse.kernels.joint_statistics import JointStatistics

CPU = torch.device("cpu")


def _stream(n: int, d: int, classes: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    y = torch.randint(classes, (n,), generator=g)
    y[:classes] = torch.arange(classes)
    mix = torch.randn(d, d, generator=g) / d**0.5
    centres = 3 + torch.randn(classes, d, generator=g)
    return centres[y] + torch.randn(n, d, generator=g) @ mix, y


def _taught(E: Tensor, y: Tensor) -> JointStatistics:
    statistics = JointStatistics(E.shape[1], CPU)
    for e, label in zip(E, y.tolist(), strict=True):
        if label == len(statistics.counts):
            statistics.add_class(label + 1, torch.zeros(0))
        statistics.add(e, label)
    return statistics


def _factorise_now(statistics: JointStatistics) -> None:
    """With the variance of now: a class without samples comes and leaves."""
    classes = len(statistics.counts)
    statistics.add_class(classes + 1, torch.zeros(statistics.d + 1))
    statistics.drop_class(classes, None, classes)


def _by_solving(E: Tensor, y: Tensor, test: Tensor) -> Tensor:
    """The same distances, from the definition, in float64."""
    classes, (n, d) = int(y.max()) + 1, E.shape
    means, covariance = within_class(E, y, classes)
    share = 0.1 + 0.4 * d / (d + 4 * n)
    guess = 0.5 * float((E - E.mean(0)).square().sum()) / n
    variance = (float(covariance.trace()) * n + 2 * guess) / (n - classes + 2) / d
    Sigma = (1 - share) * covariance + share * variance * torch.eye(d).double()
    gap = test.double()[:, None] - means
    return (gap * torch.linalg.solve(Sigma, gap.transpose(1, 2)).transpose(1, 2)).sum(2)


@pytest.mark.parametrize("d", [3, 40, 150])
@pytest.mark.parametrize("n", [9, 64, 65, 200, 777])
def test_distances_are_those_of_the_plain_solve(n: int, d: int) -> None:
    E, y = _stream(n, d, classes=4)
    test = 3 + torch.randn(20, d, generator=torch.Generator().manual_seed(1))
    statistics = _taught(E, y)
    exact = _by_solving(E, y, test)
    found = statistics.distances(test).double()
    # ρ is that of the last factorisation: at most an eighth of the samples ago
    assert torch.allclose(found, exact, rtol=0.13)
    _factorise_now(statistics)
    assert torch.allclose(statistics.distances(test).double(), exact, rtol=1e-4)


def test_what_follows_a_sample_is_what_solving_again_gives() -> None:
    E, y = _stream(300, 50, classes=5)
    statistics = _taught(E, y)
    while statistics.inverse.pending < 10:
        statistics.add(E[0] + torch.randn(50), 0)
    before = statistics.distances(E[:40])
    statistics.inverse.sum_up(statistics.inverse.ridge, 1)
    gap = E[:40, None] - statistics.means
    again = (gap * statistics.inverse.solve(gap.flatten(0, 1)).view_as(gap)).sum(2)
    assert torch.allclose(again * statistics.scale, before, rtol=1e-3)


def test_a_copy_from_any_moment_has_the_same_bits() -> None:
    E, y = _stream(200, 30, classes=4)
    whole, copy = _taught(E[:50], y[:50]), JointStatistics(30, CPU)
    for t in range(50, 200):
        if t in (50, 60, 71, 130, 180):
            copy = JointStatistics(30, CPU)
            copy.load_state({name: value.clone() for name, value in whole.state().items()})
        for each in (whole, copy):
            each.add(E[t], int(y[t]))
        assert torch.equal(whole.distances(E[:9]), copy.distances(E[:9]))


def test_a_reader_sees_what_was_there_when_it_followed() -> None:
    E, y = _stream(200, 10, classes=3)
    writer, reader = _taught(E[:150], y[:150]), JointStatistics(10, CPU)
    reader.follow(writer)
    before = reader.distances(E[:9]).clone()
    for e, label in zip(E[150:], y[150:].tolist(), strict=True):
        writer.add(e, label)
    assert torch.equal(reader.distances(E[:9]), before)
    assert not torch.equal(writer.distances(E[:9]), before)


@pytest.mark.parametrize("n", [40, 300])
def test_two_classes_become_one_as_if_they_always_were(n: int) -> None:
    E, y = _stream(n, 12, classes=3)
    merged = _taught(E, y)
    merged.drop_class(1, 0, 2)
    y = torch.where(y == 1, 0, y).clamp(max=1)
    order = torch.argsort(y, stable=True)  # labels arrive in order
    always = _taught(E[order], y[order])
    assert torch.allclose(merged.means, always.means, atol=1e-5)
    assert merged.counts.tolist() == always.counts.tolist()
    _factorise_now(always)
    assert torch.allclose(merged.distances(E), always.distances(E), rtol=1e-3)


@pytest.mark.parametrize("n", [40, 300])
def test_a_class_that_leaves_takes_its_mean_along(n: int) -> None:
    E, y = _stream(n, 12, classes=3)
    statistics = _taught(E, y)
    distances = statistics.distances(E)
    statistics.drop_class(1, None, 2)
    assert len(statistics.means) == 2
    # the covariance is the same, but for a share of the mean variance that knows fewer samples
    assert torch.allclose(statistics.distances(E), distances[:, [0, 2]], rtol=0.1)
    statistics.drop_class(0, None, 1)
    statistics.drop_class(0, None, 0)
    assert statistics.samples == 0
    statistics.add_class(1, torch.zeros(0))
    statistics.add(E[0], 0)
    assert torch.allclose(statistics.distances(E[:1]), torch.zeros(1, 1), atol=1e-3)


def test_samples_that_are_all_equal_leave_a_variance() -> None:
    statistics = JointStatistics(4, CPU)
    for y in range(2):
        statistics.add_class(y + 1, torch.zeros(0))
        for _ in range(100):
            statistics.add(torch.eye(4)[y], y)
    distances = statistics.distances(torch.eye(4)[:2])
    assert torch.isfinite(distances).all()
    assert distances.argmin(1).tolist() == [0, 1]


def test_the_centre_is_the_mean_of_all_samples() -> None:
    E, y = _stream(120, 8, classes=3)
    statistics = _taught(E, y)
    at_centre = statistics.distance_to_centre(E.mean(0, keepdim=True))
    assert float(at_centre) == pytest.approx(0, abs=1e-4)
    one_class = _taught(E, torch.zeros_like(y))
    assert torch.allclose(one_class.distance_to_centre(E), one_class.distances(E)[:, 0], rtol=1e-3)


@pytest.mark.parametrize("n", [60, 400])
def test_what_is_expected_is_what_new_samples_show(n: int) -> None:
    E, y = _stream(n + 500, 20, classes=4)
    statistics = _taught(E[:n], y[:n])
    own = statistics.distances(E[n:])[torch.arange(500), y[n:]].mean()
    assert statistics.usual_distance == pytest.approx(float(own), rel=0.25)


@pytest.mark.parametrize("d", [12, 300])
def test_answers_in_between_change_no_bit(d: int) -> None:
    E, y = _stream(400, d, classes=6)
    silent, asked = JointStatistics(d, CPU), JointStatistics(d, CPU)
    for t in range(400):
        for each in (silent, asked):
            if int(y[t]) == len(each.counts):
                each.add_class(len(each.counts) + 1, torch.zeros(0))
            each.add(E[t], int(y[t]))
        if t % 3:
            asked.evidence(E[:2])
    ours, theirs = silent.state(), asked.state()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("d", [12, 100])
def test_a_block_at_once_is_one_sample_after_another(d: int) -> None:
    """The plain way: W = M A⁻¹ solved anew in float64 after every sample."""
    E, y = _stream(333, d, classes=5)
    statistics = JointStatistics(d, CPU)
    for t in range(333):
        if int(y[t]) == len(statistics.counts):
            statistics.add_class(len(statistics.counts) + 1, torch.zeros(0))
        statistics.add(E[t], int(y[t]))
        if t < 5 or t % 7:
            continue
        A = statistics.inverse.total() + statistics.inverse.ridge * torch.eye(d).double()
        M = (statistics.means - statistics.origin).double()
        W = torch.linalg.solve(A, M.t()).t()
        assert torch.allclose(
            statistics.weights.double(), W, rtol=1e-3, atol=1e-4 * float(W.abs().max())
        )
        sizes = (M * W).sum(1)
        assert torch.allclose(statistics.sizes.double(), sizes, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("apart", "share"), [(0.0, 1.0), (1.0, 0.5), (3.0, 0.1)])
def test_the_share_of_the_variance_within_classes(apart: float, share: float) -> None:
    g = torch.Generator().manual_seed(0)
    y = torch.arange(400) % 20
    centres = torch.randn(20, 60, generator=g)
    statistics = _taught(apart * centres[y] + torch.randn(400, 60, generator=g), y)
    assert statistics.within == pytest.approx(share, rel=0.15)


def test_one_sample_says_nothing_of_the_variance_within_classes() -> None:
    assert _taught(torch.ones(1, 3), torch.tensor([0])).within == 0.5
