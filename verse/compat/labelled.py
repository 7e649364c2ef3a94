"""A classifier whose labels are whatever another library uses: booleans, numbers, any objects."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.backbones import identity
from verse.build import build_backbone, build_learner
from verse.configuration import Configuration
from verse.kernels.interrupts import defer_interrupt
from verse.types import Image

BLOCK = 32  # rows that are answered together

PER_CLASS = 20  # samples that an adapter remembers of each class, if nothing else is said


class LabelledModel:
    """A learner that gives classes back their own labels, of any kind that can be hashed.

    Parameters
    ----------
    configuration
        What it is made of.
    features
        How many features an input has; None: inputs are images for the configured backbone.

    Pickles hold no pretrained weights: the backbone is built again by its name.

    >>> answers = LabelledModel(Configuration(), features=2)
    >>> for t in range(60):
    ...     answers.learn(np.eye(2)[t % 2] * 3, t % 2 == 0)
    >>> {label: round(p) for label, p in answers.proba_one(np.array([3.0, 0.0])).items()}
    {True: 1, False: 0}
    """

    def __init__(self, configuration: Configuration, *, features: int | None = None) -> None:
        self.configuration, self.features = configuration, features
        self.labels: list[Hashable] = []  # the learner's output → label
        self._build()

    def _build(self) -> None:
        self._outputs: dict[Hashable, int] = {label: n for n, label in enumerate(self.labels)}
        self.backbone = (
            build_backbone(self.configuration) if self.features is None else identity(self.features)
        )
        self.learner = build_learner(self.configuration, self.backbone.F)

    def __getstate__(self) -> dict[str, Any]:
        # as arrays: equal states make equal pickles, which tensors do not
        state = {k: v.numpy().copy() for k, v in self.learner.state().items()}
        kept = ("configuration", "features", "labels")
        return {name: self.__dict__[name] for name in kept} | {"state": state}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        tensors = {name: torch.from_numpy(array) for name, array in kept.pop("state").items()}
        self.__dict__.update(kept)
        self._build()
        self.learner.load_state(tensors)

    def learn(self, x: Image, label: Hashable) -> None:
        """Learn one sample; if it is refused, everything is as before."""
        output = self._outputs.get(label, len(self.labels))
        z = self.backbone.G([x])[0]
        with defer_interrupt():
            self.learner.learn_one(z, output)
            if output == len(self.labels):
                self.labels.append(label)
                self._outputs[label] = output

    def proba(self, X: Sequence[Image]) -> npt.NDArray[np.float64]:
        """Probabilities [n, classes], columns as ``labels``; each row's sum is 1."""
        Z = self.backbone.G(X)
        parts = [self._proba_block(Z[start : start + BLOCK]) for start in range(0, len(Z), BLOCK)]
        p = torch.cat(parts).double().numpy() if parts else np.zeros((0, len(self.labels)))
        return np.asarray(p / p.sum(1, keepdims=True))

    def _proba_block(self, Z: Tensor) -> Tensor:
        """Always of ``BLOCK`` rows: how products round depends on how many there are, and a row's
        probabilities must not depend on the rows beside it."""
        full = torch.cat((Z, Z[:1].expand(BLOCK - len(Z), *Z.shape[1:])))
        return self.learner.predict_proba_many(full)[: len(Z)]

    def proba_one(self, x: Image) -> dict[Hashable, float]:
        """Label → probability; empty before anything was learned."""
        if not self.labels:
            return {}
        p = self.learner.predict_proba_many(self.backbone.G([x]))[0].double()
        return dict(zip(self.labels, (p / p.sum()).tolist(), strict=True))


def options_of(adapter: Any) -> dict[str, Any]:
    """The options of a configuration that an adapter has as attributes, its seed excepted."""
    names = ("learner", "settings", "weights", "memory", "capacity")
    found = {name: getattr(adapter, name) for name in names}
    if adapter.capacity is None:
        found["per_class"] = adapter.per_class
    return found | ({} if adapter.backbone is None else {"backbone": adapter.backbone})
