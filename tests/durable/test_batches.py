"""Several samples between two flushes: what a crash or a full disk can take."""

from __future__ import annotations

import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, full_disk, opened, same, state, stream
from verse.durable import JournalFull, timing
from verse.types import BadSetting


def test_batch_mode_loses_at_most_the_last_batch(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(timing, "BATCH_SECONDS", 1e9)
    samples = stream(75)
    classifier = opened(tmp_path, durable="batch")
    for z, label in samples:
        classifier.learn_feature(z, label)
    assert same(classifier, clean(samples))
    abandon(classifier)
    with opened(tmp_path, durable="batch") as again:
        kept = again.samples
        assert 75 - 32 < kept <= 75
        assert same(again, clean(samples[:kept]))
        for z, label in samples[kept:]:
            again.learn_feature(z, label)
        again.flush()
        assert same(again, clean(samples))
    with pytest.raises(BadSetting, match="'each' or 'batch'"):
        opened(tmp_path / "x", durable="never")


def test_batch_mode_keeps_what_a_full_disk_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(timing, "BATCH_SECONDS", 1e9)
    classifier = opened(tmp_path, durable="batch")
    for z, label in stream(5):
        classifier.learn_feature(z, label)
    with full_disk(), pytest.raises(JournalFull):
        classifier.learn_many([torch.ones(DIM)] * 40, ["more"] * 40)
    learned = classifier.samples
    classifier.flush()
    before = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert again.samples == learned and same(again, before)


def test_closing_on_a_full_disk_loses_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(timing, "BATCH_SECONDS", 1e9)
    classifier = opened(tmp_path, durable="batch")
    for z, label in stream(15):
        classifier.learn_feature(z, label)
    with full_disk(), pytest.raises(JournalFull, match="free some disk space"):
        classifier.close()
    classifier.close()
    with opened(tmp_path) as again:
        assert again.samples == 15
