"""What a video shows when: a file of time ranges with labels."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verse.types import BadData, Label


@dataclass(frozen=True, slots=True)
class Range:
    """From ``start`` until before ``end`` (seconds) the video shows ``label``.

    Parameters
    ----------
    start, end
        Seconds; the end is not included.
    label
        What is shown.

    >>> Range(0, 2.5, "mug").label
    'mug'
    """

    start: float
    end: float
    label: Label


def sidecar(video: Path) -> Path:
    """The file of ranges next to a video: the same name with .csv or .json."""
    for ending in (".csv", ".json"):
        if (beside := video.with_suffix(ending)).is_file():
            return beside
    raise BadData(
        f"what does {video.name} show? Write {video.with_suffix('.csv').name} beside it with lines "
        "start,end,label (seconds or m:ss), or name such a file by --ranges, or give one --label"
    )


def read_ranges(path: Path) -> list[Range]:
    """Read ranges from CSV (columns start, end, label) or JSON (a list of such objects).

    Times are seconds or h:mm:ss; an end left out is the end of the video. Ranges may not overlap.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mug.csv"
    >>> _ = file.write_text("start,end,label\\n0,2.5,mug\\n1:04,,cup\\n")
    >>> [(r.start, r.end, r.label) for r in read_ranges(file)]
    [(0.0, 2.5, 'mug'), (64.0, inf, 'cup')]
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadData(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise BadData(f"{path} is not text in UTF-8") from None
    rows = _json_rows(path, text) if path.suffix.lower() == ".json" else _csv_rows(path, text)
    found = [_range(f"{path}, {place}", row) for place, row in rows]
    if not found:
        raise BadData(f"{path} has no ranges: write lines start,end,label")
    found.sort(key=lambda r: r.start)
    for a, b in itertools.pairwise(found):
        if b.start < a.end:
            raise BadData(
                f"{path}: {a.label!r} from {a.start:g} s and {b.label!r} from {b.start:g} s overlap"
            )
    return found


def label_at(found: Sequence[Range], time: float) -> Label | None:
    """What a video shows at a time; None between the ranges.

    >>> label_at([Range(0, 2, "mug")], 1.5), label_at([Range(0, 2, "mug")], 2.0)
    ('mug', None)
    """
    return next((r.label for r in found if r.start <= time < r.end), None)


def _csv_rows(path: Path, text: str) -> list[tuple[str, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    missing = {"start", "end", "label"} - set(reader.fieldnames or ())
    if missing:
        raise BadData(
            f"{path} lacks the column {sorted(missing)[0]}: the first line is start,end,label"
        )
    return [(f"line {reader.line_num}", row) for row in reader]


def _json_rows(path: Path, text: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadData(f"{path} is not JSON: {error}") from None
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise BadData(f'{path} is no list of {{"start": 0, "end": 2.5, "label": "mug"}}')
    return [(f"range {i}", row) for i, row in enumerate(document, 1)]


def _range(place: str, row: dict[str, Any]) -> Range:
    start, end = (_seconds(place, row.get(key)) for key in ("start", "end"))
    label = row.get("label")
    label = label.strip() if isinstance(label, str) else label
    if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
        raise BadData(f"{place}: a label is a text or a whole number, not {label!r}")
    start, end = 0.0 if start is None else start, math.inf if end is None else end
    if not 0 <= start < end:
        raise BadData(f"{place}: a range goes from 0 or later to a later end, not {start}-{end}")
    return Range(start, end, label)


def _seconds(place: str, value: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        seconds = 0.0
        for part in str(value).split(":"):
            seconds = seconds * 60 + float(part)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or isinstance(value, bool):
        raise BadData(f"{place}: a time is in seconds or h:mm:ss, not {value!r}")
    return seconds
