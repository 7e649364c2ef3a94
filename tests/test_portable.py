"""A file that any machine goes on teaching from, and two classifiers that become one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import Tensor

import verse
from verse import StreamClassifier, backbones, checkpoint, learners
from verse.durable import begin
from verse.kernels.joint_statistics import JointStatistics
from verse.memory import ClassBalanced, Reservoir, Ring
from verse.novelty import WINDOW, Measures, Novelty
from verse.portable import name_classes
from verse.types import BadLabel, BadSetting, BadState

D = 12
CPU = torch.device("cpu")


def stream(classes: list[int], n: int, seed: int) -> list[tuple[Tensor, int]]:
    """n samples around the corners of a cube, far from the origin."""
    random = np.random.default_rng(seed)
    chosen = random.choice(classes, n)
    return [
        (torch.eye(D)[y] * 4 + 20 + torch.from_numpy(random.normal(size=D)).float(), int(y))
        for y in chosen
    ]


def classifier(**options) -> StreamClassifier:
    return StreamClassifier(backbone=backbones.identity((D,)), **options)


def teach(taught, samples, name="class {}"):
    for z, y in samples:
        taught.learn_feature(z, name.format(y))
    return taught


def accuracy(taught: StreamClassifier, samples) -> float:
    return float(np.mean([taught.predict_feature(z).label == f"class {y}" for z, y in samples]))


# ---- statistics ------------------------------------------------------------------------------


def statistics(samples) -> tuple[JointStatistics, list[int]]:
    """And the classes in order of arrival."""
    found, classes = JointStatistics(D, CPU), list[int]()
    for z, y in samples:
        if y not in classes:
            classes.append(y)
            found.add_class(len(classes), torch.zeros(D + 1))
        found.add(z, classes.index(y))
    return found, classes


def summed(a, b) -> JointStatistics:
    merged, classes = statistics(a)
    other, theirs = statistics(b)
    for y in theirs:
        if y not in classes:
            classes.append(y)
            merged.add_class(len(classes), torch.zeros(D + 1))
    merged.absorb(other, [classes.index(y) for y in theirs])
    return merged


@pytest.mark.parametrize(("n", "m"), [(300, 200), (20, 10), (1, 300), (300, 1), (0, 50), (50, 0)])
def test_statistics_add_up_to_those_of_everything(n: int, m: int) -> None:
    a, b = stream([0, 1, 2], n, 0), stream([2, 3], m, 1)
    merged, (whole, _) = summed(a, b), statistics(a + b)
    # with the variance of now, as merging does: so does a class without samples that leaves
    whole.add_class(len(whole.counts) + 1, torch.zeros(D + 1))
    whole.drop_class(len(whole.counts) - 1, None, len(whole.counts) - 1)
    close = {"rtol": 1e-4, "atol": 1e-3}
    assert merged.counts.tolist() == whole.counts.tolist() and merged.samples == n + m
    assert torch.allclose(merged.inverse.total(), whole.inverse.total(), **close)
    assert torch.allclose(merged.means, whole.means, **close)
    centres = (merged.centre + merged.origin, whole.centre + whole.origin)
    assert torch.allclose(*centres, **close)
    assert merged.trace == pytest.approx(whole.trace, rel=1e-4)
    assert merged.spread == pytest.approx(whole.spread, rel=1e-4)
    asked = torch.stack([z for z, _ in stream([0, 1, 2, 3], 30, 2)])
    near = {"rtol": 1e-3, "atol": 1e-3}
    if n and m:  # else nothing was summed, and the variance is that of the last factorisation
        assert torch.allclose(merged.distances(asked), whole.distances(asked), **near)
        difference = merged.evidence(asked) - whole.evidence(asked)  # the same for all classes
        assert torch.allclose(difference, difference[:, :1].expand_as(difference), **near)


def test_merged_statistics_go_on_learning() -> None:
    a, b, later = stream([0, 1], 100, 0), stream([1, 2], 100, 1), stream([0, 1, 2], 200, 2)
    merged, (whole, classes) = summed(a, b), statistics(a + b + later)
    for z, y in later:
        merged.add(z, classes.index(y))
    assert torch.allclose(merged.means, whole.means, atol=1e-4)
    assert torch.allclose(merged.inverse.total(), whole.inverse.total(), rtol=1e-4, atol=1e-2)


# ---- memory and novelty ----------------------------------------------------------------------


def memory(kind, capacity: int, labels: list[int], value: float):
    made = kind(capacity)
    made.allocate(CPU, z=(1,))
    for y in labels:
        made.add(torch.tensor([value]), y)
    return made


def test_a_balanced_memory_stays_balanced() -> None:
    a, b = memory(ClassBalanced, 12, [0, 1] * 10, 1.0), memory(ClassBalanced, 12, [0, 1] * 10, 2.0)
    a.absorb(b, [2, 3])
    assert len(a) == 12 and min(a.counts().values()) >= 2 and a.seen == 40
    assert set(a.counts()) == {0, 1, 2, 3}
    everything = a.all()
    assert torch.equal(everything.y > 1, everything.z[:, 0] == 2)


def test_the_latest_samples_are_those_of_the_second() -> None:
    a, b = memory(Ring, 4, [0] * 9, 1.0), memory(Ring, 4, [0, 0, 0], 2.0)
    a.absorb(b, [1])
    assert a.counts() == {0: 1, 1: 3} and a.seen == 12


def test_a_reservoir_holds_each_sample_with_the_same_probability() -> None:
    shares = []
    for seed in range(200):
        a, b = Reservoir(20, seed=seed), Reservoir(20, seed=seed + 1000)
        for made, n in ((a, 45), (b, 15)):
            made.allocate(CPU, z=(1,))
            for _ in range(n):
                made.add(torch.zeros(1), 0)
        a.absorb(b, [1])
        assert len(a) == 20 and a.seen == 60
        shares.append(a.counts().get(1, 0) / 20)
    assert np.mean(shares) == pytest.approx(0.25, abs=0.03)  # standard error 0.007
    few = memory(Reservoir, 20, [0] * 5, 1.0)
    few.absorb(memory(Reservoir, 20, [0] * 6, 2.0), [1])
    assert few.counts() == {0: 5, 1: 6}


@pytest.mark.parametrize(("n", "m"), [(3, 5), (300, 2), (2, 300), (400, 400), (0, 0), (0, 4)])
def test_novelty_windows_are_joined(n: int, m: int) -> None:
    a, b = Novelty(), Novelty()
    for novelty, count, value in ((a, n, 1.0), (b, m, 2.0)):
        for _ in range(count):
            novelty.observe(Measures(torch.full((1, 3), value), 2))
    a.absorb(b)
    rows = a.window[:, 0]
    assert a.count == n + m and len(rows) == min(WINDOW, n + m)
    assert set(rows.tolist()) == {v for v, count in ((1.0, n), (2.0, m)) if count}
    if n == m == 400:
        assert rows[-10:].mean() == pytest.approx(1.5)  # the latest are of both


# ---- merging ---------------------------------------------------------------------------------


def test_two_halves_are_as_good_as_the_whole() -> None:
    first, second = stream([0, 1, 2], 150, 0), stream([3, 4, 5], 150, 1)
    a, b = teach(classifier(), first), teach(classifier(seed=1), second)
    before = (
        {name: t.clone() for name, t in a.state().items()},
        b.state()["theta.head.weight"].clone(),
    )
    merged, whole = verse.merge(a, b), teach(classifier(), first + second)
    asked = stream(list(range(6)), 400, 2)
    assert merged.classes == list(dict.fromkeys([*a.classes, *b.classes]))
    assert merged.samples == 300
    assert accuracy(merged, asked) >= accuracy(whole, asked) - 0.02
    assert accuracy(merged, asked) > 0.9
    assert all(torch.equal(t, a.state()[name]) for name, t in before[0].items())
    assert torch.equal(before[1], b.state()["theta.head.weight"])
    teach(merged, stream([6], 20, 3))  # and goes on
    assert accuracy(merged, stream([6], 20, 4)) > 0.9
    assert merged.ask_feature(torch.zeros(D) - 50).known is False


def test_a_class_that_both_know_is_one() -> None:
    a, b = teach(classifier(), stream([0, 1], 60, 0)), teach(classifier(), stream([1, 2], 60, 1))
    merged = verse.merge(a, b)
    assert sorted(merged.classes) == ["class 0", "class 1", "class 2"]
    counts = merged.learner.statistics.counts[merged.labels.number("class 1")]
    assert counts == sum(c.learner.statistics.counts[c.labels.number("class 1")] for c in (a, b))
    apart = verse.merge(a, b, separate=True)
    assert "class 1 (2)" in apart.classes and len(apart.classes) == 4
    renamed = verse.merge(a, b, rename_b={"class 2": "class 0", "class 1": "other"})
    assert sorted(renamed.classes) == ["class 0", "class 1", "other"]


def test_a_merged_classifier_is_saved_and_loaded(tmp_path) -> None:
    a, b = teach(classifier(), stream([0, 1], 90, 0)), teach(classifier(), stream([2], 40, 1))
    merged = verse.merge(a, b)
    merged.save(tmp_path / "both.verse")
    again = StreamClassifier.load(tmp_path / "both.verse", backbone=merged.backbone)
    for z, y in stream([0, 1, 2], 50, 5):
        merged.learn_feature(z, f"class {y}")
        again.learn_feature(z, f"class {y}")
    assert all(torch.equal(t, again.state()[name]) for name, t in merged.state().items())


def test_one_that_has_learned_nothing_adds_nothing() -> None:
    a = teach(classifier(), stream([0, 1], 60, 0))
    for merged in (verse.merge(a, classifier()), verse.merge(classifier(), a)):
        assert sorted(merged.classes) == sorted(a.classes) and merged.samples == 60
        assert accuracy(merged, stream([0, 1], 50, 1)) > 0.9
    assert verse.merge(classifier(), classifier()).classes == []


def test_what_does_not_fit_is_refused() -> None:
    a = teach(classifier(), stream([0, 1], 20, 0))
    wider = StreamClassifier(backbone=backbones.identity((D + 1,)))
    for other, why in (
        (wider, "features do not fit"),
        (classifier(learner="verse"), "learner is 'verse-joint' in one, 'verse' in the other"),
        (classifier(settings={"s": 0.25}), "settings"),
    ):
        with pytest.raises(BadSetting, match=why):
            verse.merge(a, other)
    with pytest.raises(BadLabel, match="no class 'mug'"):
        verse.merge(a, a, rename_b={"mug": "cup"})
    with pytest.raises(BadSetting, match="steps"):
        verse.merge(a, a, steps=-1)


@pytest.mark.parametrize("name", sorted(set(learners.names()) - {"verse-joint"}))
def test_a_learner_without_a_way_to_merge_says_so(name: str) -> None:
    a, b = (classifier(learner=name, per_class=5) for _ in range(2))
    with pytest.raises(BadSetting, match="has no way to merge"):
        verse.merge(a, b)


def test_separate_labels_are_new_ones() -> None:
    assert name_classes(["mug", "mug (2)", 3], ["mug", 3], {}, separate=True) == [
        "mug (3)",
        "3 (2)",
    ]
    with pytest.raises(BadLabel):
        name_classes(["a"], ["a"], {"a": " "}, separate=False)


# ---- going on elsewhere ----------------------------------------------------------------------


def test_a_directory_goes_on_elsewhere_to_the_last_bit(tmp_path) -> None:
    backbone = backbones.identity((D,))
    with verse.open(tmp_path / "here", backbone=backbone) as here:
        teach(here, stream([0, 1, 2], 80, 0))
        here.refused = 0.2
        here.save(tmp_path / "taught.verse")
        begin(tmp_path / "there", tmp_path / "taught.verse", backbone=backbone)
        with verse.open(tmp_path / "there", backbone=backbone) as there:
            assert there.taught == here.taught and there.samples == 80 and there.undoable == []
            for taught in (here, there):
                teach(taught, stream([2, 3], 40, 1))
            mine, theirs = here.learner.state(), there.learner.state()
            assert all(torch.equal(mine[name], theirs[name]) for name in mine)
            there.undo()
            assert there.samples == 119
    with verse.open(tmp_path / "there", backbone=backbone) as there:
        assert there.samples == 119
    loaded = StreamClassifier.load(tmp_path / "taught.verse", backbone=backbone)
    assert loaded.refused == 0.2


def test_a_lost_beginning_is_told(tmp_path) -> None:
    """An imported directory never passes for one that has learned nothing."""
    taught = teach(classifier(), stream([0, 1], 20, 0))
    begin(tmp_path / "there", taught)
    (file,) = (tmp_path / "there").glob("checkpoint-*.verse")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(BadState, match="damaged"):
        verse.open(tmp_path / "there", backbone=taught.backbone)


def test_a_directory_that_is_there_is_left_alone(tmp_path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes").write_text("mine")
    with pytest.raises(BadSetting, match="there already"):
        begin(tmp_path / "there", teach(classifier(), stream([0], 3, 0)))
    assert (tmp_path / "there" / "notes").read_text() == "mine"


HOSTILE = {
    "spec is a list": lambda t, s: (t, []),
    "no classes": lambda t, s: (t, {k: v for k, v in s.items() if k != "known"}),
    "a class twice": lambda t, s: (t, s | {"known": [["a", 0], ["a", 1]]}),
    "an unknown learner": lambda t, s: (t, s | {"learner": "os.system"}),
    "a setting that is no number": lambda t, s: (t, s | {"settings": {"alpha": "much"}}),
    "refused is a word": lambda t, s: (t, s | {"refused": "all"}),
    "refused is 7": lambda t, s: (t, s | {"refused": 7}),
    "taught is a number": lambda t, s: (t, s | {"taught": 5}),
    "taught other classes": lambda t, s: (t, s | {"taught": [["x", 3]]}),
    "NaN": lambda t, s: (t | {"phi.head.bias": t["phi.head.bias"] * float("nan")}, s),
    "negative counts": lambda t, s: (t | {"statistics.counts": -t["statistics.counts"]}, s),
    "few counts": lambda t, s: (t | {"statistics.counts": t["statistics.counts"][:1]}, s),
    "huge room": lambda t, s: (t | {"statistics.inverse.room": torch.tensor(10**12)}, s),
    "no ridge": lambda t, s: (t | {"statistics.inverse.numbers": torch.zeros(2).double()}, s),
    "novelty of another shape": lambda t, s: (t | {"novelty.usual": torch.zeros(2)}, s),
    "missing statistics": lambda t, s: ({k: v for k, v in t.items() if "statist" not in k}, s),
}


@pytest.fixture(scope="module")
def taught() -> StreamClassifier:
    return teach(classifier(), stream([0, 1], 90, 0))


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(tmp_path, taught, what: str) -> None:
    file = tmp_path / "hostile.verse"
    facts = {"refused": 0.05, "taught": [["class 0", 1], ["class 1", 1]]}
    checkpoint.write(file, *HOSTILE[what](taught.state(), taught.spec() | facts))
    with pytest.raises((BadState, BadSetting)) as caught:
        begin(tmp_path / "there", file, backbone=taught.backbone)
    assert "\n" not in str(caught.value) and not (tmp_path / "there").exists()
    assert list(tmp_path.glob(".new-*")) == []


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04", json.dumps({"a": 1}).encode()])
def test_what_is_no_teachable_file_is_refused(tmp_path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(BadState, match="no verse checkpoint"):
        begin(tmp_path / "there", tmp_path / "x")
