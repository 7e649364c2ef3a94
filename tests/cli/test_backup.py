"""``verse backup`` and ``verse restore``."""

from __future__ import annotations

import json

import torch
from click.testing import CliRunner

import verse
from verse import backbones
from verse.cli import main


def test_a_backup_made_while_learning_is_whole(tmp_path) -> None:
    backbone = backbones.identity((5,))
    with verse.open(tmp_path / "live", backbone=backbone) as classifier:
        for t in range(130):
            classifier.learn_feature(torch.eye(5)[t % 5] * 3, f"class {t % 5}")
        before = {k: v.clone() for k, v in classifier.learner.state().items()}
        made = CliRunner().invoke(
            main, ["backup", str(tmp_path / "live"), str(tmp_path / "b.zip"), "--json"]
        )
        assert made.exit_code == 0, made.stderr
        assert "journal.sqlite" in json.loads(made.stdout)["files"]
        classifier.learn_feature(torch.ones(5), "after")
    restored = CliRunner().invoke(
        main, ["restore", str(tmp_path / "b.zip"), str(tmp_path / "again")]
    )
    assert restored.exit_code == 0 and "restored" in restored.stdout
    with verse.open(tmp_path / "again", backbone=backbone) as again:
        after = again.learner.state()
        assert again.samples == 130 and all(torch.equal(after[k], before[k]) for k in before)
        assert len(again.undoable) == 100


def test_what_cannot_be_done_is_told(tmp_path) -> None:
    result = CliRunner().invoke(main, ["backup", str(tmp_path), str(tmp_path / "b.zip")])
    assert result.exit_code == 2 and "no classifier" in result.stderr
    (tmp_path / "x.zip").write_bytes(b"junk")
    result = CliRunner().invoke(main, ["restore", str(tmp_path / "x.zip"), str(tmp_path / "y")])
    assert result.exit_code == 2 and "no backup" in result.stderr
    assert not (tmp_path / "y").exists()
