"""Trackers write down what a stream says."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from verse.evaluate import Finished, Learned, SoFar, Tested
from verse.trackers import tracker
from verse.types import BadSetting

TESTED = Tested(10, [0, 1], 0.5, [[0, 1, 1]], [[0, 1, 1]], [[0, 0, 1]], 0.25)
EVENTS = [
    object(),
    Learned(5, 5, {"loss": float("nan"), "loss_v": 0.5}),
    TESTED,
    Finished(SoFar(learned=10, tested=[TESTED])),
]


def feed(spec: str) -> None:
    writer = tracker(spec)
    for event in EVENTS:
        writer(event)
    writer.close()


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "events.jsonl"
    feed(f"jsonl:{file}")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["learned", "tested", "finished"]
    assert lines[0]["losses"] == {"loss": None, "loss_v": 0.5}
    assert lines[2]["alpha"] == [0.5]


def test_csv(tmp_path: Path) -> None:
    feed(f"csv:{tmp_path / 'alpha.csv'}")
    rows = list(csv.DictReader((tmp_path / "alpha.csv").read_text().splitlines()))
    assert rows == [{"after": "10", "classes": "2", "accuracy": "0.5", "seconds": "0.25"}]


def test_a_line_is_there_at_once(tmp_path: Path) -> None:
    writer = tracker(f"jsonl:{tmp_path / 'a'}")
    writer(TESTED)
    assert (tmp_path / "a").read_text().endswith("\n")
    writer.close()


def test_a_resumed_file_goes_on(tmp_path: Path) -> None:
    """Killed after frame 20, saved at frame 12: what comes again is written once."""
    file = tmp_path / "events.jsonl"

    def learned(*positions: int) -> list[Learned]:
        return [Learned(p, p, {"loss": float(p)}) for p in positions]

    first = tracker(f"jsonl:{file}")
    for event in (*learned(4, 8), TESTED, *learned(12, 16, 20)):
        first(event)
    first.close()
    with file.open("a") as cut:
        cut.write('{"event": "lear')
    second = tracker(f"jsonl:{file}", resume=True)
    second(TESTED)
    assert len(file.read_text().splitlines()) == 7, "untouched until the run goes on"
    for event in (*learned(16, 20), Finished(SoFar(learned=20, tested=[TESTED]))):
        second(event)
    second.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    positions = [line.get("position", line.get("after")) for line in lines]
    assert positions == [4, 8, 10, 12, 16, 20, None]
    assert lines[-1]["event"] == "finished"


def test_resuming_without_a_file_begins_one(tmp_path: Path) -> None:
    writer = tracker(f"jsonl:{tmp_path / 'new'}", resume=True)
    writer(TESTED)
    writer.close()
    assert json.loads((tmp_path / "new").read_text())["after"] == 10


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    feed(f"tensorboard:{tmp_path}")
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"loss", "loss_v", "alpha", "classes"}
    assert events.Scalars("alpha")[0].step == 10


@pytest.mark.parametrize("spec", ["xml:a", "jsonl", "jsonl:"])
def test_an_unknown_form_is_told(spec: str) -> None:
    with pytest.raises(BadSetting, match="jsonl:PATH, csv:PATH, tensorboard:PATH"):
        tracker(spec)
