"""Where files of this program lie, and how they are written so that a crash leaves no half ones."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def cache_directory() -> Path:
    """``VERSE_CACHE``, else ``verse`` in the platform's cache directory of this user."""
    if named := os.environ.get("VERSE_CACHE"):
        return Path(named).expanduser()
    import platformdirs  # only here, so that importing this file stays instant

    return platformdirs.user_cache_path("verse", appauthor=False, opinion=False)


def data_directory() -> Path:
    """Where data sets lie if the user does not say: ``VERSE_DATA``, else ``data`` in the cache."""
    named = os.environ.get("VERSE_DATA")
    return Path(named).expanduser() if named else cache_directory() / "data"


def sha256(path: Path) -> str:
    """The hash of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its name when the block ends without an error, and is safe on
    the disk then; after an error nothing has changed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def write_atomic(path: Path, content: bytes) -> None:
    """Write, flush to the disk, rename, flush the folder: all or nothing."""
    with open_atomic(path) as file:
        file.write(content)


def flush_folder(path: Path) -> None:
    """Make names in a folder durable: new, renamed or removed files."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
