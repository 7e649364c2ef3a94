"""Consumers of a stream's events: write losses and test results during a run.

A tracker is called with every event and closed at the end; what it does not know it lets pass.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Protocol

from verse.evaluate import Finished, Learned, Tested
from verse.extras import OptionalImport
from verse.paths import write_atomic
from verse.types import BadSetting


class Tracker(Protocol):
    """Sees every event of a run."""

    def __call__(self, event: object) -> None: ...

    def close(self) -> None:
        """Flush and close."""


class JsonLines:
    """One JSON object per event and line, flushed, so that a reader can follow.

    With ``resume`` the file is continued; lines about frames that the run repeats are removed.

    Parameters
    ----------
    path
        The file.
    resume
        Go on with a file that is there.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "events.jsonl"
    >>> tracker = JsonLines(file)
    >>> tracker(Learned(16, 16, {"loss": 0.5}))
    >>> tracker.close()
    >>> file.read_text()
    '{"event": "learned", "position": 16, "learned": 16, "losses": {"loss": 0.5}}\\n'
    """

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self._path = path
        self._file = None if resume and path.exists() else _open(path)
        self._repeated: dict[int, str] = {}  # tests so far, which a resumed run tells first

    def __call__(self, event: object) -> None:
        if isinstance(event, Finished):
            values: dict[str, Any] = {"learned": event.so_far.learned, "alpha": event.so_far.alpha}
        elif isinstance(event, Learned | Tested):
            values = asdict(event)
        else:
            return
        line = {"event": type(event).__name__.lower()} | values
        text = json.dumps(_finite(line), ensure_ascii=False) + "\n"
        if self._file is None and isinstance(event, Tested):
            self._repeated[event.after] = text
            return
        if self._file is None:
            self._file = self._reopen(event.position if isinstance(event, Learned) else None)
        self._file.write(text)
        self._file.flush()

    def _reopen(self, position: int | None) -> IO[str]:
        """The file with what it held of the frames before ``position`` (None: of all)."""
        kept: dict[tuple[int, str], str] = {}
        for text in self._path.read_text(encoding="utf-8").splitlines(keepends=True):
            try:
                line = json.loads(text)
                at = int(line["position" if line["event"] == "learned" else "after"])
            except (ValueError, KeyError, TypeError):
                continue  # the end of the run, or half a line
            if position is None or at < position:
                kept[at, line["event"]] = text
        kept |= {(after, "tested"): text for after, text in self._repeated.items()}
        write_atomic(self._path, "".join(kept[key] for key in sorted(kept)).encode())
        return self._path.open("a", encoding="utf-8", newline="")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Csv:
    """One line per test event: after, classes, accuracy, seconds.

    Parameters
    ----------
    path
        The file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "alpha.csv"
    >>> tracker = Csv(file)
    >>> tracker(Tested(10, [0, 1], 0.5, [], [], [], 0.25))
    >>> tracker.close()
    >>> file.read_text().splitlines()
    ['after,classes,accuracy,seconds', '10,2,0.5,0.25']
    """

    def __init__(self, path: Path) -> None:
        self._file = _open(path)
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(["after", "classes", "accuracy", "seconds"])
        self._file.flush()

    def __call__(self, event: object) -> None:
        if isinstance(event, Tested):
            self._writer.writerow([event.after, len(event.classes), event.accuracy, event.seconds])
            self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorBoard:
    """Losses and α_t as scalars over the frames of the stream (the extra ``tensorboard``).

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        with OptionalImport():
            from torch.utils.tensorboard.writer import SummaryWriter
        self._writer: Any = SummaryWriter(str(path))

    def __call__(self, event: object) -> None:
        if isinstance(event, Learned):
            for name, value in event.losses.items():
                self._writer.add_scalar(name, value, event.position)
        elif isinstance(event, Tested):
            self._writer.add_scalar("alpha", event.accuracy, event.after)
            self._writer.add_scalar("classes", len(event.classes), event.after)

    def close(self) -> None:
        self._writer.close()


KINDS: dict[str, Callable[[Path], Tracker]] = {
    "jsonl": JsonLines,
    "csv": Csv,
    "tensorboard": TensorBoard,
}


def place_of(spec: str) -> tuple[str, Path]:
    """(kind, path) of the command line's form; an unknown kind is an error.

    >>> place_of("csv:alpha.csv")[0]
    'csv'
    """
    kind, colon, place = spec.partition(":")
    if kind not in KINDS or not colon or not place:
        forms = ", ".join(f"{name}:PATH" for name in KINDS)
        raise BadSetting(f"no tracker {spec!r}: use one of {forms}")
    return kind, Path(place)


def tracker(spec: str, *, resume: bool = False) -> Tracker:
    """The tracker of ``jsonl:FILE``, ``csv:FILE`` or ``tensorboard:FOLDER``.

    ``resume`` keeps what an interrupted run has written. The run reports its earlier tests again,
    so a file of tests is complete in any case.
    """
    kind, place = place_of(spec)
    return JsonLines(place, resume=resume) if kind == "jsonl" else KINDS[kind](place)


def _open(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w", encoding="utf-8", newline="")


def _finite(value: Any) -> Any:
    """JSON has no NaN: what is not finite becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
