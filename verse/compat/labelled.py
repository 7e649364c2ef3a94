"""A classifier whose labels are whatever another library uses: booleans, numbers, any objects."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from verse.backbones import identity
from verse.classifier import StreamClassifier


class Labelled:
    """A ``StreamClassifier`` that knows classes by number and gives them back their own labels.

    ``backbone`` is a name, or how many features an input has. Pickles hold no pretrained weights:
    the backbone is built again, as by name before.

    >>> answers = Labelled(2)
    >>> for t in range(60):
    ...     answers.learn(np.eye(2)[t % 2] * 3, t % 2 == 0)
    >>> {label: round(p) for label, p in answers.proba_one(np.array([3.0, 0.0])).items()}
    {True: 1, False: 0}
    """

    def __init__(
        self,
        backbone: str | int,
        *,
        weights: str | Path | None = None,
        learner: str = "verse",
        settings: Mapping[str, Any] | None = None,
        memory: str = "class-balanced",
        capacity: int | None = None,
        per_class: int = 20,
        seed: int = 0,
    ) -> None:
        self._arguments: dict[str, Any] = {
            "weights": weights,
            "learner": learner,
            "settings": settings,
            "memory": memory,
            "capacity": capacity,
            "per_class": per_class,
            "seed": seed,
        }
        self._backbone = backbone
        self.labels: list[Hashable] = []
        self._numbers: dict[Hashable, int] = {}
        self.classifier = self._build()

    def _build(self) -> StreamClassifier:
        backbone = identity(self._backbone) if isinstance(self._backbone, int) else self._backbone
        return StreamClassifier(backbone=backbone, **self._arguments)

    def __getstate__(self) -> dict[str, Any]:
        # as arrays: equal states make equal pickles, which tensors do not
        state = {k: v.numpy().copy() for k, v in self.classifier.learner.state().items()}
        kept = {k: v for k, v in self.__dict__.items() if k not in ("classifier", "_numbers")}
        return kept | {"state": state}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        tensors = {name: torch.from_numpy(array) for name, array in kept.pop("state").items()}
        self.__dict__.update(kept)
        self._numbers = {label: number for number, label in enumerate(self.labels)}
        names = list(range(len(self.labels)))
        spec = {"names": names, "known": [(n, n) for n in names]}
        fresh = self._build()
        self.classifier = StreamClassifier.from_state(
            tensors, fresh.spec() | spec, backbone=fresh.backbone
        )

    def learn(self, x: object, label: Hashable) -> None:
        """Learn one sample; if it is refused, everything is as before."""
        number = self._numbers.get(label, len(self.labels))
        self.classifier.learn_one(x, number)
        if number == len(self.labels):
            self.labels.append(label)
            self._numbers[label] = number

    def proba(self, X: Sequence[object]) -> npt.NDArray[np.float64]:
        """Probabilities [n, classes], columns as ``labels``; each row's sum is 1."""
        learner = self.classifier.learner
        p = learner.predict_proba_many(self.classifier.features(X)).double().numpy()
        p = p / p.sum(1, keepdims=True)
        columns = [learner.labels.index(number) for number in range(len(self.labels))]
        return np.asarray(p[:, columns])

    def proba_one(self, x: object) -> dict[Hashable, float]:
        """Label → probability; empty before anything was learned."""
        if not self.labels:
            return {}
        return dict(zip(self.labels, self.proba([x])[0].tolist(), strict=True))
