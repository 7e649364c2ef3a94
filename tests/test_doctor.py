"""What is found about classes that were taught well and badly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import verse
from verse import StreamClassifier, backbones
from verse.doctor import diagnose, group_holds


def draw(classes: int, each: int, *, apart: float = 6.0, d: int = 40) -> tuple[torch.Tensor, list]:
    random = np.random.default_rng(0)
    centres = random.normal(size=(classes, d)) * apart / d**0.5
    y = [c for c in range(classes) for _ in range(each)]
    return torch.tensor(centres[y] + random.normal(size=(len(y), d)) / 3, dtype=torch.float32), y


def test_well_separated_classes_are_enough() -> None:
    E, y = draw(4, 20)
    report = diagnose(E, y, list("abcd"))
    assert [row.advice for row in report.classes] == ["enough"] * 4
    assert report.confused == report.suspects == ()


@pytest.mark.parametrize("bad", [0, 17, 79])
def test_a_wrong_label_is_the_first_suspect(bad: int) -> None:
    E, y = draw(4, 20)
    true = y[bad]
    y[bad] = (true + 1) % 4
    suspect = diagnose(E, y, list("abcd"), seqs=list(range(100, 180))).suspects[0]
    assert (suspect.seq, suspect.label, suspect.looks_like) == (
        100 + bad,
        "abcd"[y[bad]],
        "abcd"[true],
    )


def test_two_classes_that_are_the_same_thing_look_alike() -> None:
    E, y = draw(3, 30)
    twins = [3 if c == 0 and i % 2 else c for i, c in enumerate(y)]
    report = diagnose(E, twins, ["mug", "cup", "pot", "beaker"])
    assert report.classes[0].advice == "looks like beaker"
    assert ("mug", "beaker") in {(row.label, row.taken_for) for row in report.confused}


def test_a_single_hold_cannot_vouch_for_itself() -> None:
    E, y = draw(2, 20)
    report = diagnose(E, y, ["mug", "cup"], groups=[0] * 20 + [1] * 10 + [2] * 10)
    assert report.classes[0].advice == "show it from other sides"
    assert report.classes[0].accuracy is None
    assert report.classes[1].advice == "enough"


def test_few_samples_are_asked_for_more() -> None:
    E, y = draw(2, 3)
    assert {row.advice for row in diagnose(E, y, ["a", "b"]).classes} == {"show it more often"}


def test_nothing_to_look_at() -> None:
    assert diagnose(torch.zeros(0, 3), [], []).document() == {
        "classes": [],
        "confused": [],
        "suspects": [],
    }


def test_a_class_without_samples_is_no_rival() -> None:
    E, y = draw(2, 10)
    report = diagnose(E, y, ["a", "b", "never seen"])
    assert report.classes[2].samples == 0
    assert "never seen" not in {row.looks_like for row in report.suspects}


def test_left_out_distances_are_those_of_the_plain_way() -> None:
    """One sample removed from mean and scatter by hand."""
    from verse.doctor import _leave_out

    E, y = draw(3, 6, d=5)
    target = torch.tensor(y)
    gaps = _leave_out(E, target, torch.arange(18), 3)
    n, d, i = 18, 5, 4
    share = 0.2 + 0.6 * d / (d + 4 * n)
    centred = E - E.mean(0)
    others = torch.arange(n) != i
    means = [centred[others & (target == c)].mean(0) for c in range(3)]
    within = torch.cat([centred[others & (target == c)] - means[c] for c in range(3)])
    everything = torch.cat([centred[target == c] - centred[target == c].mean(0) for c in range(3)])
    variance = (everything.square().sum() / n / d).item()
    covariance = (1 - share) * within.t() @ within / n + share * variance * torch.eye(d)
    gap = centred[i] - means[y[i]]
    expected = gap @ torch.linalg.solve(covariance, gap) / (1 + 1 / 5)
    assert torch.allclose(gaps[i, y[i]], expected, rtol=1e-3)
    other = centred[i] - centred[target == 2].mean(0)
    expected = other @ torch.linalg.solve(covariance, other) / (1 + 1 / 6)
    assert torch.allclose(gaps[i, 2], expected, rtol=1e-3)


@pytest.mark.parametrize("d", [5, 40])
def test_ridge_margins_are_those_of_the_plain_way(d: int) -> None:
    """One sample left out of the regression by hand; with fewer and with more values than rows."""
    from verse.doctor import RIDGE, _ridge_margins

    E, y = draw(3, 6, d=d)
    target, i = torch.tensor(y), 4
    margins = _ridge_margins(E, target, 3)
    X = E - E.mean(0)
    X = (X / X.square().sum(1).mean().sqrt()).double()
    Y = (torch.eye(3)[target] - torch.bincount(target) / 18).double()
    others = torch.arange(18) != i
    A = X[others].t() @ X[others] + RIDGE * torch.eye(d).double()
    scores = X[i] @ torch.linalg.solve(A, X[others].t() @ Y[others])
    own = scores[y[i]].item()
    scores[y[i]] = -torch.inf
    assert margins[i].item() == pytest.approx(scores.max().item() - own, abs=1e-3)


def test_holds_are_runs_of_one_class() -> None:
    assert group_holds([0, 0, 1, 0, 0], [5, 6, 7, 8, None]) == [0, 1, 2, 3, -5]


def test_a_film_is_left_out_in_three_parts() -> None:
    assert group_holds([0] * 9, list(range(9))) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_classifier_reports_with_sequence_numbers(tmp_path: Path) -> None:
    E, y = draw(3, 12)
    y[5] = 1
    with verse.open(tmp_path / "model", backbone=backbones.identity((40,))) as classifier:
        for t in np.random.default_rng(1).permutation(36):
            seq = classifier.learn_feature(E[t], "abc"[y[t]])
            wrong = seq if t == 5 else locals().get("wrong", 0)
        assert classifier.report().suspects[0].seq == wrong
    with verse.open(tmp_path / "model", backbone=backbones.identity((40,))) as classifier:
        first = classifier.report().suspects[0]
        assert (first.seq, first.label, first.looks_like) == (wrong, "b", "a")
        classifier.undo(wrong)
        assert classifier.report().suspects == ()


@pytest.mark.parametrize("learner", ["slda", "remind", "verse"])
def test_other_learners_have_a_report_too(learner: str) -> None:
    E, y = draw(3, 12)
    classifier = StreamClassifier(backbone=backbones.identity((40,)), learner=learner)
    for z, c in zip(E, y, strict=True):
        classifier.learn_feature(z, "abc"[c])
    assert isinstance(classifier.report().document()["classes"], list)


def test_a_wrong_label_among_real_pictures(real_data: Callable[[str], Path]) -> None:
    """40 trials of 200 pictures are in the docs; here one of 40 pictures."""
    classifier = StreamClassifier()
    folders = sorted(p for p in real_data("eth80").iterdir() if p.is_dir())[:4]
    for folder in folders:
        for path in sorted(folder.rglob("*.*"))[::41][:5] + sorted(folder.rglob("*.*"))[20::41][:4]:
            classifier.learn_one(path, folder.name)
    classifier.learn_one(sorted(folders[0].rglob("*.*"))[100], folders[1].name)
    suspect = classifier.report().suspects[0]
    assert (suspect.label, suspect.looks_like) == (folders[1].name, folders[0].name)
