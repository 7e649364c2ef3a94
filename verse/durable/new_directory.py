"""A directory that is there as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verse import paths
from verse.types import BadSetting


def require_new(directory: Path, advice: str) -> None:
    """Refuse a directory that holds something already."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadSetting(f"{directory} already exists: {advice}")


@contextmanager
def make_directory(directory: Path) -> Iterator[Path]:
    """A folder to fill, which becomes ``directory`` at the end; after an error nothing is left.

    >>> folder = Path(tempfile.mkdtemp()) / "new"
    >>> with make_directory(folder) as work:
    ...     _ = (work / "file").write_text("content")
    >>> [path.name for path in folder.iterdir()]
    ['file']
    """
    parent = directory.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=parent, prefix=".new-"))
    try:
        yield work
        if directory.exists():
            directory.rmdir()
        os.chmod(work, 0o755)
        os.rename(work, directory)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    paths.flush_folder(parent)
