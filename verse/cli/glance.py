"""What the directory of a classifier holds, at a glance: read in milliseconds, without torch.

Opening the classifier takes seconds, most of them for loading torch. This reads the labels in the
newest checkpoint and those of the journal after it, and nothing else; it checks nothing, because
opening does.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verse.cli.output import plural
from verse.types import Label

LARGEST_HEADER = 64 * 2**20  # bytes
SHOWN = 6  # classes named in a line


@dataclass(frozen=True)
class Glance:
    """How often each label was taught, and the learner."""

    taught: Mapping[Label, int]
    learner: str

    def __str__(self) -> str:
        from verse.serve.labels import escape_label  # a label of an old folder may be no text

        classes = [str(escape_label(label)) for label in self.taught]
        some = ", ".join(classes[:SHOWN]) + (", …" if len(classes) > SHOWN else "")
        counted = plural(len(classes), "class", "classes") + (f" ({some})" if some else "")
        samples = plural(sum(self.taught.values()), "sample")
        return f"{counted} taught by {samples}, learner {self.learner}"


def glance_at(directory: Path) -> Glance | None:
    """What is there; None if there is nothing, or nothing that can be read so simply."""
    file = (directory / "journal.sqlite").absolute()
    if not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            # the same moment for all of it, whatever a writer does
            database.execute("BEGIN")
            (options,) = database.execute(
                "SELECT value FROM meta WHERE name = 'options'"
            ).fetchone()
            newest = database.execute(
                "SELECT position, file FROM checkpoints ORDER BY position DESC LIMIT 1"
            ).fetchone()
            position, taught = 0, {}
            if newest is not None:
                position = newest[0]
                taught = _taught(directory / Path(newest[1]).name)
            _replay(taught, database.execute(_ENTRIES, (position,)))
        return Glance(taught, str(json.loads(options)["learner"]))
    except (OSError, sqlite3.Error, struct.error, ValueError, LookupError, TypeError):
        return None
    except (AttributeError, RecursionError):  # of JSON that is something else, or nested too deeply
        return None


_ENTRIES = (
    "SELECT kind, arguments FROM entries WHERE seq > ? AND fate = 'kept' "
    "AND kind IN ('learn', 'forget', 'rename', 'merge') ORDER BY seq"
)


def _taught(checkpoint: Path) -> dict[Label, int]:
    """The labels in the header of a checkpoint, which is a safetensors file."""
    if not checkpoint.is_file():  # a pipe would never end
        raise ValueError("not a checkpoint")
    with checkpoint.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        if size > LARGEST_HEADER:
            raise ValueError("not a checkpoint")
        document = json.loads(json.loads(file.read(size))["__metadata__"]["verse"])
    return {label: int(count) for label, count in document["spec"]["taught"]}


def _replay(taught: dict[Label, int], entries: Iterable[tuple[str, str]]) -> None:
    """What later entries did to the labels, as when the classifier is opened."""
    for kind, text in entries:
        arguments: dict[str, Any] = json.loads(text)
        label: Label = arguments["label"]
        if kind == "learn":
            taught[label] = taught.get(label, 0) + 1
        elif label in taught:
            count = taught.pop(label)
            if kind != "forget":
                taught[arguments["new"]] = taught.get(arguments["new"], 0) + count
