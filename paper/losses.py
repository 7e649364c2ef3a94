"""Losses over a stream, as ``verse run --track jsonl:FILE`` writes them down."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from verse.experiments.result import Result
from verse.experiments.store import Store
from verse.types import BadState

END = 0.1  # the share of a stream that is its end


@dataclass(frozen=True)
class Curve:
    """The losses of one run at the frames where they were reported."""

    result: Result
    positions: list[int]
    losses: dict[str, list[float]]

    def early(self, name: str) -> float:
        """Mean of a loss over the first half; not a number where a loss was not finite."""
        half = self.result.frames / 2
        values = [v for at, v in self._reported(name) if at <= half] or self.losses[name][:1]
        return sum(values) / len(values)

    def late(self, name: str) -> float:
        """Mean of a loss over the last tenth; not a number where a loss was not finite."""
        end = (1 - END) * self.result.frames
        values = [v for at, v in self._reported(name) if at > end] or self.losses[name][-1:]
        return sum(values) / len(values)

    def _reported(self, name: str) -> Iterator[tuple[int, float]]:
        return zip(self.positions, self.losses[name], strict=True)


def read(folder: Path) -> list[Curve]:
    """The runs of a store that have a trace of their events, ``traces/ID.ndjson``."""
    found = []
    for result in Store(folder).results() if folder.is_dir() else ():
        file = folder / "traces" / f"{result.id}.ndjson"
        if not file.exists():
            continue
        positions: list[int] = []
        losses: dict[str, list[float]] = {}
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                event = json.loads(line)
                if event["event"] != "learned":
                    continue
                positions.append(event["position"])
                for name, value in event["losses"].items():
                    losses.setdefault(name, []).append(math.nan if value is None else value)
            except (KeyError, TypeError, json.JSONDecodeError) as error:
                raise BadState(f"{file}, line {number}: no event of verse run: {error!r}") from None
        if positions and all(len(values) == len(positions) for values in losses.values()):
            found.append(Curve(result, positions, losses))
    return found
