"""A finished run as one line of JSON: how a result is packed and unpacked.

A line holds what is of this run alone. What many runs share (the data set's facts, versions, the
reference that Ω divides by) is a value of its own, named by the hash of its content. Counts are
kept once: how many frames a class and a video have, and how many of them an event got wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verse.evaluate import Tested
from verse.experiments.jsonl import Damaged, Json, digest
from verse.experiments.result import Bound, Result
from verse.experiments.run import FIRST_SPLITS, LATER, Run, identify
from verse.experiments.sound import check_bounds, check_result

FORMAT = 2

# Left out of a line where a run has these. They belong to the format: they never change.
USUAL: Json = {
    "options": {},
    "holdout": None,
    "thin": 1,
    "validation": None,
    "backbone": "efficientnet-lite0",
    "weights": None,
    "features": "float32",
    "precision": "float32",
    "batchnorm": "frozen",
    "every": 1,
    "steps": 10,
    "offline": True,
    "fps": None,
    "queue": 0,
    "step_seconds": None,
    "prequential": False,
}
NONE: Json = {"refused": 0, "missed": 0, "unreadable": 0, "first_refusal": "", "prequential": None}
OWN = ("learned", "learn_seconds", "seconds", "capacity", "memory_bytes")


@dataclass(frozen=True)
class Entry:
    """A result on its way into a store: its line, and the values that it shares with others."""

    line: Json
    shared: dict[str, Json]

    @property
    def id(self) -> str:
        """The run's identity."""
        return str(self.line["id"])


def encode(result: Result) -> Entry:
    """A result as the store keeps it."""
    data, events = _pack_events(result)
    shared = {digest(data): data, digest(result.circumstances): dict(result.circumstances)}
    run, left_out = result.run.document(), USUAL | LATER
    if run["at"] is None and run["backbone"] in FIRST_SPLITS:
        run["at"] = result.circumstances.get("at")  # what "not named" means may change
    named = run["settings"] | result.defaults
    line: Json = {
        "format": FORMAT,
        "id": result.id,
        "mu_all": result.mu_all,
        "omega_all": result.omega_all,
        "run": {k: v for k, v in run.items() if k not in left_out or v != left_out[k]},
        "defaults": result.defaults,
        **_pack_settings(result.settings, named),
        **{name: getattr(result, name) for name in OWN},
        **{k: getattr(result, k) for k, v in NONE.items() if getattr(result, k) != v},
        "data": digest(data),
        "circumstances": digest(result.circumstances),
        **events,
    }
    if result.offline:
        bounds = _pack_bounds(result.offline, data)
        shared[digest(bounds)] = bounds
        line["bounds"] = digest(bounds)
    return Entry(line, shared)


def check_line(line: Mapping[str, Any], shared: Mapping[str, Json]) -> Json:
    """The record of the run in a line that is what its identity says, with all that it needs."""
    try:
        if line["format"] > FORMAT:
            raise Damaged("it is of a newer verse: upgrade to read it")
        for name in (line[key] for key in ("data", "circumstances", "bounds") if key in line):
            if name not in shared:
                raise Damaged(f"what it shares with other runs ({name}) is not in shared.jsonl")
        record: Json = LATER | USUAL | {"at": None} | line["run"]
        if identify(record | {"settings": record["settings"] | line["defaults"]}) != line["id"]:
            raise Damaged("it holds another run than its identity says")
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"it is no result of a run: {error!r:.200}") from error
    return record


def decode(
    line: Mapping[str, Any],
    shared: Mapping[str, Json],
    known: dict[tuple[str, str], tuple[Bound, ...]] | None = None,
) -> Result:
    """The result behind a line. Nothing that it names is imported or looked up.

    ``known`` keeps what Ω divides by from one result to the next that has the same.
    """
    record = check_line(line, shared)
    try:
        data, circumstances = shared[line["data"]], shared[line["circumstances"]]
        bounds: tuple[Bound, ...] = ()
        if "bounds" in line:
            known = {} if known is None else known
            place = (line["bounds"], line["data"])
            if place not in known:
                found = _unpack_bounds(shared[line["bounds"]], data)
                check_bounds(found)
                known[place] = found
            bounds = known[place]
        result = Result(
            run=Run.from_record(record),
            id=line["id"],
            defaults=line["defaults"],
            settings=_unpack_settings(line, record["settings"] | line["defaults"]),
            events=_unpack_events(line, data),
            offline=bounds,
            circumstances=dict(circumstances),
            classes=tuple(data["classes"]),
            **{k: data[k] for k in ("split", "fingerprint", "frames", "test_frames")},
            **{k: line[k] for k in OWN},
            **{k: line.get(k, v) for k, v in NONE.items()},
        )
        check_result(result)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Damaged(f"it is no result of a run: {error!r:.200}") from error
    return result


def _pack_settings(settings: Json, named: Json) -> Json:
    """What the learner was built with, where it is more than what the run says."""
    if named.keys() <= settings.keys():
        return {"built": {k: v for k, v in settings.items() if k not in named or v != named[k]}}
    return {"settings": settings}  # a variant's own names differ from those of what it builds


def _unpack_settings(line: Mapping[str, Any], named: Json) -> Json:
    return dict(line["settings"]) if "settings" in line else named | line["built"]


# ---- test events ----------------------------------------------------------------------------


