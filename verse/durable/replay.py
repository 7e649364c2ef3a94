"""What each entry of the journal does to a classifier, when it is made and whenever it is replayed.

Replayed in their order, the entries give the same weights and memory to the last bit.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from verse.classifier import StreamClassifier
from verse.durable.options import twin
from verse.durable.rows import Entry
from verse.types import Label, Refused

NOTHING: dict[str, Any] = {"names": [], "known": [], "taught": [], "position": 0}


class Replayed:
    """A classifier's state: its learner, its labels, how often each was taught, how far it is.

    It uses the plain methods of ``StreamClassifier``: those of a durable classifier would write
    down again what is being replayed.

    >>> from verse import backbones
    >>> state = Replayed(StreamClassifier(backbone=backbones.identity((2,))))
    >>> state.learn(torch.ones(2), "mug")
    >>> state.apply("rename", {"label": "mug", "new": "cup"})
    >>> state.taught, state.classifier.classes
    ({'cup': 1}, ['cup'])
    """

    def __init__(self, classifier: StreamClassifier) -> None:
        self.classifier = classifier
        self.taught: dict[Label, int] = {}  # label → how many samples were learned
        self.position = 0  # newest entry contained in the state

    def learn(self, z: Tensor, label: Label) -> None:
        # its own aligned storage, live and replayed alike: the bits of products depend on it
        StreamClassifier.learn_feature(self.classifier, z.clone(), label)
        self.taught[label] = self.taught.get(label, 0) + 1

    def apply(self, kind: str, arguments: dict[str, Any]) -> Any:
        """Do what an entry says. After an undo its class may never have come: then it means
        nothing, or merging into that class is renaming."""
        classifier = self.classifier
        if kind == "consolidate":
            return StreamClassifier.consolidate(classifier)
        label: Label = arguments["label"]
        if label not in classifier._numbers:
            return 0
        if kind == "forget":
            classifier._names[classifier._numbers[label]] = ""  # the name goes too
            del self.taught[label]
            return StreamClassifier.forget(classifier, label)
        new: Label = arguments["new"]
        self.taught[new] = self.taught.get(new, 0) + self.taught.pop(label)
        if kind == "rename" or new not in classifier._numbers:
            return StreamClassifier.rename(classifier, label, new)
        return StreamClassifier.merge(classifier, label, new)

    def replay(self, entry: Entry) -> None:
        """Do an entry of the journal again."""
        if entry.fate == "kept" and entry.kind == "learn":
            z = torch.frombuffer(bytearray(entry.z or b""), dtype=torch.float32)
            # refused again, as it was when it came: only the mark had not been written
            with suppress(Refused):
                shape = self.classifier.backbone.F.z_shape
                self.learn(z.reshape(shape), entry.arguments["label"])
        elif entry.fate == "kept":
            self.apply(entry.kind, entry.arguments)
        self.position = entry.seq

    # ---- as a checkpoint holds it -----------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What a checkpoint says besides the tensors of the learner."""
        place = {"position": self.position, "taught": list(self.taught.items())}
        return StreamClassifier.spec(self.classifier) | place

    def begin(self) -> None:
        """Have learned nothing."""
        self.become(twin(self.classifier).learner.state(), NOTHING)

    def become(self, tensors: dict[str, Tensor], spec: dict[str, Any]) -> None:
        """Be what a checkpoint holds."""
        self.classifier.learner.load_state(tensors)
        self.classifier._names = list(spec["names"])
        self.classifier._numbers = {label: number for label, number in spec["known"]}  # noqa: C416
        self.taught = {label: count for label, count in spec["taught"]}  # noqa: C416
        self.position = spec["position"]
