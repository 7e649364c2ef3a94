"""Finished runs on disk: a folder for each data set, a file for each learner, a line for each run.

Several processes, on several machines with a common folder, may add runs at the same time: a line
is added at once and under a lock. Damaged lines are reported and never counted.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from verse.experiments import jsonl
from verse.experiments.jsonl import Damaged, Json, digest
from verse.experiments.line import Entry, check_line, decode
from verse.experiments.result import Bound, Result
from verse.experiments.run import Run
from verse.garbage import pause_garbage_collection
from verse.types import BadState

SHARED = "shared.jsonl"
PARTIAL = ".partial"


class NotCounted(UserWarning):
    """A line of a store is damaged or incomplete: its run does not count as finished."""


@dataclass
class _Contents:
    """Sound lines by identity, the values they share, and what is wrong with the others."""

    lines: dict[str, Json] = field(default_factory=dict)
    shared: dict[str, Json] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)


class Store:
    """A folder of results.

    ``.partial`` inside it holds the checkpoints of runs in flight and the locks.

    Parameters
    ----------
    folder
        It is made when something is written.

    >>> import tempfile
    >>> Store(Path(tempfile.mkdtemp())).ids()
    set()
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    def ids(self) -> set[str]:
        """The runs that are finished; a damaged one is not, and a warning says so."""
        contents, found = self._read(), set()
        problems = [*contents.damaged, *contents.incomplete]
        for identity, line in contents.lines.items():
            try:
                check_line(line, contents.shared)
                found.add(identity)
            except Damaged as error:
                problems.append(f"{self.folder}, run {identity}: {error}")
        for problem in problems:
            warnings.warn(problem, NotCounted, stacklevel=2)
        return found

    def has(self, run: Run) -> bool:
        """Whether a run is finished; only the file of its learner is read."""
        path = self.folder / file_name(run.dataset) / f"{file_name(run.learner)}.jsonl"
        return any(line.value["id"] == run.id for line in jsonl.read_lines(path) if line.value)

    def load(self, identity: str) -> Result:
        """One result."""
        found = self.results({identity})
        if not found:
            raise BadState(f"{self.folder} has no run {identity}")
        return found[0]

    def results(
        self, only: Collection[str] | None = None, *, skip_damaged: bool = False
    ) -> list[Result]:
        """All results, or these, ordered by identity so that reports do not depend on the disk."""
        if not self.folder.is_dir():
            raise BadState(f"there is no folder {self.folder}: give one with finished runs")
        with pause_garbage_collection():
            return self._results(only, skip_damaged)

    def _results(self, only: Collection[str] | None, skip_damaged: bool) -> list[Result]:
        contents = self._read()
        if contents.damaged and not skip_damaged:
            raise Damaged(
                f"{contents.damaged[0]}; verse results repair {self.folder} puts such lines aside"
            )
        for problem in contents.incomplete:
            warnings.warn(problem, NotCounted, stacklevel=3)
        found, known = [], dict[tuple[str, str], tuple[Bound, ...]]()
        for identity in sorted(contents.lines if only is None else set(only) & set(contents.lines)):
            try:
                found.append(decode(contents.lines[identity], contents.shared, known))
            except Damaged as error:
                raise Damaged(f"{self.folder}, run {identity}: {error}") from None
        return found

    def digest(self) -> str:
        """A hash of everything that the store's runs say: equal contents, equal digests."""
        return digest({identity: digest(line) for identity, line in self._read().lines.items()})

    def add(self, *entries: Entry) -> int:
        """Keep results on disk; those that are there already stay as they are. Gives how many."""
        added = 0
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(file_name(entry.line["run"]["dataset"]), []).append(entry)
        for name, mine in groups.items():
            with FileLock(self.partials() / f"{name}.lock"):
                added += self._add(self.folder / name, mine)
        return added

    def remove(self, run: Run) -> None:
        """Drop a finished run, so that another result of it can take its place."""
        path = self.folder / file_name(run.dataset) / f"{file_name(run.learner)}.jsonl"
        if self.has(run):
            with FileLock(self.partials() / f"{path.parent.name}.lock"):
                jsonl.remove(path, run.id)

    def repair(self) -> int:
        """Move every damaged line to a file NAME.damaged; returns how many there were."""
        moved = 0
        for path in self._files():
            with FileLock(self.partials() / f"{path.parent.name}.lock"):
                moved += jsonl.repair_file(path)
        return moved

    def partial(self, identity: str) -> Path:
        """Where a run in flight keeps its checkpoint; asking makes no folder."""
        return self.folder / PARTIAL / f"{identity}.checkpoint"

    def partials(self) -> Path:
        """The folder of runs in flight; version control leaves it alone."""
        folder = self.folder / PARTIAL
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n")
        return folder

    def add_titles(self, titles: Collection[str]) -> None:
        """Remember what grids that fill this store are called, for reports."""
        path = self.partials() / "titles.txt"
        with FileLock(path.with_suffix(".lock")):
            every = dict.fromkeys([*self.titles(), *titles])
            path.write_text("".join(f"{title}\n" for title in every), encoding="utf-8")

    def titles(self) -> list[str]:
        """The titles of the recipes, in the order they came; none after ``verse run``."""
        path = self.folder / PARTIAL / "titles.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def claim(self, identity: str) -> FileLock | None:
        """Take a run for this process; None while another one works on it.

        ``release()`` gives it back, and so does the end of the process, however it ends.
        """
        lock = FileLock(self.partials() / f"{identity}.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            return None
        return lock

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("[!.]*/*.jsonl"))

    def _read(self) -> _Contents:
        contents = _Contents()
        for path in self._files():
            for line in jsonl.read_lines(path):
                if line.value is None:
                    told = contents.damaged if line.complete else contents.incomplete
                    told.append(f"{path}, line {line.number}: {line.problem}")
                elif "id" in line.value:  # a run twice is the same run
                    contents.lines.setdefault(str(line.value["id"]), line.value)
                else:
                    contents.shared[digest(line.value)] = line.value
        return contents

    def _add(self, folder: Path, entries: Sequence[Entry]) -> int:
        """To the files of one data set, whose lock the caller has: first what lines refer to."""
        folder.mkdir(exist_ok=True)
        shared = {name: value for entry in entries for name, value in entry.shared.items()}
        known = {digest(line.value) for line in jsonl.read_lines(folder / SHARED) if line.value}
        jsonl.append(folder / SHARED, [v for name, v in shared.items() if name not in known])
        files: dict[Path, dict[str, Json]] = {}
        for entry in entries:
            path = folder / f"{file_name(entry.line['run']['learner'])}.jsonl"
            files.setdefault(path, {}).setdefault(entry.id, entry.line)
        added = 0
        for path, lines in files.items():
            there = {line.value["id"] for line in jsonl.read_lines(path) if line.value}
            new = [line for identity, line in lines.items() if identity not in there]
            jsonl.append(path, new)
            added += len(new)
        return added


def file_name(text: str) -> str:
    """A data set's or a learner's name, without its place, as a file can be called.

    >>> file_name("folder:pictures/eth80"), file_name("my.module.Cautious")
    ('eth80', 'my.module.Cautious')
    """
    last = re.split(r"[/\\:]", text.rstrip("/\\"))[-1]
    return re.sub(r"[^\w.-]", "_", last).strip(".") or "_"
