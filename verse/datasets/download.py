"""Fetch one archive over http(s): resumed where it stopped, checked, then renamed."""

from __future__ import annotations

import hashlib
import os
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verse.types import BadData

Progress = Callable[[int, int | None], None]
"""Called with bytes so far and bytes in all (None where the server does not say)."""
CHUNK = 1 << 20


@dataclass(frozen=True)
class Archive:
    """What to fetch and how to know it is right: a hash where the source allows, else a size.

    >>> Archive("https://example.org/set.zip", size=10).file
    'set.zip'
    """

    url: str
    size: int | None = None
    hash: tuple[str, str] | None = None
    """Algorithm of hashlib and hexadecimal digest."""

    @property
    def file(self) -> str:
        return self.url.partition("?")[0].rpartition("/")[2]


def fetch(archive: Archive, folder: Path, progress: Progress | None = None) -> Path:
    """The archive's file in ``folder``; a half-fetched one (``.part``) is continued."""
    target = folder / archive.file
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(archive.url, headers={"User-Agent": "verse"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            _receive(response, part, have, progress)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing after what we have, so the part is whole
            raise BadData(f"{archive.url} answered {error.code} {error.reason}") from None
    except OSError as error:
        raise BadData(
            f"{archive.url} could not be fetched: {error}; run the same command again to "
            f"go on, or fetch it yourself and save it as {target}"
        ) from None
    _verify(archive, part)
    os.replace(part, target)
    return target


def _receive(response: Any, part: Path, have: int, progress: Progress | None) -> None:
    resumed = response.status == 206
    length = response.headers.get("Content-Length")
    done = have if resumed else 0
    total = done + int(length) if length else None
    with part.open("ab" if resumed else "wb") as file:
        while chunk := response.read(CHUNK):
            file.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(done, total)
    if total is not None and done < total:
        raise OSError(f"the connection ended after {done:,} of {total:,} bytes")


def _verify(archive: Archive, part: Path) -> None:
    size, wrong = part.stat().st_size, ""
    if archive.size is not None and size != archive.size:
        wrong = f"it has {size:,} bytes, not {archive.size:,}"
    elif archive.hash is not None:
        algorithm, digest = archive.hash
        with part.open("rb") as file:
            found = hashlib.file_digest(file, algorithm).hexdigest()
        wrong = "" if found == digest else f"its {algorithm} is {found}, not {digest}"
    if wrong:
        part.unlink()
        raise BadData(
            f"the file from {archive.url} is not the expected one: {wrong}; it was "
            "removed, so try again, or look for a new address on the data set's page"
        )


def unpack_zip(path: Path, folder: Path) -> None:
    """Unpack a zip; what it holds appears in ``folder`` whole or not at all."""
    half = folder.with_name(folder.name + ".unpacking")
    shutil.rmtree(half, ignore_errors=True)
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(half)
    except zipfile.BadZipFile:
        raise BadData(f"{path} is damaged or no zip file; remove it and fetch it again") from None
    folder.mkdir(parents=True, exist_ok=True)
    for entry in half.iterdir():
        if (folder / entry.name).is_dir():
            shutil.rmtree(folder / entry.name)
        os.replace(entry, folder / entry.name)
    half.rmdir()


def fetch_archive(archive: Archive, folder: Path, progress: Progress | None = None) -> None:
    """Fetch the archive to a file next to ``folder``, unpack it there, and remove it."""
    path = fetch(archive, folder.parent, progress)
    unpack_zip(path, folder)
    path.unlink()
