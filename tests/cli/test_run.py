"""``verse run``: what it prints and saves, bad inputs, and kill -9 at random points."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from verse.cli import main
from verse.configuration import DEFAULT_LEARNER
from verse.experiments.store import Store

KEYS = {
    "run",
    "dataset",
    "learner",
    "order",
    "seed",
    "backbone",
    "capacity",
    "alpha",
    "mu_all",
    "omega_all",
    "offline_alpha",
    "final_accuracy",
    "steps",
    "steps_per_second",
    "memory_bytes",
    "classes",
}
TINY = [f"--data={pair}" for pair in ("frames=1", "size=16", "instances=2", "sessions=2")]
TOY = ("run", "verse_toy.load", "--backbone", "verse_toy.flat", "--capacity", "20")


@pytest.fixture(autouse=True)
def _toy(points: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def call(*args: str) -> Result:
    return CliRunner().invoke(main, list(args), catch_exceptions=False)


def document(*args: str) -> dict[str, Any]:
    result = call(*args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_json_has_every_key_and_omega_is_right() -> None:
    found = document(*TOY)
    assert set(found) >= KEYS
    pairs = list(zip(found["alpha"], found["offline_alpha"], strict=True))
    assert found["omega_all"] == pytest.approx(sum(a / o for a, o in pairs) / len(pairs))
    assert found["classes"] == ["class0", "class1", "class2", "class3"]
    assert found["steps"] == 64


def test_without_offline_there_is_no_omega() -> None:
    found = document(*TOY, "--no-offline")
    assert (found["omega_all"], found["offline_alpha"]) == (None, None)


def test_it_says_what_it_will_do_before_it_starts() -> None:
    result = call(*TOY, "--learner", "tinyer", "--no-offline")
    said = " ".join(result.stderr.split())
    assert "4 classes, 64 training frames in 8 videos" in said
    assert (
        "tinyer, class-instance, random seed 0, memory 20 samples (20, at most 0.00048 MB)" in said
    )
    assert "to learn 64 frames with 4 tests" in said and "time about" in said
    assert result.stdout.count("event") == 1  # its table once
    assert "event" not in result.stderr


def test_changed_data_are_not_taken_for_a_finished_run(tmp_path: Path) -> None:
    images(tmp_path / "photos")
    run = ("run", "folder:photos", "--weights", "random", "--at", "fc", "--no-offline")
    first = call(*run)
    assert first.exit_code == 0
    again = call(*run)
    assert "already finished; use --fresh to run it again" in again.stderr
    assert again.stdout == first.stdout
    assert "already finished" not in call(*run, "--fresh").stderr
    images(tmp_path / "photos" / "more", classes=1)
    (tmp_path / "photos" / "more" / "class0").rename(tmp_path / "photos" / "class3")
    (tmp_path / "photos" / "more").rmdir()
    changed = call(*run)
    assert "the data has changed since this run finished" in changed.stderr
    assert changed.stdout != first.stdout
    (kept,) = Store(tmp_path / "runs").results()  # the newer one took its place
    assert len(kept.classes) == 3


def test_people_see_the_curve_and_the_summary(tmp_path: Path) -> None:
    result = call(*TOY, "--order", "iid", "--steps", "4", "--fps", "20", "--step-seconds", "0.12")
    assert result.exit_code == 0
    for text in ("α_t", "Offline", "μ_all", "Ω_all", "saved in runs", "34.4% of the frames"):
        assert text in result.stdout
    (kept,) = Store(tmp_path / "runs").results()
    assert kept.run.order == "iid"


def test_options_reach_the_run(tmp_path: Path) -> None:
    found = document(
        *TOY,
        "--learner",
        "tinyer",
        "--set",
        "C=3",
        "--set",
        "clip=none",
        "--data",
        "frames=4",
        "--memory",
        "fifo",
        "--order",
        "instance",
        "--seed",
        "3",
        "--no-offline",
        "--prequential",
        "--out",
        "here",
        "--plot",
        "curve.svg",
        "--track",
        "jsonl:events.jsonl",
        "--no-cache",
    )
    spec = found["spec"]
    assert spec["settings"] == {"C": 3, "clip": None}
    assert (spec["options"], spec["memory"], spec["seed"]) == ({"frames": 4}, "fifo", 3)
    assert found["prequential"] is not None
    assert found["results"] == "here"
    assert Store(tmp_path / "here").load(found["run"]).learned == found["steps"]
    assert (tmp_path / "curve.svg").read_text().count("<svg") == 1
    assert (tmp_path / "events.jsonl").read_text().count('"tested"') == len(found["alpha"])
    assert not list((tmp_path / "cache").rglob("*.z"))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("run", "tabletopp"), "did you mean 'tabletop'"),
        (("run", "folder:nowhere"), "there is no folder nowhere"),
        (
            ("run", "tabletop", "--at", "hed", *TINY),
            "did you mean 'head'",
        ),
        ((*TOY, "--learner", "vers"), "did you mean 'verse'"),
        ((*TOY, "--order", "iidd"), "did you mean 'iid'"),
        ((*TOY, "--set", "betta=1"), "did you mean 'beta'"),
        ((*TOY, "--set", "beta"), "write name=value"),
        ((*TOY, "--set", "beta=-1"), "beta must be > 0"),
        ((*TOY, "--capacity", "many"), "20 per class"),
        ((*TOY, "--memory", "ring"), "there are: reservoir"),
        ((*TOY, "--data", "fames=3"), "it has: classes, videos, frames"),
        ((*TOY, "--holdout", "last:1"), "split of its own"),
        ((*TOY, "--validation", "last:9"), "hold out fewer"),
        ((*TOY, "--track", "xml:a"), "jsonl:PATH"),
        ((*TOY, "--plot", "curve.doc"), ".png"),
        ((*TOY, "--precision", "int8"), "float32, bfloat16"),
        ((*TOY, "--batchnorm", "froze"), "did you mean 'frozen'"),
        ((*TOY, "--features", "float64"), "did you mean 'float"),
        ((*TOY, "--backbone", "nowhere.at_all"), "cannot import the backbone"),
        (("run", "tabletop", "--backbone", "resnet"), "did you mean 'resnet18'"),
        ((*TOY, "--data", "bad=1", "--strict"), "point 0 is damaged; mend or remove it"),
    ],
)
def test_bad_input_exits_with_2_and_says_what_to_do(args: tuple[str, ...], message: str) -> None:
    result = call(*args, "--no-offline")
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_unreadable_images_are_skipped_with_a_count() -> None:
    result = call(*TOY, "--data", "bad=2", "--no-offline", "--json")
    assert result.exit_code == 0
    assert "Warning: 2 of 64 images cannot be read" in result.stderr
    assert json.loads(result.stdout)["unreadable"] == 2


def images(folder: Path, classes: int = 2, videos: int = 2, frames: int = 2) -> None:
    for c in range(classes):
        for v in range(videos):
            place = folder / f"class{c}" / f"video{v}"
            place.mkdir(parents=True)
            for f in range(frames):
                pixels = np.full((32, 32, 3), (80 * c, 20 * v, 10 * f), np.uint8)
                Image.fromarray(pixels).save(place / f"{f}.png")


def test_a_folder_of_images_through_a_real_network(tmp_path: Path) -> None:
    images(tmp_path / "photos")
    (tmp_path / "photos" / "class0" / "video0" / "0.png").write_bytes(b"no image")
    result = call("run", "folder:photos", "--weights", "random", "--at", "fc", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["unreadable"], found["steps"]) == (1, 3)
    assert len(found["offline_alpha"]) == 2


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    images(tmp_path / "photos")
    (tmp_path / "photos" / "class2").mkdir()
    result = call("run", "folder:photos", "--weights", "random")
    assert result.exit_code == 2
    assert "class 'class2' has no images" in result.stderr
    images(tmp_path / "split" / "train")
    images(tmp_path / "split" / "test", classes=3)
    result = call("run", "folder:split", "--weights", "random")
    assert result.exit_code == 2
    assert "classes that training never shows (class2)" in " ".join(result.stderr.split())


def test_an_output_folder_with_the_data_sets_name_is_not_read_as_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images(tmp_path / "shared" / "photos")
    monkeypatch.setenv("VERSE_DATA", str(tmp_path / "shared"))
    args = ("run", "folder:photos", "--out", "photos", "--weights", "random", "--learner", "ncm")
    first = document(*args, "--no-offline")
    assert first["steps"] == 4
    assert document(*args, "--no-offline") == first  # again, now that it holds results


def test_data_that_cannot_be_read_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "void").mkdir()
    args = ("--out", "results", "--track", "jsonl:events.jsonl")
    result = call("run", "folder:void", *args)
    assert result.exit_code == 2
    said = "".join(result.stderr.split())
    assert f"{tmp_path / 'void'}holdsnothing" in said
    assert [path.name for path in tmp_path.iterdir()] == ["void"]


def test_resume_of_a_finished_run_only_prints_it() -> None:
    track = ("--track", "jsonl:events.jsonl", "--track", "csv:alpha.csv")
    first = document(*TOY, "--no-offline", *track)
    kept = next(Path("runs").glob(f"verse_toy.load/{DEFAULT_LEARNER}.jsonl"))
    files = [kept, Path("events.jsonl"), Path("alpha.csv")]
    before = [(f.stat().st_mtime_ns, f.read_bytes()) for f in files]
    assert document(*TOY, "--no-offline", *track) == first
    assert [(f.stat().st_mtime_ns, f.read_bytes()) for f in files] == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_kill_9_at_random_points_changes_nothing(tmp_path: Path) -> None:
    args = [
        *TOY,
        "--learner",
        "verse_toy.Slow",
        "--no-offline",
        "--data",
        "frames=80",
        "--save-seconds",
        "0",
        "--threads",
        "1",
        "--json",
    ]
    whole = finished(start(*args, "--out", "whole"))
    saved = tmp_path / "cut" / ".partial" / f"{whole['run']}.checkpoint"
    chance = random.Random(int.from_bytes(os.urandom(4), "big"))
    killed = 0
    for _ in range(5):
        process = start(*args, "--out", "cut")
        wanted = chance.randint(1, 6)  # saves to wait for: at least one, so that it gets on
        seen: set[int] = set()
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        deadline = time.monotonic() + 60
        while len(seen) < wanted and time.monotonic() < deadline and not ended(process):
            if saved.exists():
                seen |= {saved.stat().st_mtime_ns} - {before}
            time.sleep(0.0005)
        time.sleep(chance.random() * 0.02)
        os.kill(process, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(process, 0)[1])
    assert killed >= 2  # a busy machine may let some finish first
    cut = finished(start(*args, "--out", "cut"))
    assert cut["alpha"] == whole["alpha"]
    assert cut["steps"] == whole["steps"] == 640
    assert not saved.exists()


def start(*args: str) -> int:
    """The command in a process of its own. It is forked: kill and files are real, a start cheap."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            with open("out.json", "w") as out, contextlib.redirect_stdout(out):
                code = main(list(args), standalone_mode=False) or 0
        finally:
            os._exit(code)
    return process


