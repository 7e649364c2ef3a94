"""Files of JSON lines in which every line has a checksum.

A line ends with the hash of its content. Lines are only ever added at the end, under a lock that
the caller holds; a last line that was not written to its end is cut off by the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from verse.paths import flush_folder, write_atomic
from verse.types import BadState

Json = dict[str, Any]


class Damaged(BadState):
    """A line of a store is not what was written there."""


class Line(NamedTuple):
    """One line of a file: its value, or what is wrong with it."""

    number: int
    text: bytes
    value: Json | None
    problem: str
    complete: bool
    """Whether it was written to its end."""


def digest(value: Json) -> str:
    """16 hexadecimal digits of a value's content.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def seal(value: Json) -> bytes:
    """The value as a line of text with the hash of its content."""
    text = json.dumps(value | {"hash": digest(value)}, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def unseal(text: bytes) -> Json:
    """The value of a line.

    >>> unseal(seal({"learned": 5}).replace(b"5", b"6"))
    Traceback (most recent call last):
    verse.experiments.jsonl.Damaged: its content was changed
    """
    if not text.strip():
        raise Damaged("it is empty")
    try:
        value = json.loads(text)
        written = value.pop("hash")
        content = digest(value)  # half a character has no bytes to hash
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise Damaged("it is cut off, or no result of verse") from None
    if content != written:
        raise Damaged("its content was changed")
    return dict(value)


def read_lines(path: Path) -> Iterator[Line]:
    """Every line of a file; none where there is no file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    *lines, rest = content.split(b"\n")
    for number, text in enumerate([*lines, rest] if rest else lines, 1):
        try:
            value, problem = unseal(text), ""
        except Damaged as error:
            value, problem = None, str(error)
        yield Line(number, text, value, problem, number <= len(lines))


def append(path: Path, values: Iterable[Json]) -> None:
    """Add lines at the end and see them safe on the disk."""
    text = b"".join(map(seal, values))
    if not text:
        return
    new = not path.exists()
    with open(path, "ab+") as file:
        end = _cut(file.fileno(), path)
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.ftruncate(file.fileno(), end)
            raise
    if new:
        flush_folder(path.parent)


def remove(path: Path, identity: str) -> None:
    """Leave out the lines of this ``id``; all others stay as they are."""
    kept = [line for line in read_lines(path) if not line.value or line.value.get("id") != identity]
    write_atomic(path, b"".join(line.text + b"\n" * line.complete for line in kept))


def repair_file(path: Path) -> int:
    """Move the lines that are not what was written to ``NAME.damaged``; gives how many."""
    lines = list(read_lines(path))
    bad = [line.text for line in lines if line.value is None]
    if bad:
        with open(path.with_suffix(".damaged"), "ab") as beside:
            beside.writelines(text + b"\n" for text in bad)
            os.fsync(beside.fileno())
        write_atomic(path, b"".join(line.text + b"\n" for line in lines if line.value is not None))
    return len(bad)


def _cut(descriptor: int, path: Path) -> int:
    """Where the next line begins: a last line that is whole is ended, a part of one cut off."""
    end = os.fstat(descriptor).st_size
    *_, last = (Line(0, b"", None, "", True), *read_lines(path))
    if last.complete:
        return end
    if last.value is not None:
        os.write(descriptor, b"\n")
        return end + 1
    end -= len(last.text)
    os.ftruncate(descriptor, end)
    return end
