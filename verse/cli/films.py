"""What ``verse predict`` and ``verse teach`` do with a video or a camera."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.directory import Decorated
from verse.cli.output import console
from verse.types import BadImage, BadSetting, Prediction, Refused

if TYPE_CHECKING:
    from verse.durable import DurableClassifier
    from verse.video import Range, Span

AT_ONCE = 16  # frames of a film computed together
REFRESH_SECONDS = 2


def video_options(*, every: float) -> Callable[[Decorated], Decorated]:
    """The options ``--every``, with this default, and ``--seconds``."""

    def add(command: Decorated) -> Decorated:
        command = click.option(
            "--seconds",
            type=click.FloatRange(0, min_open=True),
            help="Stop a video after this many seconds.",
        )(command)
        return click.option(
            "--every",
            default=every,
            show_default=True,
            type=click.FloatRange(0),
            help="Seconds between two frames of a video; 0 takes every frame.",
        )(command)

    return add


def check_times(sources: tuple[str, ...], seconds: float | None, as_json: bool) -> None:
    """A camera never ends, so one JSON document needs ``--seconds``."""
    from verse.video import is_live

    for source in sources:
        if as_json and seconds is None and is_live(source):
            raise BadSetting(f"{source} never ends: with --json give --seconds")


def time_line(
    classifier: DurableClassifier,
    source: str,
    every: float,
    seconds: float | None,
    *,
    live: bool,
) -> dict[str, Any]:
    """One document for a video; ``live`` prints each change of the answer when it comes."""
    from verse.video import clock, spans

    frames: list[dict[str, Any]] = []

    def read_answers() -> Iterator[tuple[float, Prediction]]:
        before: object = None
        for moment, answer in _answers(classifier, source, every, seconds):
            if not live:
                said = {"label": answer.label, "confidence": answer.confidence}
                frames.append({"time": moment, **said})
            elif answer.label != before:
                click.echo(f"{clock(moment)}  {answer.label}  {answer.confidence:.1%}")
                before = answer.label
            yield moment, answer

    found = list(spans(read_answers()))
    return {"image": source, "every": every, "spans": found, "frames": frames}


def _answers(
    classifier: DurableClassifier, source: str, every: float, seconds: float | None
) -> Iterator[tuple[float, Prediction]]:
    from verse.video import is_live, shots

    taken = shots(source, every=every, seconds=seconds)
    looked = time.monotonic()
    while group := list(itertools.islice(taken, 1 if is_live(source) else AT_ONCE)):
        Z = classifier.features([shot.image for shot in group])
        for shot, z in zip(group, Z, strict=True):
            yield shot.time, classifier.predict_feature(z)
        if is_live(source) and time.monotonic() - looked > REFRESH_SECONDS:
            classifier.refresh()  # somebody may be teaching it meanwhile
            looked = time.monotonic()


def format_span(span: Span) -> dict[str, object]:
    """A line of the time line for people."""
    from verse.video import clock

    return {
        "from": clock(span.start),
        "to": clock(span.end),
        "label": "nothing learned yet" if span.label is None else span.label,
        "confidence": f"{span.confidence:.1%}",
        "frames": span.frames,
    }


def labels_of(source: str, ranges: Path | None, label: str | None) -> list[Range]:
    """The ranges of a video: from a file, from the one next to it, or one label for all."""
    from verse.video import Range, is_live, read_ranges, sidecar

    if ranges is not None and label is not None:
        raise BadSetting("give --ranges or --label, not both")
    if label is not None:
        return [Range(0.0, float("inf"), label)]
    if ranges is None and is_live(source):
        raise BadSetting(f"{source} has no label: give --label or --ranges")
    return read_ranges(ranges if ranges is not None else sidecar(Path(source)))


def teach_film(
    classifier: DurableClassifier,
    source: str,
    labels: list[Range],
    every: float,
    seconds: float | None,
    again: bool,
) -> tuple[int, int, int, list[dict[str, str]]]:
    """(learned, known before, undone or forgotten since, refused).

    The same frame of the same file is learned once.
    """
    from rich.progress import track

    from verse.cli.teach import free_key
    from verse.video import is_live, label_at, shots

    shown = console()
    content = "" if is_live(source) else _content(Path(source))
    learned, known, taken_back = 0, 0, 0
    bad: list[dict[str, str]] = []
    taken = shots(source, every=every, seconds=seconds)
    for shot in track(taken, "Teaching", console=shown, disable=not shown.is_terminal):
        label = label_at(labels, shot.time)
        if label is None:
            if shot.time >= max(r.end for r in labels):
                break
            continue
        key = f"film:{content}:{shot.time:.6f}:{label!r}" if content else None
        key, fate = free_key(classifier, key, again)
        if fate in ("kept", "undone", "forgotten"):
            known, taken_back = known + (fate == "kept"), taken_back + (fate != "kept")
            continue
        try:
            classifier.learn_one(shot.image, label, key=key)
            learned += 1
        except (BadImage, Refused) as error:
            bad.append({"image": f"{source} at {shot.time:.2f} s", "error": str(error)})
            shown.print(f"{source}: {error}", style="yellow", markup=False, soft_wrap=True)
    return learned, known, taken_back, bad


def _content(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
