"""A worker's bench: a checkpoint that leads nowhere does not hold its run up for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from verse import checkpoint
from verse.experiments import Run, execute
from verse.experiments.bench import Workbench
from verse.experiments.engine import Task, TaskReport
from verse.experiments.line import decode

Toy = Callable[..., Run]


def done(run: Run, file: Path) -> TaskReport:
    reports: list[TaskReport] = []
    Workbench().do(Task(run.id, "run", (run.document(),), checkpoint=str(file)), reports.append)
    assert reports[-1].kind == "done", reports[-1].text
    return reports[-1]


def alpha(report: TaskReport) -> object:
    assert report.entry is not None
    return decode(report.entry.line, report.entry.shared).alpha


def test_a_checkpoint_that_cannot_be_continued_is_told_and_the_run_starts_again(
    toy: Toy, tmp_path: Path
) -> None:
    run, file = toy(), tmp_path / "run.checkpoint"
    whole = execute(run, checkpoint_file=file)
    tensors, document = checkpoint.read(file)
    checkpoint.write(file, tensors, document["spec"] | {"data": "0" * 64})
    for content, reason in ((file.read_bytes(), "other data"), (b"half", "damaged")):
        file.write_bytes(content)
        report = done(run, file)
        (note,) = report.notes
        assert f"{run.name} starts from the beginning" in note and reason in note
        assert alpha(report) == whole.alpha


def test_a_checkpoint_of_the_run_is_continued_without_a_word(toy: Toy, tmp_path: Path) -> None:
    run, file = toy(), tmp_path / "run.checkpoint"
    whole = execute(run, checkpoint_file=file)
    report = done(run, file)
    assert report.notes == () and alpha(report) == whole.alpha
