"""Known or not: the order of scores, what is blank, and that the state is the classifier's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from verse import StreamClassifier, backbones
from verse.images import shows_nothing
from verse.novelty import WINDOW, Measures, Novelty, freshness, measure_novelty
from verse.novelty.threshold import OFTEN
from verse.types import BadSetting, BadState, Refused


def make_world(classes: int, d: int = 12, *, seed: int = 0) -> Callable[[int], torch.Tensor]:
    """Draws a feature of a class; the classes are well apart."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(classes, d)) * 4
    return lambda y: torch.tensor(centres[y] + random.normal(size=d), dtype=torch.float32)


def teach(
    classes: int, each: int, *, learner: str = "verse-joint"
) -> tuple[StreamClassifier, Callable[[int], torch.Tensor]]:
    draw = make_world(classes + 4)
    classifier = StreamClassifier(backbone=backbones.identity((12,)), learner=learner)
    for t in range(classes * each):
        classifier.learn_feature(draw(t % classes), f"class {t % classes}")
    return classifier, draw


def test_classes_never_taught_are_more_novel() -> None:
    classifier, draw = teach(6, 30)
    known = [classifier.ask_feature(draw(y)).novelty for y in range(6) for _ in range(20)]
    unknown = [classifier.ask_feature(draw(y)).novelty for y in range(6, 10) for _ in range(20)]
    assert np.mean(np.array(known)[:, None] < np.array(unknown)[None]) > 0.95
    assert np.mean(np.array(known) > 1) < 0.15
    assert np.mean(np.array(unknown) > 1) > 0.6


def test_an_unknown_answer_has_no_label_and_a_nearest_class() -> None:
    classifier, draw = teach(6, 30)
    answer = classifier.ask_feature(draw(0) + 40)
    assert (answer.label, answer.known) == (None, False)
    assert answer.nearest in classifier.classes
    assert answer.confidence == answer.probabilities[answer.nearest]
    assert classifier.predict_feature(draw(0) + 40).label == answer.nearest


def test_before_anything_was_learned() -> None:
    answer = StreamClassifier(backbone=backbones.identity((12,))).ask_feature(torch.ones(12))
    assert (answer.label, answer.nearest, answer.known, answer.confidence) == (None, None, False, 0)


def test_a_larger_share_refuses_more() -> None:
    classifier, draw = teach(6, 60)
    z = [draw(y) for y in range(6) for _ in range(20)]
    shares = []
    for refused in (0.01, 0.3):
        classifier.refused = refused
        shares.append(np.mean([not classifier.ask_feature(one).known for one in z]))
    assert shares[0] <= shares[1]
    with pytest.raises(BadSetting, match="between 0 and 1"):
        classifier.refused = 0


def test_saved_and_loaded_it_judges_the_same(tmp_path: Path) -> None:
    classifier, draw = teach(3, 10)
    classifier.save(tmp_path / "one.safetensors")
    loaded = StreamClassifier.load(tmp_path / "one.safetensors", backbone=backbones.identity((12,)))
    for t in range(12):
        z = draw(t % 4)
        assert loaded.ask_feature(z) == classifier.ask_feature(z)
        for one in (loaded, classifier):
            one.learn_feature(z, f"class {t % 4}")


def test_a_refused_sample_is_not_counted() -> None:
    classifier, _ = teach(3, 10)
    before = {name: value.clone() for name, value in classifier.state().items()}
    with pytest.raises(Refused):
        classifier.learn_feature(torch.full((12,), float("nan")), "class 0")
    assert all(torch.equal(before[name], value) for name, value in classifier.state().items())


@pytest.mark.parametrize("learner", ["verse", "slda", "tinyer"])
def test_learners_without_statistics_tell_by_their_scores(learner: str) -> None:
    classifier, draw = teach(3, 10, learner=learner)
    assert np.isfinite(classifier.ask_feature(draw(0)).novelty)


def test_one_class_and_one_sample_have_an_answer() -> None:
    classifier = StreamClassifier(backbone=backbones.identity((12,)))
    classifier.learn_feature(torch.ones(12), "only")
    assert np.isfinite(classifier.ask_feature(torch.zeros(12)).novelty)


def test_the_distance_to_the_background_is_that_of_one_gaussian() -> None:
    classifier, draw = teach(5, 20)
    learner = classifier.learner
    known, z = learner.averages, torch.stack([draw(0), draw(7)])
    E = learner.features(learner.F.stored(z)).double()
    inverse = known.solve(torch.eye(known.d)).double() * known.scale
    means = known.means.double()
    centred = means - means.mean(0)
    total = torch.linalg.inv(inverse) + centred.t() @ centred / len(means)
    gap = E - means.mean(0)
    background = (gap @ torch.linalg.inv(total) * gap).sum(1)
    squared = known.distances(E.float()).double()
    expected = squared.min(1).values - background
    assert torch.allclose(
        measure_novelty(learner, z).rows[:, 1].double(), expected, rtol=1e-2, atol=1e-3
    )


