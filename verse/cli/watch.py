"""``verse watch``: a camera that reports what it sees."""

from __future__ import annotations

import queue
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.directory import threads_option
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
    help="Directory of the classifier.",
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
    help="Seconds that an answer must last before it is reported. [default: 1; for a folder 0]",
)
@click.option(
    "--background",
    multiple=True,
    metavar="LABEL",
    help="Class that means that nothing is there; can be repeated.",
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
    help="Publish events to an MQTT broker: mqtt://[user@]host[:port]/topic. Put the password into "
    "the environment variable VERSE_MQTT_PASSWORD.",
)
@click.option(
    "--discovery",
    default="homeassistant",
    show_default=True,
    metavar="PREFIX",
    help="Discovery prefix of Home Assistant; an empty text turns discovery off.",
)
@click.option(
    "--teach-topic",
    metavar="TOPIC",
    help="MQTT topic for labels: each label that arrives is taught with the current frame.",
)
@click.option(
    "--from-start", is_flag=True, help="Also classify the images that a folder already contains."
)
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), help="Stop after this many seconds."
)
@threads_option
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
    """Watch a camera and report what appears, changes or disappears.

    SOURCE is camera:0, an RTSP or HTTP stream, a video file, or a folder that receives images.
    Events are printed as JSON lines. An event is one of: appeared, changed, gone, unknown, offline,
    online. If the camera or the broker is lost, the command reconnects. If the machine is too slow,
    frames are skipped. Press Ctrl-C to stop.
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
            tell(f"Watching {source} with {len(classifier.classes)} classes. Press Ctrl-C to stop.")
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
