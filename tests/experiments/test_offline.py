"""What Ω divides by: closed forms, what is chosen on held-out videos, and the gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from verse.checks import small_network
from verse.evaluate import Samples
from verse.experiments import Run, execute, in_order, prepare
from verse.experiments.closed_forms import SHRINKAGES, Sums, features_of, iterate_features
from verse.experiments.offline import ClosedForms, WeakOffline, bounds, files
from verse.experiments.prepare import ignore
from verse.experiments.reference import (
    BATCH,
    SGD,
    STEPS,
    OfflineChoice,
    choose_offline,
    hold_out,
    recipe,
)
from verse.experiments.result import ALLOWED, Bound

Toy = Callable[..., Run]


def points(seed: int, n: int = 400) -> tuple[torch.Tensor, np.ndarray]:
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(5, 12))
    y = random.integers(0, 5, n)
    return torch.from_numpy(centres[y] + random.normal(size=(n, 12))), y + 3


def test_discriminant_analysis_is_that_of_scikit_learn() -> None:
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    (E, y), (E_test, _) = points(0), points(1)
    sums = Sums()
    for part in np.array_split(np.arange(len(y)), 7):  # in parts or at once: the same
        sums.add(E[part], y[part])
    model = analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1, priors=[0.2] * 5)
    expected = model.fit(E.numpy(), y).predict(E_test.numpy())
    assert (sums.lda(E_test, 0.1) == expected).mean() > 0.98  # it weighs classes' covariances


def test_ridge_regression_is_that_of_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    (E, y), (E_test, y_test) = points(0), points(1)
    sums = Sums()
    sums.add(E, y)
    scale = (E - E.mean(0)) / E.std(0, correction=0), (E_test - E.mean(0)) / E.std(0, correction=0)
    targets = np.eye(5)[y - 3]
    X = scale[0].numpy()
    penalties = np.array([1e-4, 1e-3, 1e-2, 1e-1, 1.0]) * np.linalg.eigvalsh(X.T @ X).mean()
    ours = (sums.ridge(E_test) == y_test).mean()
    theirs = [
        (linear.Ridge(alpha=a).fit(X, targets).predict(scale[1].numpy()).argmax(1) + 3)
        for a in penalties
    ]
    assert any((sums.ridge(E_test) == found).all() for found in theirs)
    assert ours > 0.8


def test_one_class_and_fewer_samples_than_dimensions() -> None:
    sums = Sums()
    sums.add(torch.eye(3, 50, dtype=torch.float64), np.array([4, 4, 4]))
    assert sums.lda(torch.rand(2, 50, dtype=torch.float64), 0.1).tolist() == [4, 4]
    assert sums.ridge(torch.rand(2, 50, dtype=torch.float64)).tolist() == [4, 4]


def test_features_are_those_that_differ() -> None:
    assert features_of(small_network("linear")) == ("embedding",)
    assert features_of(small_network("conv")) == ("embedding", "input", "grid")
    rows = Samples(torch.rand(5, *small_network("conv").z_shape), np.arange(5), np.arange(5))
    for name in features_of(small_network("conv")):
        ((E, y),) = iterate_features(small_network("conv"), rows, name)
        assert E.dtype == torch.float64 and len(E) == len(y) == 5


def test_held_out_videos_are_whole_and_of_every_class(toy: Toy) -> None:
    train = prepare(toy(options={"videos": 6})).train
    rest, held = hold_out(train)
    assert len(rest) + len(held) == len(train)
    assert set(rest.y) == set(held.y) == set(train.y)
    assert not set(zip(rest.y, rest.videos, strict=True)) & set(
        zip(held.y, held.videos, strict=True)
    )


def test_sgd_has_enough_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verse.experiments.reference.STEPS", STEPS)
    assert STEPS >= 1000
    choice = OfflineChoice(0.03, 1e-3, {}, SGD, {})
    for samples in (40, 500, 3000, 40_000):
        made = recipe(samples, choice)
        assert made.epochs * max(1, round(samples / BATCH)) >= STEPS
        assert (made.lr, made.weight_decay, made.clip) == (0.03, 1e-3, None)


def test_the_choice_is_made_once_and_without_test_frames(toy: Toy) -> None:
    run = toy(offline=True)
    ready = prepare(run)

    class Secret:
        def __len__(self) -> int:
            return len(ready.test)

        def __getitem__(self, at: object) -> torch.Tensor:
            raise AssertionError("a test frame was looked at")

    blind = Samples(Secret(), ready.test.y, ready.test.videos)
    object.__setattr__(ready, "test", blind)
    stages: list[object] = []
    choice = choose_offline(ready, run, stages.append)
    assert choice.best == max(choice.accuracy, key=choice.accuracy.__getitem__)
    assert set(choice.accuracy) == {SGD, "lda embedding", "ridge embedding"}
    assert choice.shrinkage["embedding"] in SHRINKAGES
    before = len(stages)
    assert (
        choose_offline(ready, toy(seed=7, learner="ncm"), stages.append) == choice
    )  # for all seeds
    assert len(stages) == before


def test_closed_forms_grow_with_the_classes(toy: Toy) -> None:
    ready = prepare(toy())
    choice = OfflineChoice(0.01, 1e-4, {"embedding": 0.1}, "lda embedding", {})
    growing, fresh = ClosedForms(ready, choice), ClosedForms(ready, choice)
    growing.answers((1,))
    growing.answers((0, 1))
    for name, answers in growing.answers((0, 1, 3)).items():
        assert (answers == fresh.answers((0, 1, 3))[name]).all()
    assert (growing.answers((0,))["lda embedding"] == 0).all()  # and may shrink again


def test_both_omegas_are_in_the_result(toy: Toy) -> None:
    result = execute(toy(offline=True))
    assert result.reference in (SGD, "lda embedding", "ridge embedding")
    assert all(bound.closed and bound.best_by_video for bound in result.offline)
    summary = result.summary()
    pairs = zip(result.alpha, (b.reference for b in result.offline), strict=True)
    assert summary["omega_all"] == pytest.approx(np.mean([a / b for a, b in pairs]))
    pairs = zip(result.alpha, (b.accuracy for b in result.offline), strict=True)
    assert summary["omega_paper"] == pytest.approx(np.mean([a / b for a, b in pairs]))


def test_the_ceiling_is_what_was_shown(toy: Toy) -> None:
    assert execute(toy()).ceiling == 1.0
    result = execute(toy(order="instance"))
    train, _ = in_order(toy(order="instance"), prepare(toy(order="instance")))
    shares = [len(set(train.y[: event.after])) / 4 for event in result.events]
    assert result.ceiling == pytest.approx(np.mean(shares)) and shares[0] < 1
    for event in result.events:
        assert event.reachable is not None
        assert sum(row[1] for row in event.by_video) <= event.reachable


def test_the_gate_asks_for_the_better_closed_form() -> None:
    rows = [[0, 90, 100]]
    closed = {"lda embedding": 0.7, "ridge embedding": 0.9 + ALLOWED}
    assert Bound(0.5, [], 1, True, closed, "sgd", rows).sound
    assert not Bound(0.95, [], 1, True, closed | {"lda input": 0.95}, "lda", rows).sound
    # results from before there was a choice keep the rule they were published with
    assert Bound(0.75, [], 1, True, closed).sound and not Bound(0.6, [], 1, True, closed).sound


def test_a_weak_reference_is_told(toy: Toy) -> None:
    run = toy(offline=True)
    ready = prepare(run)
    _, schedule = in_order(run, ready)
    bounds(ready, schedule, run, ignore)
    for path in files(ready, schedule, run)[1:]:
        bound = json.loads(Path(path).read_text())
        broken = {"best_by_video": [[v, 1, n] for v, _, n in bound["best_by_video"]]}
        path.write_text(json.dumps(bound | broken))
    with pytest.warns(WeakOffline, match="Ω is too high"):
        bounds(ready, schedule, run, ignore)
