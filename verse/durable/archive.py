"""One file that holds a durable classifier's directory: made while it is in use, checked when read.

A plain zip archive of the journal's copy and its checkpoints, with a list of their hashes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

from verse.durable.journal import CHECKPOINT, Journal
from verse.durable.new_directory import make_directory, require_new
from verse.types import BadState

FORMAT = 1
NAME = re.compile(rf"journal\.sqlite|{CHECKPOINT.pattern}")
MANIFEST_BYTES = 2**20
ATTEMPTS = 10  # a writer may replace a checkpoint while it is being copied


def backup(directory: str | Path, file: str | Path) -> dict[str, Any]:
    """Copy a durable classifier to one file, also while it is being served."""
    directory, file = Path(directory), Path(file)
    if not (directory / "journal.sqlite").exists():
        raise BadState(f"there is no classifier in {directory}")
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=".backup-") as place:
        work = Path(place)
        names = _collect(directory, work)
        manifest = {
            "format": FORMAT,
            "files": {name: _hash(work / name) for name in names},
            "bytes": sum((work / name).stat().st_size for name in names),
        }
        part = work / "archive"
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
            archive.writestr("manifest.json", json.dumps(manifest, indent=2))
            for name in names:
                archive.write(work / name, name)
        _flush(part)
        os.replace(part, file)
    _flush(file.absolute().parent)
    return manifest


def _collect(directory: Path, work: Path) -> list[str]:
    """A copy of the journal and of every checkpoint that this copy names."""
    for attempt in range(ATTEMPTS):
        source = Journal(directory / "journal.sqlite", readonly=True)
        try:
            source.database.copy_to(work / "journal.sqlite")
        finally:
            source.close()
        copy = Journal(work / "journal.sqlite", readonly=True)
        try:
            names = [name for _, name in copy.checkpoints()]
        finally:
            copy.close()
        try:
            for name in names:
                shutil.copyfile(directory / name, work / name)
        except FileNotFoundError as error:
            if attempt == ATTEMPTS - 1:
                raise BadState(f"the checkpoint {error.filename} is missing") from error
            (work / "journal.sqlite").unlink()
            continue
        return ["journal.sqlite", *names]
    raise AssertionError("the last attempt returns or raises")


def restore(file: str | Path, directory: str | Path) -> dict[str, Any]:
    """Put a backup into a new directory; nothing is left behind if it is damaged."""
    file, directory = Path(file), Path(directory)
    require_new(directory, "restore into a new directory")
    with make_directory(directory) as work:
        manifest = _unpack(file, work)
        Journal(work / "journal.sqlite", readonly=True).close()  # checks it
        for name in manifest["files"]:
            _flush(work / name)
        _flush(work)
    return manifest


def _unpack(file: Path, work: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            manifest = _manifest(archive, file)
            for name, expected in manifest["files"].items():
                with archive.open(name) as source, open(work / name, "wb") as target:
                    shutil.copyfileobj(source, target)
                if _hash(work / name) != expected:
                    raise BadState(f"{file} is damaged: {name} has another hash")
    except FileNotFoundError:
        raise BadState(f"there is no file {file}") from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        NotImplementedError,  # a kind of compression that is not known
        RuntimeError,  # encrypted; a document that is too deep
    ) as error:
        if isinstance(error, BadState):
            raise
        raise BadState(f"{file} is damaged or no backup: {error}") from error
    return manifest


def _manifest(archive: zipfile.ZipFile, file: Path) -> dict[str, Any]:
    """What is in an archive, once all of it is known to be what ``backup`` would write and no
    larger than the archive itself: nothing is unpacked before."""
    members = archive.infolist()
    if any(m.compress_type != zipfile.ZIP_STORED for m in members):
        raise BadState(f"{file} is compressed, so no backup of verse")
    if sum(m.file_size for m in members) > file.stat().st_size:
        raise BadState(f"{file} is damaged: its parts are larger than itself")
    if archive.getinfo("manifest.json").file_size > MANIFEST_BYTES:
        raise BadState(f"{file} is damaged: its manifest is too large")
    manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
    if manifest["format"] > FORMAT:
        raise BadState(f"{file} has format {manifest['format']}: upgrade verse")
    for name in manifest["files"]:
        if not NAME.fullmatch(name):
            raise BadState(f"{file} holds {name!r}, which is no part of a classifier")
    if sorted(["manifest.json", *manifest["files"]]) != sorted(m.filename for m in members):
        raise BadState(f"{file} is damaged: it does not hold what its manifest lists")
    if "journal.sqlite" not in manifest["files"]:
        raise BadState(f"{file} holds no journal")
    return manifest


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