def test_many_classes_have_a_background_by_some_of_them() -> None:
    classifier, draw = teach(70, 3)
    near, far = (classifier.ask_feature(z).novelty for z in (draw(0), draw(0) + 40))
    assert near < 1 < far


def test_what_is_far_from_all_of_many_classes_is_new_whatever_it_resembles() -> None:
    novelty = Novelty()
    for t in range(60):
        novelty.observe(Measures(torch.tensor([[1.0 + t % 7 / 10, 0.3, 0.5 + t % 5 / 5]]), 30))
    near, far = torch.tensor([[1.3, 0.2, 0.0]]), torch.tensor([[6.0, 0.2, 0.0]])  # both are sure
    assert float(novelty.judge(Measures(near, 30))) < 1 < float(novelty.judge(Measures(far, 30)))


def test_ask_asks_the_learner_once(monkeypatch: pytest.MonkeyPatch) -> None:
    classifier, draw = teach(3, 10)
    scores, asked = classifier.learner.logits, []

    def count(Z: torch.Tensor) -> torch.Tensor:
        asked.append(len(Z))
        return scores(Z)

    monkeypatch.setattr(classifier.learner, "logits", count)
    classifier.ask_feature(draw(0))
    assert asked == [1]


def test_what_is_computed_once_follows_every_change() -> None:
    classifier, draw = teach(5, 8)
    z, seen = draw(7), []

    def check() -> None:
        found = classifier.ask_feature(z)
        assert found == classifier.copy().ask_feature(z)  # a copy has computed nothing yet
        seen.append(found.novelty)

    check()
    for label in ("class 0", "class 1", "new"):
        classifier.learn_feature(draw(0), label)
        check()
    with pytest.raises(Refused):
        classifier.learn_feature(torch.full((12,), float("nan")), "never")
    check()
    classifier.forget("new")
    check()
    classifier.merge("class 3", "class 4")
    check()
    classifier.refused = 0.3
    check()
    other, _ = teach(5, 2)
    classifier.follow(other)
    check()
    classifier.reset()
    classifier.learn_feature(z, "class 0")
    check()
    assert len(set(seen)) == len(seen) - 1  # the refused sample changed nothing


def test_only_the_latest_frames_count() -> None:
    novelty = Novelty()
    usual = torch.tensor([[1.2, 0.3, 0.7]])
    for t in range(3 * WINDOW):
        wild = 100.0 if t < WINDOW else 1.0
        novelty.observe(Measures(usual * wild, 5))
    assert float(novelty.judge(Measures(usual, 5))) < 0.1
    assert float(novelty.judge(Measures(usual + 5, 5))) > 1


def test_frames_that_were_all_measured_count_no_longer_than_others() -> None:
    novelty = Novelty()
    usual = torch.tensor([[1.2, 0.3, 0.7]])
    for t in range(OFTEN + 40):  # the last forty stand for 160 frames
        novelty.observe(Measures(usual * (3.0 if t < OFTEN else 1.0), 5))
    mean = novelty.rule(Measures(usual, 5)).mean
    assert float(mean[0]) < 1.5  # the first 64 frames are in the first third of 224, nearly all


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"usual": torch.zeros(2, 2), "count": torch.tensor(1), "unit": torch.tensor(1.0)},
        {"usual": torch.zeros(WINDOW, 4), "count": torch.tensor(1)},
        {
            "usual": torch.full((WINDOW, 4), float("nan")),
            "count": torch.tensor(1),
            "unit": torch.tensor(1.0),
        },
        {"usual": torch.zeros(WINDOW, 4), "count": torch.tensor(-1), "unit": torch.tensor(1.0)},
        {"usual": torch.zeros(WINDOW, 4), "count": torch.tensor(1), "unit": torch.tensor(-1.0)},
        Novelty().state() | {"held": torch.zeros(2, dtype=torch.int64)},
        Novelty().state() | {"held": torch.full((3,), float("nan"))},
    ],
)
def test_a_damaged_state_is_refused(state: dict[str, torch.Tensor]) -> None:
    with pytest.raises(BadState, match="novelty"):
        Novelty().load_state(state)


def test_frames_of_a_film_are_not_fresh_and_those_of_the_next_one_are() -> None:
    classifier, draw = teach(3, 10)
    learner, last = classifier.learner, draw(0)
    assert freshness(learner, last, 0) > 0.3
    classifier.learn_feature(last, "class 0")
    assert freshness(learner, last + 0.01, 0) < 0.01
    assert freshness(learner, last, 7) == 1  # nothing is remembered of it


def test_many_remembered_samples_are_compared_with_some_of_them() -> None:
    classifier, draw = teach(2, 300)
    seen = draw(0)
    classifier.learn_feature(seen, "class 0")
    assert freshness(classifier.learner, seen, 0) < 0.01


