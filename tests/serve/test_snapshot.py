"""What the predictor reads answers like the classifier itself, whatever the method."""

from __future__ import annotations

import pytest

import verse
from verse import backbones, learners
from verse.checks import small_stream
from verse.kernels import moments
from verse.serve.snapshot import PublishedState


@pytest.mark.parametrize("name", learners.names())
def test_a_published_state_answers_like_the_classifier(name: str, tmp_path) -> None:
    backbone = backbones.identity((6,))
    quick = {"epochs": 2, "lr": 0.1, "M": 64}
    quick = {k: v for k, v in quick.items() if k in learners.settings(name)}
    with verse.open(tmp_path, backbone=backbone, learner=name, settings=quick) as classifier:
        published = PublishedState(classifier)
        stream = small_stream(backbone.F, each=6)
        for t, (z, y) in enumerate(stream):
            classifier.learn_feature(z, str(y))
            if t == 13:
                classifier.forget("10")
            if t in (3, 8, 13, 17):
                classifier.consolidate()
                published.publish(classifier)
                for question, _ in stream[::5]:
                    given, own = published.answer(question), classifier.ask_feature(question)
                    assert given.probabilities == own.probabilities
                    assert (given.label, given.step) == (own.label, classifier.samples)


def test_an_answer_never_waits_for_statistics_to_be_solved(tmp_path, monkeypatch) -> None:
    backbone = backbones.identity((6,))
    with verse.open(tmp_path, backbone=backbone, learner="verse-lda") as classifier:
        published = PublishedState(classifier)
        for z, y in small_stream(backbone.F, each=2):
            classifier.learn_feature(z, str(y))
            published.publish(classifier)
            with monkeypatch.context() as patch:
                patch.setattr(moments, "lda", None)
                assert published.answer(z) == classifier.ask_feature(z)
