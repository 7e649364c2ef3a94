"""``verse watch``: a camera that reports what it sees."""

from __future__ import annotations

import queue
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.output import console

if TYPE_CHECKING:
    from verse.watch.mqtt import MQTT

REFRESH = 2.0  # seconds between two looks at what another process has taught


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--model",
    "directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the taught classifier.",
)
@click.option(
    "--every",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0.01),
    help="Seconds between two frames.",
)
@click.option(
    "--hold",
    type=click.FloatRange(0),
    help="Seconds an answer must last to count. [default: 1; of a folder 0]",
)
@click.option(
    "--background",
    multiple=True,
    metavar="LABEL",
    help="A class that means nothing is there; may be given several times.",
)
@click.option(
    "--events",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append events to this file instead of printing them.",
)
@click.option("--webhook", metavar="URL", help="Post each event as JSON to this address.")
@click.option(
    "--mqtt",
    metavar="URL",
    help="Publish to a broker: mqtt://[user@]host[:port]/topic. The password may be in "
    "VERSE_MQTT_PASSWORD.",
)
@click.option(
    "--discovery",
    default="homeassistant",
    show_default=True,
    metavar="PREFIX",
    help="Home Assistant's discovery prefix; an empty text sends none.",
)
@click.option(
    "--teach-topic",
    metavar="TOPIC",
    help="Teach the last frame with each label that arrives on this MQTT topic.",
)
@click.option("--from-start", is_flag=True, help="Also look at images a folder holds already.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Stop after this long.")
@click.option("--threads", type=click.IntRange(1), help="[default: half the cores]")
def command(
    source: str,
    directory: Path,
    every: float,
    hold: float | None,
    background: tuple[str, ...],
    events: Path | None,
    webhook: str | None,
    mqtt: str | None,
    discovery: str,
    teach_topic: str | None,
    from_start: bool,
    seconds: float | None,
    threads: int | None,
) -> None:
    """Watch a camera and report what appears, changes, goes or is unknown.

    Events are JSON lines. SOURCE is camera:0, an RTSP or HTTP stream, a film, or a folder into
    which images are written. An event is one of: appeared, changed, gone, unknown, offline,
    online. A camera or a broker that goes away is tried again; frames are dropped rather than
    answered late. Ctrl-C stops.
    """
    from verse.cli.directory import open_directory
    from verse.types import BadSetting
    from verse.watch import JSONLines, Scene, Sink, Watcher, Webhook, open_frames

    if teach_topic is not None and mqtt is None:
        raise BadSetting("--teach-topic needs --mqtt")
    frames = open_frames(source, every=every, seconds=seconds, from_start=from_start, tell=tell)
    hold = (0.0 if Path(source).is_dir() else 1.0) if hold is None else hold
    with open_directory(directory, threads, readonly=teach_topic is None, options={}) as classifier:
        sinks: list[Sink] = [JSONLines(sys.stdout if events is None else events)]
        broker: MQTT | None = None
        try:
            if webhook is not None:
                sinks.append(Webhook(webhook, tell=tell))
            if mqtt is not None:
                from verse.watch.mqtt import MQTT

                broker = MQTT(mqtt, discovery=discovery or None, teach_topic=teach_topic, tell=tell)
                sinks.append(broker)
            watcher = Watcher(
                _asker(classifier, refresh=teach_topic is None),
                Scene(source, hold=hold, background=background),
                sinks,
                teach=None if teach_topic is None else classifier.learn_one,
                tell=tell,
            )
            tell(f"watching {source} with {len(classifier.classes)} classes; Ctrl-C stops")
            watcher.watch(frames, lambda: [] if broker is None else _drain(broker.lessons))
        finally:
            for sink in sinks:
                sink.close()


def tell(sentence: str) -> None:
    """A sentence for people, on standard error."""
    console().print(sentence, style="dim", markup=False, soft_wrap=True)


def _asker(classifier: Any, *, refresh: bool) -> Any:
    """``ask`` that now and then looks at what somebody else has taught meanwhile."""
    looked = time.monotonic()

    def ask(image: Any) -> Any:
        nonlocal looked
        if refresh and time.monotonic() - looked > REFRESH:
            classifier.refresh()
            looked = time.monotonic()
        return classifier.ask(image)

    return ask


def _drain(waiting: queue.Queue[str]) -> list[str]:
    labels = []
    while not waiting.empty():
        labels.append(waiting.get_nowait())
    return labels
