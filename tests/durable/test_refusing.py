"""A refused sample is recorded, changes nothing and harms no other."""

from __future__ import annotations

import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, opened, same, state, stream
from verse.durable import Lesson
from verse.types import BadLabel, Refused


def test_a_refused_sample_is_recorded_and_changes_nothing(tmp_path, monkeypatch) -> None:
    samples = stream(6)
    classifier = opened(tmp_path)
    for z, label in samples:
        classifier.learn_feature(z, label)
    before = state(classifier)

    def refuse(gradient, clip):
        raise Refused("made to refuse")

    with monkeypatch.context() as patch:
        patch.setattr(classifier.learner, "clip_scale", refuse)
        with pytest.raises(Refused, match="made to"):
            classifier.learn_feature(torch.ones(DIM), "new")
    assert same(classifier, before) and "new" not in classifier.taught
    assert [e.fate for e in classifier._journal.since(0)] == ["kept"] * 6 + ["refused"]
    with pytest.raises(Refused, match="finite"):
        classifier.learn_feature(torch.full((DIM,), torch.nan), "new")
    with pytest.raises(Refused, match="shape"):
        classifier.learn_feature(torch.ones(DIM + 1), "new")
    with pytest.raises(BadLabel):
        classifier.learn_feature(torch.ones(DIM), "")
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, before) and again.classes == list(again.taught)


def test_killed_before_a_refusal_was_marked(tmp_path, monkeypatch) -> None:
    """The entry is in the journal as kept; replaying refuses it again."""
    classifier = opened(tmp_path)
    classifier.learn_feature(torch.ones(DIM), "a")
    classifier.learn_feature(torch.zeros(DIM), "b")
    huge = torch.full((DIM,), 3e38)  # finite, but its scores are not
    monkeypatch.setattr(classifier._write_ahead, "_refuse", lambda seq, reason: None)
    with pytest.raises(Refused):
        classifier.learn_feature(huge, "a")
    expected = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, expected) and again.samples == 2


def test_a_group_shares_one_flush_and_a_refused_one_harms_no_other(tmp_path) -> None:
    huge = torch.full((DIM,), 3e38)
    with opened(tmp_path) as classifier:
        lessons = [
            Lesson(torch.ones(DIM), "a", "k1"),
            Lesson(torch.zeros(DIM), "b", "k2"),
            Lesson(huge, "a", "k3"),
            Lesson(torch.ones(DIM), "b", "k4"),
            Lesson(torch.ones(DIM), "b", "k4"),
        ]
        first, _, refused, third, repeated = classifier.learn_lessons(lessons, ask=True)
        assert first.learned and third.learned and isinstance(refused.error, Refused)
        assert repeated.repeated and repeated.seq == third.seq
        assert first.guess.label is None and third.guess.label in ("a", "b")
        assert classifier.samples == 3
        learned = [(torch.ones(DIM), "a"), (torch.zeros(DIM), "b"), (torch.ones(DIM), "b")]
        assert same(classifier, clean(learned))


def test_a_key_is_learned_once(tmp_path) -> None:
    samples = stream(60)
    with opened(tmp_path) as classifier:
        seqs = [classifier.learn_feature(z, y, key=f"k{i}") for i, (z, y) in enumerate(samples)]
        assert [
            classifier.learn_feature(z, y, key=f"k{i}") for i, (z, y) in enumerate(samples)
        ] == seqs
    with opened(tmp_path) as classifier:
        assert classifier.learn_feature(*samples[0], key="k0") == seqs[0]
        classifier.undo(seqs[-1])
        assert classifier.learn_feature(*samples[-1], key="k59") == seqs[-1]  # undone stays undone
        assert same(classifier, clean(samples[:-1]))