def _pack_events(result: Result) -> tuple[Json, Json]:
    """(facts of the data set, events): only what one cannot work out from the other."""
    events = result.events
    videos = {video: frames for event in events for video, _, frames in event.by_video}
    classes = {label: frames for event in events for label, _, frames in event.by_class}
    data: Json = {
        "classes": list(result.classes),
        "split": result.split,
        "fingerprint": result.fingerprint,
        "frames": result.frames,
        "test_frames": result.test_frames,
        "videos": sorted(map(list, videos.items())),
        "class_frames": sorted(map(list, classes.items())),
    }
    shown = list(dict.fromkeys(label for event in events for label in event.classes))
    packed: Json = {
        "after": [event.after for event in events],
        "test_seconds": [event.seconds for event in events],
        "shown": shown,
        "class_errors": [[n - right for _, right, n in sorted(e.by_class)] for e in events],
        "video_errors": [[n - right for _, right, n in sorted(e.by_video)] for e in events],
        "confusion": [row for row in events[-1].confusion if row[0] != row[1]],
    }
    if events[0].reachable is not None:
        packed["reachable"] = [event.reachable for event in events]
    seen = [len(event.classes) for event in events]
    if any(count != len(shown) for count in seen):
        packed["seen"] = seen
        packed["since"] = _since(events, data["videos"])
    # the confusion of every event would be most of the file; the last one says enough
    kept = tuple(Tested(**asdict(e) | {"confusion": []}) for e in events[:-1]) + events[-1:]
    try:
        same = _unpack_events(packed, data) == kept
    except (KeyError, IndexError, ValueError):
        same = False
    return data, packed if same else {"events": [asdict(event) for event in kept]}


def _since(events: Sequence[Tested], videos: Sequence[Sequence[int]]) -> list[int]:
    """For each video the first event that tests it."""
    first: dict[int, int] = {}
    for t, event in enumerate(events):
        for video, _, _ in event.by_video:
            first.setdefault(video, t)
    return [first[video] for video, _ in videos]


def _unpack_events(line: Mapping[str, Any], data: Json) -> tuple[Tested, ...]:
    if "events" in line:
        return tuple(Tested(**event) for event in line["events"])
    shown, frames, videos = line["shown"], dict(data["class_frames"]), data["videos"]
    count = len(line["after"])
    seen = line.get("seen", [len(shown)] * count)
    since = line.get("since", [0] * len(videos))
    events = []
    for t in range(count):
        there = sorted(label for label in shown[: seen[t]] if label in frames)
        tested = [video for video, first in zip(videos, since, strict=True) if first <= t]
        by_class = [
            [k, frames[k] - wrong, frames[k]]
            for k, wrong in zip(there, line["class_errors"][t], strict=True)
        ]
        by_video = _rows(tested, line["video_errors"][t])
        confusion: list[list[int]] = []
        if t == count - 1:
            confusion = sorted([*line["confusion"], *([k, k, n] for k, n, _ in by_class if n)])
        events.append(
            Tested(
                after=line["after"][t],
                classes=shown[: seen[t]],
                accuracy=_share(by_video),
                by_class=by_class,
                by_video=by_video,
                confusion=confusion,
                seconds=line["test_seconds"][t],
                reachable=line["reachable"][t] if "reachable" in line else None,
            )
        )
    return tuple(events)


def _rows(videos: Sequence[Sequence[int]], errors: Sequence[int]) -> list[list[int]]:
    """[video, right, frames] of each."""
    return [[v, n - wrong, n] for (v, n), wrong in zip(videos, errors, strict=True)]


def _share(by_video: Sequence[Sequence[int]]) -> float:
    return sum(row[1] for row in by_video) / sum(row[2] for row in by_video)


# ---- the reference that Ω divides by --------------------------------------------------------


def _pack_bounds(bounds: Sequence[Bound], data: Json) -> Json:
    place = {video: i for i, (video, _) in enumerate(data["videos"])}
    packed: Json = {
        "videos": [[place.get(row[0], -1) for row in bound.by_video] for bound in bounds],
        "errors": [[n - right for _, right, n in bound.by_video] for bound in bounds],
        "closed": {name: [b.closed[name] for b in bounds] for name in bounds[0].closed},
        "epochs": [bound.epochs for bound in bounds],
        "flat": [bound.flat for bound in bounds],
    }
    if all(rows == packed["videos"][0] for rows in packed["videos"]):
        packed["videos"] = packed["videos"][:1]
    if bounds[0].best:
        packed["best"] = [bound.best for bound in bounds]
        packed["best_errors"] = [[n - right for _, right, n in b.best_by_video] for b in bounds]
    try:
        same = _unpack_bounds(packed, data) == tuple(bounds)
    except (KeyError, IndexError, ValueError):
        same = False
    return packed if same else {"bounds": [asdict(bound) for bound in bounds]}


def _unpack_bounds(packed: Json, data: Json) -> tuple[Bound, ...]:
    if "bounds" in packed:
        return tuple(Bound(**bound) for bound in packed["bounds"])
    found = []
    for t, errors in enumerate(packed["errors"]):
        videos = [data["videos"][i] for i in packed["videos"][min(t, len(packed["videos"]) - 1)]]
        by_video = _rows(videos, errors)
        best: Json = {}
        if "best" in packed:
            rows = _rows(videos, packed["best_errors"][t])
            best = {"best": packed["best"][t], "best_by_video": rows}
        found.append(
            Bound(
                accuracy=_share(by_video),
                by_video=by_video,
                epochs=packed["epochs"][t],
                flat=packed["flat"][t],
                closed={k: v[t] for k, v in packed["closed"].items()},
                **best,
            )
        )
    return tuple(found)
