"""Opening a durable classifier from the shell."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from verse.cli.interrupt import exit_on_interrupt
from verse.cli.output import plain_warnings
from verse.configuration import (
    DEFAULT_BACKBONE,
    DEFAULT_CAPACITY,
    DEFAULT_LEARNER,
    DEVICES,
)
from verse.types import BadSetting

if TYPE_CHECKING:
    from verse.durable import DurableClassifier

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


device_option = click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="cpu",
    show_default=True,
    help="Device of the networks; auto uses a GPU if there is one.",
)


threads_option = click.option(
    "--threads", type=click.IntRange(1), help="Number of threads. [default: half the cores]"
)
weights_option = click.option(
    "--weights", help="File with the pretrained weights, if it has moved."
)


def begin_options(command: Decorated) -> Decorated:
    """Add the options that say what a new directory holds; they are kept with it."""
    options = (
        click.option(
            "--learner",
            help="New classifier: its learning method; see verse list "
            f"learners. [default: {DEFAULT_LEARNER}]",
        ),
        click.option(
            "--backbone",
            help="New classifier: its pretrained network; see verse list "
            f"backbones. [default: {DEFAULT_BACKBONE}]",
        ),
        click.option(
            "--at",
            help="New classifier: where the network is split into its frozen and "
            "its learning part: grid, grid1, grid3 or a layer. [default: grid]",
        ),
        click.option(
            "--weights",
            help="File with the pretrained weights. [default: those that come with the backbone]",
        ),
        click.option(
            "--capacity",
            help="New classifier: size of its memory: 3MB, 20 per class, or "
            f"a number of samples. [default: {DEFAULT_CAPACITY}]",
        ),
        click.option(
            "--seed", type=click.IntRange(0), help="New classifier: its random seed. [default: 0]"
        ),
        click.option(
            "--keep",
            type=click.Choice(["none", "features"]),
            help="New classifier: keep "
            "the features of all samples, so that verse forget can remove any of them. "
            "[default: none]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def refuse_foreign(directory: Path) -> None:
    """Raise an error if there is a folder with something else than a classifier in it."""
    ours = ("lock", "acknowledged", "journal.sqlite", "checkpoint-")
    names = [path.name for path in directory.iterdir()] if directory.is_dir() else []
    # what systems put into a new disk or folder is nobody's
    names = [name for name in names if not name.startswith(".") and name != "lost+found"]
    if names and not any(name.startswith(ours) for name in names):
        raise BadSetting(
            f"{directory} has other files and no classifier: give the folder of a classifier, or "
            "one that is new or empty"
        )


def refuse_locked(directory: Path) -> None:
    """Raise an error if another process has the directory open for writing."""
    if not (directory / "lock").exists():
        return
    import filelock

    try:
        filelock.FileLock(directory / "lock").acquire(timeout=0).lock.release()
    except filelock.Timeout:
        raise locked_error(directory) from None


def locked_error(directory: Path) -> BadSetting:
    """What to do when another process has the directory open for writing."""
    return BadSetting(
        f"{directory} is open for writing in another process (verse serve, verse teach or "
        "Python): stop that process first; verse predict and verse classes work meanwhile"
    )


def open_directory(
    directory: Path,
    threads: int | None,
    *,
    device: str = "cpu",
    readonly: bool = False,
    options: dict[str, Any] | None = None,
) -> DurableClassifier:
    """Open with these numbers of threads for learning and for G.

    Half the cores by default, in every command: so the service's learning and answering do not
    fight, and results are the same to the last bit whichever command learned. A directory that was
    new and could not be begun is not left behind.
    """
    with exit_on_interrupt():
        import torch

        import verse
        from verse import backbones, durable  # noqa: F401 (opening needs both)

    n = threads or max(1, (os.cpu_count() or 2) // 2)
    torch.set_num_threads(n)
    new = not directory.exists()
    try:
        given = {**(options or {}), "threads": n, "device": device}
        with plain_warnings():
            return verse.open(directory, readonly=readonly, **given)
    except durable.Locked:
        raise locked_error(directory) from None
    except BaseException:
        if new:
            remove_empty(directory)
        raise


def remove_empty(directory: Path) -> None:
    """What a classifier that learned nothing has made, and nothing else."""
    with suppress(OSError):
        for file in (*directory.glob("journal.sqlite*"), directory / "acknowledged"):
            file.unlink(missing_ok=True)
        (directory / "lock").unlink(missing_ok=True)
        directory.rmdir()
