"""Losses over a stream, as ``verse run --track jsonl:FILE`` writes them down."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from verse.experiments.result import Result
from verse.types import BadState

SHARE = 0.1  # of the stream: what counts as its beginning and its end


@dataclass(frozen=True)
class Curve:
    """The losses of one run at the frames where they were reported.

    ``ends`` gives the mean of a loss over the first and the last tenth of the stream.
    """

    result: Result
    positions: list[int]
    losses: dict[str, list[float]]

    def ends(self, name: str) -> tuple[float, float]:
        """(at the beginning, at the end); not a number where a loss was not finite."""
        width = SHARE * self.result.frames
        pairs = list(zip(self.positions, self.losses[name], strict=True))
        first = [value for at, value in pairs if at <= width] or [self.losses[name][0]]
        last = [value for at, value in pairs if at > self.result.frames - width]
        last = last or [self.losses[name][-1]]
        return sum(first) / len(first), sum(last) / len(last)


def read(folder: Path) -> list[Curve]:
    """Every ``NAME.jsonl`` whose run is beside it as ``NAME.json``; none without the folder."""
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        result = Result.load(file.with_suffix(".json"))
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
