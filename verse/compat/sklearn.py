"""A scikit-learn classifier: ``partial_fit`` is the stream, ``fit`` begins anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from verse.compat.labelled import PER_CLASS, LabelledModel, options_of
from verse.configuration import DEFAULT_LEARNER, DEFAULT_MEMORY, Configuration
from verse.extras import OptionalImport
from verse.types import BadData, BadSetting

with OptionalImport():
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data


class SklearnClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any of the methods here as a scikit-learn estimator.

    Without a ``backbone``, X is an array [n, features]; with the name of one, X is a sequence of
    images (an array [n, height, width, 3], or a list of arrays, PIL images, bytes or paths).
    ``partial_fit`` learns each row once, in order, and classes may come at any time: naming them by
    ``classes`` is possible, not needed. ``fit`` forgets everything and goes over X ``passes``
    times, in a random order.

    Parameters
    ----------
    learner, settings
        The method and its settings by name.
    backbone, weights
        A pretrained network for images, and its file of weights.
    passes
        Over X, by ``fit``.
    memory, capacity, per_class
        Rule and size of the replay buffer.
    random_state
        Random seed.

    >>> X = np.random.default_rng(0).normal(size=(90, 3)) + 4 * np.eye(3).repeat(30, 0)
    >>> y = np.array(["cup", "mug", "bowl"]).repeat(30)
    >>> SklearnClassifier().fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        settings: Mapping[str, Any] | None = None,
        backbone: str | None = None,
        weights: str | Path | None = None,
        passes: int = 5,
        memory: str = DEFAULT_MEMORY,
        capacity: int | str | None = None,
        per_class: int = PER_CLASS,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.backbone = backbone
        self.weights = weights
        self.passes = passes
        self.memory = memory
        self.capacity = capacity
        self.per_class = per_class
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Begin anew and learn all rows ``passes`` times."""
        X, labels = self._check(X, y, reset=True)
        if self.passes < 1:
            raise BadSetting(f"passes must be at least 1, not {self.passes}")
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise BadData("y has only one class: a classifier needs at least 2 of them")
        random = self._start()
        for _ in range(self.passes):
            self._learn(X, labels, random.permutation(len(labels)))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn each row once, in this order."""
        begun = "answers_" in self.__dict__
        X, labels = self._check(X, y, reset=not begun)
        known = self.classes_ if begun else np.empty(0, labels.dtype)
        given = known if classes is None else np.asarray(classes)
        if not begun:
            self._start()
        if classes is not None and (odd := np.setdiff1d(labels, given)).size:
            raise BadData(f"the label {odd[0]} is not among the classes {given}")
        self.classes_ = np.unique(np.concatenate([known, given, labels]))
        self._learn(X, labels, np.arange(len(labels)))
        return self

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities [n, classes], columns as ``classes_``."""
        check_is_fitted(self)
        X = self._inputs(X, reset=False)
        columns: Any = self.answers_.labels
        p = np.zeros((_num_samples(X), len(self.classes_)))
        p[:, np.searchsorted(self.classes_, columns)] = self.answers_.proba(X)
        return p

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of each row."""
        best = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[best])

    def _start(self) -> np.random.RandomState:
        from sklearn.utils import check_random_state

        random = check_random_state(self.random_state)
        options = options_of(self) | {"seed": int(random.randint(2**31 - 1))}
        features = self.n_features_in_ if self.backbone is None else None
        self.answers_ = LabelledModel(Configuration().with_options(options), features=features)
        assert isinstance(random, np.random.RandomState)
        return random

    def _learn(self, X: Any, labels: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> None:
        for i in order.tolist():
            self.answers_.learn(X[i], labels[i].item() if labels.dtype != object else labels[i])

    def _check(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        if self.backbone is None:
            X, y = validate_data(self, X, y, reset=reset, dtype=np.float32)
        else:
            from sklearn.utils import check_consistent_length, column_or_1d

            y = column_or_1d(y)
            check_consistent_length(X, y)
        check_classification_targets(y)
        return X, np.asarray(y)

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        if self.backbone is None:
            return validate_data(self, X, reset=reset, dtype=np.float32)
        return X
