"""A river classifier: in its pipelines and evaluations, on dicts of features or on images."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from verse.compat.labelled import PER_CLASS, LabelledModel, options_of
from verse.configuration import DEFAULT_BACKBONE, DEFAULT_LEARNER, DEFAULT_MEMORY, Configuration
from verse.extras import OptionalImport
from verse.types import BadData, BadSetting

with OptionalImport():
    from river import base


class RiverClassifier(base.Classifier):
    """Any of the methods here as a river classifier.

    Without a ``backbone``, x is a dict of numbers, at most ``features`` different ones over the
    whole stream: a feature gets its place when it is first learned, counts as 0 where it is
    missing, and is ignored by answers while unknown. With the name of a backbone, x is an image in
    any form (a path, bytes, an array, a PIL image). Features should be scaled alike, as for any
    linear model: put ``preprocessing.StandardScaler`` in front.

    It passes all of ``river.checks.check_estimator`` that apply; none is skipped.

    Parameters
    ----------
    learner, settings
        The method and its settings by name.
    backbone, weights
        A pretrained network for images, and its file of weights.
    features
        How many different numbers x may have without a backbone.
    memory, capacity, per_class
        Rule and size of the replay buffer.
    seed
        Random seed.

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | RiverClassifier(seed=1)
    >>> score = evaluate.progressive_val_score(
    ...     datasets.Phishing().take(300), model, metrics.Accuracy())
    >>> score.get() > 0.8
    True
    """

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        settings: Mapping[str, Any] | None = None,
        backbone: str | None = None,
        weights: str | Path | None = None,
        features: int = 64,
        memory: str = DEFAULT_MEMORY,
        capacity: int | str | None = None,
        per_class: int = PER_CLASS,
        seed: int = 0,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.backbone = backbone
        self.weights = weights
        self.features = features
        self.memory = memory
        self.capacity = capacity
        self.per_class = per_class
        self.seed = seed
        self._columns: dict[Hashable, int] = {}
        self._answers: LabelledModel | None = None  # built with the first sample: clones stay light

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Any, y: Hashable) -> None:
        """Learn one sample."""
        columns = self._columns
        if self.backbone is None:
            columns = self._with_new(_check_features(x))
            x = self._vector(x, columns)
        if self._answers is None:
            self._answers = self._build()
        self._answers.learn(x, y.item() if isinstance(y, np.generic) else y)
        self._columns = columns

    def predict_proba_one(self, x: Any) -> dict[Any, float]:  # type: ignore[override]
        """Label → probability; empty before anything was learned."""
        if self._answers is None:
            return {}
        if self.backbone is None:
            x = self._vector(_check_features(x), self._columns)
        return self._answers.proba_one(x)

    def _build(self) -> LabelledModel:
        configuration = Configuration().with_options(options_of(self) | {"seed": self.seed})
        return LabelledModel(
            configuration, features=self.features if self.backbone is None else None
        )

    def _with_new(self, x: Mapping[Hashable, Any]) -> dict[Hashable, int]:
        """Feature → column, the features of x included; their order in x plays no role."""
        new = [key for key in x if key not in self._columns]
        if not new:
            return self._columns
        new.sort(key=lambda key: (type(key).__name__, str(key)))
        if len(self._columns) + len(new) > self.features:
            raise BadSetting(
                f"there are more than {self.features} different features: give a larger "
                f"features=…, at least {len(self._columns) + len(new)}"
            )
        return self._columns | {key: len(self._columns) + i for i, key in enumerate(new)}

    def _vector(
        self, x: Mapping[Hashable, Any], columns: Mapping[Hashable, int]
    ) -> npt.NDArray[np.float32]:
        z = np.zeros(self.features, np.float32)
        for key, value in x.items():
            if key not in columns:
                continue
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = math.nan
            if not math.isfinite(number):
                raise BadData(
                    f"the feature {key!r} is {value!r}, which is no finite number: encode or "
                    "impute it before (river.preprocessing)"
                )
            z[columns[key]] = number
        return z


def _check_features(x: object) -> Mapping[Hashable, Any]:
    if not isinstance(x, Mapping):
        raise BadData(
            f"x is a {type(x).__name__}; without a backbone it is a dict of features: "
            f"for images give backbone={DEFAULT_BACKBONE!r}"
        )
    return x