def ended(process: int) -> bool:
    """Whether it has ended by itself; who waits for it can still ask how."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def finished(process: int) -> dict[str, Any]:
    assert os.waitpid(process, 0)[1] == 0
    found: dict[str, Any] = json.loads(Path("out.json").read_text())
    return found


def test_ctrl_c_exits_with_130_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verse.cli import live

    def stop(self: live.Live, event: object) -> None:
        if isinstance(event, live.Learned) and event.position >= 32:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(live.Live, "__call__", stop)
        result = call(*TOY, "--no-offline", "--out", "cut", "--track", "jsonl:cut.jsonl")
    assert result.exit_code == 130
    assert list((tmp_path / "cut" / ".partial").glob("*.checkpoint"))
    cut = document(*TOY, "--no-offline", "--out", "cut", "--track", "jsonl:cut.jsonl")
    whole = document(*TOY, "--no-offline", "--out", "whole", "--track", "jsonl:whole.jsonl")
    assert cut["alpha"] == whole["alpha"]
    cut_losses, whole_losses = (
        [line for line in (tmp_path / name).read_text().splitlines() if '"learned",' in line]
        for name in ("cut.jsonl", "whole.jsonl")
    )
    assert len(whole_losses) > 3 and cut_losses[0] == whole_losses[0]
    # the frame that Ctrl-C came at was learned and saved, but its event told nobody
    assert set(cut_losses) <= set(whole_losses) and len(cut_losses) >= len(whole_losses) - 1
