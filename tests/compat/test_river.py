"""The river adapter against river itself: its estimator checks, pipelines and evaluation."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river")

from river import checks, datasets, evaluate, metrics, preprocessing, stream

from verse.compat.river import RiverClassifier
from verse.types import BadData, BadSetting

MODEL = RiverClassifier(features=20, per_class=5, seed=1)
CHECKS: list[Callable[..., Any]] = list(checks.yield_checks(MODEL))


def test_no_check_is_skipped() -> None:
    assert MODEL._unit_test_skips() == set()
    assert {"check_pickling", "check_emerging_features", "check_bounded_memory_growth"} <= {
        check.__name__ for check in CHECKS
    }


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CHECKS)), ids=lambda n: f"{n}-{CHECKS[n].__name__}")
def test_rivers_own_checks(number: int) -> None:
    CHECKS[number](MODEL.clone())


def phishing() -> Iterator[tuple[dict[str, float], bool]]:
    return iter(datasets.Phishing().take(500))


def test_progressive_validation_in_a_pipeline() -> None:
    model = preprocessing.StandardScaler() | RiverClassifier(settings={"beta": 0.1}, seed=1)
    score = evaluate.progressive_val_score(phishing(), model, metrics.Accuracy())
    assert score.get() > 0.85  # 0.866; river's logistic regression: 0.868


@pytest.mark.parametrize("learner", ["tinyer", "slda", "gdumb"])
def test_other_methods(learner: str) -> None:
    model = RiverClassifier(learner, seed=1)
    evaluate.progressive_val_score(datasets.Phishing().take(60), model, metrics.Accuracy())
    assert set(model.predict_proba_one(next(phishing())[0])) == {True, False}


def picture(colour: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 60, (40, 40, 3))
    noise[:, :, colour] += 150
    return noise.astype(np.uint8)


def test_images() -> None:
    model = RiverClassifier(backbone="efficientnet-lite0", seed=1)
    pairs = ((picture(t % 3, t), ["red", "green", "blue"][t % 3]) for t in range(30))
    score = evaluate.progressive_val_score(pairs, model, metrics.Accuracy())
    assert score.get() > 0.7
    twin = pickle.loads(pickle.dumps(model))
    image = picture(1, 99)
    assert twin.predict_one(image) == "green"
    assert twin.predict_proba_one(image) == pytest.approx(model.predict_proba_one(image), abs=1e-6)


def test_a_copy_goes_on_alike_and_alone() -> None:
    rows = list(phishing())[:60]
    model = RiverClassifier(seed=3)
    for x, y in rows[:30]:
        model.learn_one(x, y)
    twin = copy.deepcopy(model)
    for x, y in rows[30:]:
        model.learn_one(x, y)
    before = twin.predict_proba_one(rows[0][0])
    assert before != model.predict_proba_one(rows[0][0])
    for x, y in rows[30:]:
        twin.learn_one(x, y)
    assert twin.predict_proba_one(rows[0][0]) == model.predict_proba_one(rows[0][0])


def test_any_hashable_label() -> None:
    model = RiverClassifier(features=3)
    labels = [("a", 1), None, 2.5, True]
    for t in range(40):
        model.learn_one({t % 4 // 2: 1.0, "b": t % 2}, labels[t % 4])
    assert set(model.predict_proba_one({"b": 1})) == set(labels)
    assert sum(model.predict_proba_one({}).values()) == pytest.approx(1)


def test_sklearn_data_sets_stream_in() -> None:
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    model = preprocessing.StandardScaler() | RiverClassifier(settings={"beta": 0.03}, seed=1)
    rows = stream.iter_sklearn_dataset(sklearn_datasets.load_iris(), shuffle=True, seed=1)
    assert evaluate.progressive_val_score(rows, model, metrics.Accuracy()).get() > 0.7


def test_too_many_features_are_told_and_nothing_is_learned() -> None:
    model = RiverClassifier(features=2)
    model.learn_one({"a": 1, "b": 2}, "x")
    with pytest.raises(BadSetting, match="at least 3"):
        model.learn_one({"c": 1}, "y")
    assert model.predict_proba_one({"a": 1, "unknown": 5}) == {"x": 1.0}


@pytest.mark.parametrize("value", ["red", None, float("nan"), float("inf")])
def test_what_is_no_number_is_told(value: object) -> None:
    model = RiverClassifier(features=2)
    with pytest.raises(BadData, match="encode or impute"):
        model.learn_one({"a": value}, 1)
    assert model.predict_one({"a": 1}) is None


def test_an_image_without_a_backbone_is_told() -> None:
    with pytest.raises(BadData, match="backbone="):
        RiverClassifier().learn_one(np.zeros((4, 4, 3), np.uint8), "x")