def test_stale_frames_do_not_lower_the_threshold() -> None:
    few, many = Novelty(), Novelty()
    for t in range(60):
        fresh = Measures(torch.tensor([[1.0 + t % 7 / 4, 0.3, 0.7]]), 2)
        stale = Measures(torch.tensor([[0.9, 0.3, 0.7]]), 2)
        few.observe(fresh)
        many.observe(fresh if t % 6 == 0 else stale, 1.0 if t % 6 == 0 else 0.1)
    asked = Measures(torch.tensor([[2.4, 0.3, 0.7]]), 2)
    rules = [novelty.rule(asked) for novelty in (few, many)]
    limits = [float(rule.mean[0] + rule.threshold * rule.spread[0]) for rule in rules]
    assert limits[1] > 0.8 * limits[0]


def test_the_same_frames_again_make_nothing_else_new() -> None:
    draw, classifier = make_world(3, 40), StreamClassifier(backbone=backbones.identity((40,)))
    frames = [(draw(y), f"class {y}") for _ in range(14) for y in range(2)]
    asked = [draw(y) for y in range(2) for _ in range(20)]
    refused = []
    for _ in range(6):
        for z, label in frames:
            classifier.learn_feature(z, label)
        refused.append(np.mean([not classifier.ask_feature(z).known for z in asked]))
    assert max(refused) <= 0.2
    assert np.mean([not classifier.ask_feature(draw(2)).known for _ in range(20)]) >= 0.8


def test_one_film_of_each_class_does_not_make_the_next_one_new() -> None:
    random, d = np.random.default_rng(0), 40
    centres = 4 * random.normal(size=(3, d))

    def film(y: int, frames: int) -> list[torch.Tensor]:
        """A thing differs from the others of its class as much as its own frames differ."""
        thing = centres[y] + random.normal(size=d)
        rows = thing + random.normal(size=(frames, d))
        return list(torch.tensor(rows, dtype=torch.float32))

    for frames in (3, 8, 30):
        classifier = StreamClassifier(backbone=backbones.identity((d,)))
        for y in range(2):
            for z in film(y, frames):
                classifier.learn_feature(z, f"class {y}")
        asked = [z for _ in range(10) for y in range(2) for z in film(y, 3)]
        assert np.mean([not classifier.ask_feature(z).known for z in asked]) <= 0.1
        asked = [z for _ in range(10) for z in film(2, 3)]
        assert np.mean([not classifier.ask_feature(z).known for z in asked]) >= 0.6


def test_the_first_hold_of_a_class_tells_nothing_and_the_first_frames_of_the_next_tell_most() -> (
    None
):
    novelty, usual = Novelty(), Measures(torch.tensor([[1.0, 0.3, 0.7]]), 2)
    novelty.show(0, new=True)
    for y, new in ((0, False), (1, True), (1, False), (0, False), (0, False), (0, False)):
        novelty.show(y, new=new)
        novelty.observe(usual)
    assert novelty.rows[:6, 3].tolist() == pytest.approx([-1, -1, -1, 1, 1 / 2, 1 / 3])


def test_a_hold_goes_on_after_loading() -> None:
    novelty, loaded = Novelty(), Novelty()
    for y, new in ((0, True), (0, False), (0, False)):
        novelty.show(y, new=new)
    loaded.load_state(novelty.state())
    for one in (novelty, loaded):
        one.show(0, new=False)
    assert (loaded.shown, loaded.first, loaded.held) == (0, True, 4)
    assert (novelty.shown, novelty.first, novelty.held) == (0, True, 4)


def test_freshness_that_an_earlier_version_kept_becomes_a_weight() -> None:
    novelty, state = Novelty(), Novelty().state()
    del state["held"]
    state["usual"] = torch.zeros(WINDOW, 4)
    state["usual"][:3, 3] = torch.tensor([0.2, 0.6, 0.9])
    novelty.load_state(state | {"count": torch.tensor(3)})
    assert novelty.rows[:3, 3].tolist() == pytest.approx([0.0, 0.5, 1.0])


def test_what_an_earlier_version_measured_is_learned_anew() -> None:
    novelty = Novelty()
    novelty.load_state({"rows": torch.ones(WINDOW, 5), "count": torch.tensor(9)})
    assert novelty.count == 0


def test_blank_pictures_and_noise_show_nothing(real_data: Callable[[str], Path]) -> None:
    random = np.random.default_rng(0)
    assert shows_nothing(np.full((64, 64, 3), 20, np.uint8))
    assert shows_nothing(random.integers(0, 256, (64, 64, 3), dtype=np.uint8))
    grain = 128 + 20 * random.normal(size=(64, 64, 3))
    assert shows_nothing(grain.clip(0, 255).astype(np.uint8))
    classifier = StreamClassifier(weights="random")
    photo = sorted(real_data("icub_camera").rglob("*.*"))[0]
    assert not shows_nothing(classifier.backbone.G.preprocess(photo))


def test_a_hold_ends_when_a_class_is_forgotten() -> None:
    classifier = StreamClassifier(backbone=backbones.identity((2,)), seed=0)
    for label in ("a", "b", "b"):
        classifier.learn_one(np.ones(2), label)
    assert classifier.novelty.held == 2
    classifier.forget("a")  # "b" has its number now
    classifier.learn_one(np.ones(2), "b")
    assert classifier.novelty.held == 1
