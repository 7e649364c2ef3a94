"""A refused sample is recorded, changes nothing and harms no other."""

from __future__ import annotations

import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, opened, same, state, stream
from verse.durable import KeyUsed, Lesson
from verse.types import BadLabel, Refused


def test_a_refused_sample_is_recorded_and_changes_nothing(tmp_path, monkeypatch) -> None:
    samples = stream(6)
    classifier = opened(tmp_path)
    for z, label in samples:
        classifier.learn_feature(z, label)
    before = state(classifier)

    def refuse(*_: object):
        raise Refused("made to refuse")

    with monkeypatch.context() as patch:
        patch.setattr(classifier.learner, "require_finite", refuse)
        with pytest.raises(Refused, match="made to"):
            classifier.learn_feature(torch.ones(DIM), "new")
    assert same(classifier, before) and "new" not in classifier.taught
    assert [e.fate for e in classifier.journal.since(0)] == ["kept"] * 6 + ["refused"]
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
    monkeypatch.setattr(classifier.write_ahead, "refuse", lambda seq, reason: None)
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
        with pytest.raises(KeyUsed, match="then undone"):
            classifier.learn_feature(*samples[-1], key="k59")
        assert same(classifier, clean(samples[:-1]))


def test_a_key_is_bound_to_its_content(tmp_path) -> None:
    with opened(tmp_path) as classifier:
        seq = classifier.learn_feature(torch.ones(DIM), "a", key="k")
        for z, label in ((torch.zeros(DIM), "a"), (torch.ones(DIM), "b")):
            with pytest.raises(KeyUsed, match="another sample"):
                classifier.learn_feature(z, label, key="k")
        assert classifier.classes == ["a"]
        classifier.learn_feature(torch.zeros(DIM), "b")
        classifier.rename("a", "A")  # the key stays bound to what was sent
        assert classifier.learn_feature(torch.ones(DIM), "a", key="k") == seq
        assert classifier.fate_of("k") == "kept" and classifier.fate_of("none") is None
        classifier.forget("A")
        with pytest.raises(KeyUsed, match="then forgotten"):
            classifier.learn_feature(torch.ones(DIM), "a", key="k")
        assert classifier.classes == ["b"]


@pytest.mark.parametrize("durable", ["each", "batch"])
@pytest.mark.parametrize("marked", [True, False])
def test_a_refused_sample_is_refused_again(tmp_path, durable, marked, monkeypatch) -> None:
    """Also in the same group, after many others, and if it was killed before that was noted."""
    huge = torch.full((DIM,), 3e38)
    classifier = opened(tmp_path, durable=durable)
    classifier.learn_feature(torch.ones(DIM), "a")
    if not marked:
        monkeypatch.setattr(classifier.write_ahead, "refuse", lambda seq, reason: None)
    twice = [Lesson(huge, "a", "k"), Lesson(huge, "a", "k")]
    assert all(isinstance(o.error, Refused) for o in classifier.learn_lessons(twice))
    classifier.flush()
    abandon(classifier)
    with opened(tmp_path) as again:
        for _ in range(2):
            with pytest.raises(Refused, match="was refused when this key came first"):
                again.learn_feature(huge, "a", key="k")
            for t in range(30):  # until the entry itself is dropped
                again.learn_feature(torch.ones(DIM) * t, "a")
        assert again.fate_of("k") == "refused" and again.samples == 61
