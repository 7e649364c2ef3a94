"""From a run to its result: Ω, exact resuming, real time, and data with holes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from verse import checkpoint
from verse.datasets.base import DataWarning
from verse.evaluate import Learned
from verse.experiments import Run, Stage, execute, prepare
from verse.experiments.partial import InexactResume
from verse.types import BadData, BadImage, BadState

Toy = Callable[..., Run]


@pytest.mark.parametrize("order", ["iid", "class-iid", "instance", "class-instance"])
def test_omega_is_the_one_computed_by_hand(toy: Toy, order: str) -> None:
    result = execute(toy(order=order, offline=True))
    summary = result.summary()
    alpha, offline = summary["alpha"], summary["offline_alpha"]
    by_hand = sum(a / o for a, o in zip(alpha, offline, strict=True)) / len(alpha)
    assert summary["omega_all"] == pytest.approx(by_hand, abs=1e-15)
    assert summary["mu_all"] == pytest.approx(sum(alpha) / len(alpha), abs=1e-15)
    assert len(alpha) == (4 if order.startswith("class") else 10)
    assert summary["final_accuracy"] == alpha[-1]


def test_counts_by_class_and_video_give_the_accuracy(toy: Toy) -> None:
    for event in execute(toy()).events:
        for counts in (event.by_class, event.by_video):
            assert sum(c[1] for c in counts) / sum(c[2] for c in counts) == event.accuracy
        right = sum(n for true, answer, n in event.confusion if true == answer)
        assert right / sum(c[2] for c in event.confusion) == event.accuracy


def test_a_run_repeats_exactly(toy: Toy) -> None:
    assert execute(toy()).alpha == execute(toy()).alpha
    assert execute(toy()).alpha == execute(toy(), cache=False).alpha


def test_features_of_half_precision_take_half_the_memory(toy: Toy) -> None:
    single, half = (execute(toy(features=name)) for name in ("float32", "float16"))
    label = 8 * single.capacity  # as long in both
    assert single.capacity == half.capacity
    assert half.memory_bytes - label == (single.memory_bytes - label) / 2
    more = execute(toy(features="float16", capacity=f"{single.memory_bytes}B"))
    assert more.capacity > single.capacity


class Killed(BaseException):
    """Stands for the end of a process: nothing may clean up after it."""


@pytest.mark.parametrize("learner", ["verse", "tinyer", "fine-tune", "gdumb", "slda"])
def test_stopping_anywhere_and_going_on_changes_nothing(
    toy: Toy, tmp_path: Path, learner: str
) -> None:
    run = toy(learner=learner, prequential=True, options={"frames": 40})
    ready = prepare(run)
    whole = execute(run, prepared=ready)
    file = tmp_path / "run.checkpoint"
    random = np.random.default_rng(5)
    for _ in range(5):
        left = random.integers(1, 6)

        def watch(event: object) -> None:
            nonlocal left
            if isinstance(event, Learned):
                left -= 1
                if left < 0:
                    raise Killed

        with pytest.raises(Killed):
            execute(
                run, prepared=ready, checkpoint_file=file, resume=True, save_seconds=0, watch=watch
            )
    result = execute(run, prepared=ready, checkpoint_file=file, resume=True)
    assert [e.confusion for e in result.events] == [e.confusion for e in whole.events]
    assert result.alpha == whole.alpha
    assert (result.learned, result.prequential) == (whole.learned, whole.prequential)


def test_an_interruption_is_kept(toy: Toy, tmp_path: Path) -> None:
    run = toy(order="iid")
    file = tmp_path / "run.checkpoint"

    def stop(event: object) -> None:
        if isinstance(event, Learned) and event.position >= 48:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(run, checkpoint_file=file, watch=stop)
    seen: list[int] = []

    def look(event: object) -> None:
        if isinstance(event, Learned):
            seen.append(event.position)

    result = execute(run, checkpoint_file=file, resume=True, watch=look)
    assert seen[0] > 48
    assert result.alpha == execute(run).alpha


def test_a_checkpoint_of_another_run_is_refused(toy: Toy, tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    execute(toy(), checkpoint_file=file)
    with pytest.raises(BadState, match="belongs to another run"):
        execute(toy(seed=1), checkpoint_file=file, resume=True)


def test_a_checkpoint_of_other_features_is_refused(toy: Toy, tmp_path: Path) -> None:
    """The data set or the weights behind the same names changed since."""
    run, file = toy(), tmp_path / "run.checkpoint"
    ready = prepare(run)
    whole = execute(run, prepared=ready, checkpoint_file=file)
    grown = prepare(toy(options={"frames": 9}))
    other = replace(ready, backbone=replace(ready.backbone, key="0" * 64))
    for now, what in ((grown, "other data"), (other, "another backbone")):
        with pytest.raises(BadState, match=rf"{what} .* give --fresh .* delete that file"):
            execute(run, prepared=now, checkpoint_file=file, resume=True)
    assert execute(run, prepared=ready, checkpoint_file=file, resume=True).alpha == whole.alpha


def test_a_checkpoint_from_before_these_were_noted_goes_on(toy: Toy, tmp_path: Path) -> None:
    run, file = toy(), tmp_path / "run.checkpoint"
    whole = execute(run, checkpoint_file=file)
    tensors, document = checkpoint.read(file)
    old = {key: document["spec"][key] for key in ("run", "so_far")}
    checkpoint.write(file, tensors, old)
    assert execute(run, checkpoint_file=file, resume=True).alpha == whole.alpha


def test_a_checkpoint_that_does_not_fit_is_told(toy: Toy, tmp_path: Path) -> None:
    run, file = toy(), tmp_path / "run.checkpoint"
    execute(run, checkpoint_file=file)
    tensors, document = checkpoint.read(file)
    spec = document["spec"]
    for parts, told in (
        ({"labels": tensors["labels"]}, spec),  # a learner that kept less
        (tensors, {"so_far": spec["so_far"]}),
        (tensors, {"run": run.id}),
        (tensors, spec | {"so_far": {"position": 3}}),
        (tensors, spec | {"circumstances": None}),
    ):
        checkpoint.write(file, parts, told)
        with pytest.raises(BadState, match="cannot go on from"):
            execute(run, checkpoint_file=file, resume=True)


def test_other_circumstances_are_told(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.checkpoint"
    execute(toy(), checkpoint_file=file)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    with pytest.warns(InexactResume, match="threads was 1, is 7"):
        execute(toy(), checkpoint_file=file, resume=True)


def test_another_version_of_verse_is_told(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.checkpoint"
    execute(toy(), checkpoint_file=file)
    monkeypatch.setattr(sys.modules["verse.experiments.execute"], "__version__", "99.0")
    with pytest.warns(InexactResume, match=r"verse was .*, is 99\.0"):
        execute(toy(), checkpoint_file=file, resume=True)


def test_offline_is_trained_once_per_set_of_classes(toy: Toy) -> None:
    stages: list[str] = []

    def watch(event: object) -> None:
        if isinstance(event, Stage) and "epoch" in event.name:
            stages.append(event.name)

    first = execute(toy(offline=True), watch=watch)
    assert stages
    stages.clear()
    second = execute(toy(offline=True, order="class-iid", learner="fine-tune"), watch=watch)
    assert not stages
    assert first.offline_alpha == second.offline_alpha
    execute(toy(offline=True, seed=1), watch=watch)
    assert stages


def test_real_time_learns_the_share_it_has_time_for(toy: Toy) -> None:
    # 20 frames a second arrive, a step takes 0.12 s: every third frame is learned
    result = execute(toy(order="iid", fps=20.0, step_seconds=0.12))
    assert result.frames == 64
    assert result.learned == 22
    assert result.missed == 42
    queued = execute(toy(order="iid", fps=20.0, step_seconds=0.12, queue=3))
    assert result.learned < queued.learned < 64
    idle = execute(toy(order="iid", fps=20.0, step_seconds=0.01))
    assert (idle.learned, idle.missed) == (64, 0)
    assert idle.alpha == execute(toy(order="iid")).alpha


def test_real_time_measures_when_no_cost_is_given(toy: Toy) -> None:
    result = execute(toy(fps=1e9))
    assert 0 < result.learned < 64


def test_real_time_resumes_exactly(toy: Toy, tmp_path: Path) -> None:
    run, file = toy(order="iid", fps=20.0, step_seconds=0.12, queue=1), tmp_path / "c"

    def stop(event: object) -> None:
        if isinstance(event, Learned) and event.position == 32:
            raise Killed

    with pytest.raises(Killed):
        execute(run, checkpoint_file=file, save_seconds=0, watch=stop)
    result = execute(run, checkpoint_file=file, resume=True)
    whole = execute(run)
    assert (result.alpha, result.learned) == (whole.alpha, whole.learned)


def test_unreadable_frames_are_left_out_and_counted(toy: Toy) -> None:
    with pytest.warns(DataWarning, match="3 of 64 images cannot be read"):
        result = execute(toy(options={"bad": 3}))
    assert (result.unreadable, result.frames, result.learned) == (3, 61, 61)
    with pytest.warns(DataWarning):
        assert execute(toy(options={"bad": 3}), cache=False).alpha == result.alpha
    with pytest.raises(BadImage, match="point 0 is damaged"):
        execute(toy(options={"bad": 3}), strict=True)


def test_a_class_that_cannot_be_read_at_all_is_an_error(toy: Toy) -> None:
    with pytest.warns(DataWarning), pytest.raises(BadData, match="class0"):
        execute(toy(options={"bad": 24}))


def test_refused_samples_are_counted(toy: Toy) -> None:
    ready = prepare(toy())
    index = ready.train.index

    class Holes:
        def __len__(self) -> int:
            return len(index)

        def __getitem__(self, at: np.ndarray) -> torch.Tensor:
            z = ready.train.z[at]
            z[np.isin(at, [3, 4])] = float("nan")
            return z

    holes = replace(ready, train=replace(ready.train, z=Holes()))
    result = execute(toy(), prepared=holes)
    assert (result.refused, result.learned) == (2, 62)
    assert "not finite" in result.first_refusal


def test_capacity_is_what_the_memory_may_hold(toy: Toy) -> None:
    assert execute(toy(capacity="10%")).capacity == 6
    per_class = execute(toy(capacity="5/class"))
    assert per_class.capacity == 20
    assert per_class.memory_bytes == 20 * (6 * 4 + 8)


def test_validation_never_sees_test_frames(toy: Toy) -> None:
    run = toy(validation="last:1")
    ready, plain = prepare(run), prepare(toy())
    tested = {plain.dataset.test.key(i) for i in range(len(plain.dataset.test))}
    for side in (ready.dataset.train, ready.dataset.test):
        assert not tested & {side.key(i) for i in range(len(side))}
    assert run.id != toy().id
