"""``verse teach``: a folder of images into a durable classifier."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.directory import (
    begin_options,
    device_option,
    open_directory,
    refuse_foreign,
    refuse_locked,
    remove_empty,
    threads_option,
)
from verse.cli.films import labels_of, teach_film, video_options
from verse.cli.output import console, format_error, json_option, plural, print_json, result_only
from verse.labels import check_label
from verse.types import BadData, BadImage, BadLabel, Refused

if TYPE_CHECKING:
    from verse.durable import DurableClassifier


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.argument("source", metavar="FOLDER|VIDEO")
@click.option(
    "--mix",
    is_flag=True,
    help="Alternate between the classes instead of teaching one after the other.",
)
@click.option(
    "--ranges",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV or JSON file with start, end and label of each part of a video. [default: "
    "the file of the same name next to the video]",
)
@click.option("--label", help="Label of the whole video.")
@video_options(every=0.2)
@click.option("--again", is_flag=True, help="Also teach images that you have undone or forgotten.")
@begin_options
@device_option
@threads_option
@json_option
def command(
    directory: Path,
    source: str,
    mix: bool,
    ranges: Path | None,
    label: str | None,
    every: float,
    seconds: float | None,
    again: bool,
    device: str,
    threads: int | None,
    as_json: bool,
    **options: Any,  # the remaining ones are options of verse.open, name by name
) -> None:
    """Teach a classifier from a folder of images or a video.

    DIRECTORY holds the classifier; it is created if it does not exist. FOLDER has one subfolder of
    images per class. VIDEO is a video file, camera:0 or rtsp://…; give it a --label, or a file of
    time ranges (--ranges).

    Each image is learned once. If the command is interrupted, start it again: it continues where it
    stopped. Unreadable images are reported and skipped. Images that you have undone or forgotten
    are skipped, too.
    """
    with result_only(as_json):
        from verse.video import is_video

        refuse_locked(directory)
        video, folder = is_video(source), Path(source)
        labels = labels_of(source, ranges, label) if video else []
        lessons = [] if video else list(interleave(folder) if mix else in_turn(folder))
        check_folder_names(folder, lessons)
        refuse_foreign(directory)
        given = {name: value for name, value in options.items() if value is not None}
        new = not directory.exists()
        with open_directory(directory, threads, device=device, options=given) as classifier:
            if video:
                learned, skipped, taken_back, bad = teach_film(
                    classifier, source, labels, every, seconds, again
                )
            else:
                learned, skipped, taken_back, bad = teach(classifier, folder, lessons, again)
            classes, samples = classifier.classes, classifier.samples
    result = {
        "learned": learned,
        "known": skipped,
        "taken_back": taken_back,
        "unreadable": bad,
        "samples": samples,
        "classes": classes,
    }
    if as_json:
        print_json(result)
    else:
        click.echo(
            f"{plural(learned, 'image')} learned, {skipped:,} already known, {len(bad):,} "
            f"unreadable; {directory} now has {plural(len(classes), 'class', 'classes')} and "
            f"{plural(samples, 'sample')}"
        )
        if taken_back:
            click.echo(
                f"{plural(taken_back, 'image')} skipped because you have undone or forgotten them; "
                "use --again to teach them"
            )
    if bad and not learned + skipped + taken_back:  # nothing could be read
        if new:
            remove_empty(directory)
        click.get_current_context().exit(2)


def classes_of(folder: Path) -> dict[str, list[Path]]:
    """Class → its images at any depth, in natural order."""
    from verse.datasets.files import images, natural, visible

    def below(place: Path) -> list[Path]:
        folders, files = visible(place)
        return images(files) + [path for inner in folders for path in below(inner)]

    found = {
        place.name: below(place)
        for place in sorted(visible(folder)[0], key=lambda path: natural(path.name))
    }
    if not any(found.values()):
        raise BadData(f"{folder} has no images: it needs one subfolder of images per class")
    return found


def check_folder_names(folder: Path, lessons: list[tuple[str, Path]]) -> None:
    """Each can be a label, before anything is learned."""
    for label in dict.fromkeys(label for label, _ in lessons):
        try:
            check_label(label)
        except BadLabel as error:
            raise BadLabel(f"{folder / label}: {error}; rename this folder") from error


def in_turn(folder: Path) -> Iterator[tuple[str, Path]]:
    """(label, image), class after class."""
    for label, paths in classes_of(folder).items():
        for path in paths:
            yield label, path


def interleave(folder: Path) -> Iterator[tuple[str, Path]]:
    """(label, image), one of each class in turn until all are through."""
    waiting = {label: iter(paths) for label, paths in classes_of(folder).items()}
    while waiting:
        for label in list(waiting):
            path = next(waiting[label], None)
            if path is None:
                del waiting[label]
            else:
                yield label, path


def key_of(folder: Path, path: Path, content: bytes) -> str:
    """What makes a lesson the same one: its place in the folder and its content."""
    name = path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(name + b"\0" + hashlib.sha256(content).digest())
    return f"teach:{digest.hexdigest()}"


def free_key(classifier: DurableClassifier, key: str | None, again: bool) -> tuple[str | None, str]:
    """(the key to teach a lesson with, what became of it before). With ``again`` a lesson that was
    undone or forgotten is a new sample with its own key."""
    fate = classifier.fate_of(key)
    turn = 1
    while again and key is not None and fate in ("undone", "forgotten"):
        key, turn = f"{key.partition('#')[0]}#{turn}", turn + 1
        fate = classifier.fate_of(key)
    return key, fate or "new"


def teach(
    classifier: DurableClassifier, folder: Path, lessons: list[tuple[str, Path]], again: bool
) -> tuple[int, int, int, list[dict[str, str]]]:
    """(learned, known before, undone or forgotten since, unreadable)."""
    from rich.progress import track

    shown = console()
    learned, known, taken_back = 0, 0, 0
    bad: list[dict[str, str]] = []
    for label, path in track(lessons, "Teaching", console=shown, disable=not shown.is_terminal):
        try:
            content = path.read_bytes()
            key, fate = free_key(classifier, key_of(folder, path, content), again)
            if fate == "kept":
                known += 1
            elif fate in ("undone", "forgotten"):
                taken_back += 1
            else:
                classifier.learn_one(content, label, key=key)
                learned += 1
        except (BadImage, Refused, OSError) as error:
            bad.append({"image": str(path), "error": str(error)})
            shown.print(
                format_error(str(path), error), style="yellow", markup=False, soft_wrap=True
            )
    return learned, known, taken_back, bad
