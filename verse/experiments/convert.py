"""Stores of one file a run, as verse wrote them until version 0.1, and stores put together."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verse import streams
from verse.evaluate import Tested
from verse.experiments.line import encode
from verse.experiments.result import Bound, Result
from verse.experiments.run import LATER, Run, hash_record, identify
from verse.experiments.store import Store
from verse.learners import defaults
from verse.types import BadSetting, BadState

NAME = re.compile(r"[0-9a-f]{16}\.json")


def convert_stores(sources: Sequence[Path], target: Path) -> int:
    """Put the results of old and new stores into one; gives how many came new.

    A folder of results inside an old store becomes a folder inside the new store.
    """
    found: dict[Path, dict[str, Result]] = {}
    for source in sources:
        if not source.is_dir():
            raise BadState(f"there is no folder {source}")
        for result in Store(source).results():
            found.setdefault(Path(), {}).setdefault(result.id, result)
        for path in old_files(source):
            result = old_result(path)
            place = path.parent.relative_to(source)
            found.setdefault(place, {}).setdefault(result.id, result)
    return sum(
        Store(target / place).add(*(encode(r) for r in sorted(results.values(), key=_place)))
        for place, results in found.items()
    )


def old_files(folder: Path) -> list[Path]:
    """The files of an old store: named by a run's identity, whatever folder they are in."""
    return sorted(path for path in folder.rglob("*.json") if NAME.fullmatch(path.name))


def old_result(path: Path) -> Result:
    """What such a file says."""
    try:
        return _result(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadState(f"{path} is no result of a run, or damaged: {error!r}") from error


def _result(document: dict[str, Any]) -> Result:
    record, spec = document["record"], document["spec"]
    written, named = document["summary"]["run"], spec["settings"]
    recorded = {k: v for k, v in record["settings"].items() if k != "seed"}
    for settings in (recorded, _defaults_now(spec["learner"]) | named):
        if hash_record(spec | {"settings": settings}) == written:
            break
    else:
        raise ValueError(f"{written} is not the identity of what it holds")
    bounds = [dict(bound) for bound in document["offline"]]
    return Result(
        run=Run.from_record(LATER | spec),
        id=identify(LATER | spec | {"settings": settings}),
        defaults={k: v for k, v in settings.items() if k not in named},
        events=tuple(Tested(**event) for event in document["events"]),
        offline=tuple(Bound(closed={k: b.pop(k) for k in ("ridge", "lda")}, **b) for b in bounds),
        **record | {"classes": tuple(record["classes"])},
    )


def _defaults_now(learner: str) -> dict[str, Any]:
    """A variant of a learner records the settings of what it is built from, not its own."""
    try:
        return dict(defaults(learner)) if "." not in learner else {}
    except BadSetting:
        return {}


def _place(result: Result) -> tuple[int, int, str]:
    orders = streams.names()
    place = orders.index(result.run.order) if result.run.order in orders else len(orders)
    return (place, result.run.seed, result.id)
