"""Images kept beside the features, so that another backbone can take over."""

from __future__ import annotations

import pytest
import torch

import verse
from tests.durable.taught import picture, same
from verse import backbones
from verse.classifier import StreamClassifier
from verse.types import BadSetting, BadState


def test_kept_images_let_another_backbone_take_over(tmp_path) -> None:
    old = backbones.build("efficientnet-lite0", at="fc", weights="random")
    new = backbones.build("resnet18", at="fc", weights="random")
    with verse.open(tmp_path, backbone=old, keep_images=True) as classifier:
        for t in range(6):
            classifier.learn_one(picture(t), "ab"[t % 2])
        classifier.undo()
        classifier.rename("a", "A")
        with pytest.raises(BadSetting, match="images"):
            classifier.learn_feature(torch.ones(1280), "a")
        classifier.learn_many([picture(9)], ["c"])
    with pytest.raises(BadState, match="reread=True"):
        verse.open(tmp_path, backbone=new)
    expected = StreamClassifier(backbone=new)
    for t, label in [(0, "A"), (1, "b"), (2, "A"), (3, "b"), (4, "A"), (9, "c")]:
        expected.learn_one(picture(t), label)
    with verse.open(tmp_path, backbone=new, reread=True) as classifier:
        assert same(classifier, expected)
        assert classifier.taught == {"A": 3, "b": 2, "c": 1}
    with verse.open(tmp_path, backbone=new) as classifier:
        assert same(classifier, expected)
    with pytest.raises(BadState, match="another backbone"):
        verse.open(tmp_path, backbone=old)
