"""What a journal is about: a classifier, how often each label was taught, how far it is.

Replayed in their order, the entries give the same weights and memory to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from verse.classifier import StreamClassifier
from verse.durable.entry import JournalEntry
from verse.durable.sample_index import SampleIndex
from verse.types import BadState, Label, Refused


class State:
    """What each entry of the journal does, when it is made and whenever it is replayed.

    >>> from verse import backbones
    >>> state = State(StreamClassifier(backbone=backbones.identity((2,))))
    >>> state.learn(torch.ones(2), "mug", seq=1)
    >>> state.apply("rename", {"label": "mug", "new": "cup"})
    >>> state.taught, state.classifier.classes
    ({'cup': 1}, ['cup'])
    """

    def __init__(self, classifier: StreamClassifier) -> None:
        self.classifier = classifier
        self.taught: dict[Label, int] = {}  # label → how many samples were learned
        self.position = 0  # newest entry contained in the state
        self.index = SampleIndex()

    def learn(self, z: Tensor, label: Label, *, seq: int) -> None:
        """Learn a feature whose label was checked."""
        # its own aligned storage, live and replayed alike: the bits of products depend on it
        self.classifier.learn_prepared(z.clone(), label)
        self.taught[label] = self.taught.get(label, 0) + 1
        self.index.add(z, seq)

    def apply(self, kind: str, arguments: dict[str, Any]) -> Any:
        """Do what an entry says. After an undo its class may never have come: then it means
        nothing, or merging into that class is renaming."""
        classifier = self.classifier
        if kind in ("undo", "strike"):  # what they took back is not replayed
            return 0
        if kind == "consolidate":
            return classifier.consolidate()
        label: Label = arguments["label"]
        if label not in classifier.labels:
            return 0
        if kind == "forget":
            del self.taught[label]
            return classifier.forget(label)
        new: Label = arguments["new"]
        self.taught[new] = self.taught.get(new, 0) + self.taught.pop(label)
        if kind == "rename" or new not in classifier.labels:
            return classifier.labels.rename(label, new)  # checked when it was written down
        return classifier.merge(label, new)

    def replay(self, entry: JournalEntry) -> bool:
        """Do an entry of the journal again. False: a sample is refused again, as it was when it
        came; only the mark had not been written."""
        self.position = entry.seq
        if entry.fate != "kept":
            return True
        if entry.kind != "learn":
            self.apply(entry.kind, entry.arguments)
            return True
        z = torch.frombuffer(bytearray(entry.z or b""), dtype=torch.float32)
        try:
            shape = self.classifier.backbone.F.z_shape
            self.learn(z.reshape(shape), entry.arguments["label"], seq=entry.seq)
        except Refused:
            return False
        return True

    # ---- as a checkpoint holds it -----------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What a checkpoint says besides the tensors of the learner."""
        place = {"position": self.position, "taught": list(self.taught.items())}
        return self.classifier.spec() | place | {"index": self.index.document()}

    def reset(self) -> None:
        """Have learned nothing."""
        self.classifier.reset()
        self.taught, self.position, self.index = {}, 0, SampleIndex()

    def restore(self, tensors: dict[str, Tensor], spec: Mapping[str, Any]) -> None:
        """Become what a checkpoint holds."""
        try:
            taught = {label: int(count) for label, count in spec["taught"]}
            position = int(spec["position"])
            index = SampleIndex()
            index.load(spec.get("index", ""))  # earlier versions had none
        except (KeyError, TypeError, ValueError) as error:
            raise BadState(f"the checkpoint is damaged: {error}") from error
        self.classifier.restore(tensors, spec)
        self.taught, self.position, self.index = taught, position, index
