"""The scikit-learn adapter against scikit-learn itself."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from verse.compat.sklearn import SklearnClassifier
from verse.types import BadData, BadImage, BadSetting

# What scikit-learn itself leaves out where a package or a setting is missing.
SKIPPED_BY_SKLEARN = {"check_array_api_input", "check_classifier_data_not_an_array"}
# Nothing is expected to fail.
EXPECTED_FAILURES: dict[str, str] = {}


@pytest.mark.slow
def test_scikit_learns_own_checks() -> None:
    model = SklearnClassifier(settings={"beta": 0.1}, passes=2)
    results = check_estimator(
        model, expected_failed_checks=EXPECTED_FAILURES, on_fail=None, on_skip=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert failed == {}
    assert skipped <= SKIPPED_BY_SKLEARN
    assert len(results) == len(list(estimator_checks_generator(model))) > 40


def test_fit_on_iris() -> None:
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(
        StandardScaler(), SklearnClassifier("tinyer", settings={"lr": 0.1}, random_state=0)
    )
    assert cross_val_score(model, X, y, cv=3).mean() > 0.85


def test_a_stream_of_digits_class_after_class() -> None:
    """New classes arrive without being named before, and the old ones are kept."""
    X, y = load_digits(return_X_y=True)
    X = X[y < 4] / 16
    y = y[y < 4]
    model = SklearnClassifier("slda", random_state=0)
    for digit in range(4):
        model.partial_fit(X[y == digit], y[y == digit])
        assert model.classes_.tolist() == list(range(digit + 1))
    assert model.score(X, y) > 0.95
    p = model.predict_proba(X[:5])
    assert p.shape == (5, 4) and np.allclose(p.sum(1), 1)


def test_partial_fit_is_the_stream() -> None:
    X, y = load_iris(return_X_y=True)
    whole, parts = SklearnClassifier(random_state=1), SklearnClassifier(random_state=1)
    whole.partial_fit(X, y)
    for start in range(0, len(X), 40):
        parts.partial_fit(X[start : start + 40], y[start : start + 40])
    assert np.array_equal(whole.predict_proba(X), parts.predict_proba(X))


def test_classes_may_be_named_before() -> None:
    X, y = np.eye(3), np.array(["a", "b", "a"])
    model = SklearnClassifier().partial_fit(X, y, classes=["c", "b", "a"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert np.all(model.predict_proba(X)[:, 2] == 0)
    with pytest.raises(BadData, match="not among the classes"):
        SklearnClassifier().partial_fit(X, y, classes=["a"])


def test_searching_settings() -> None:
    X, y = load_iris(return_X_y=True)
    grid = {"settings": [{"lr": 0.1}, {"lr": 0.001}]}
    search = GridSearchCV(SklearnClassifier("tinyer", random_state=0, passes=1), grid, cv=2)
    assert search.fit(X, y).best_params_["settings"] in grid["settings"]
    assert clone(search.best_estimator_).settings == search.best_params_["settings"]


def test_images_as_arrays_and_as_lists() -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 60, (24, 32, 32, 3), dtype=np.uint8)
    y = np.array(["red", "green", "blue"] * 8)
    for i in range(24):
        images[i, :, :, i % 3] += 150
    model = SklearnClassifier(backbone="efficientnet-lite0", passes=1, random_state=0)
    model.partial_fit(images, y)
    assert model.score(images, y) > 0.9
    assert model.predict(list(images[:3])).tolist() == ["red", "green", "blue"]
    twin = pickle.loads(pickle.dumps(model))
    assert np.allclose(twin.predict_proba(images[:3]), model.predict_proba(images[:3]), atol=1e-6)
    with pytest.raises(BadImage):
        model.predict(["no-such-file.png"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.partial_fit(images, y[:3])


def test_a_wrong_number_of_passes_is_told() -> None:
    with pytest.raises(BadSetting, match="passes"):
        SklearnClassifier(passes=0).fit(np.eye(2), [0, 1])
