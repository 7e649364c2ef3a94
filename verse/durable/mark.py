"""The high-water mark: how far the journal was acknowledged."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

from verse.durable.rows import checksum
from verse.types import BadState


class Mark:
    """The newest acknowledged entry, in a file of its own: it survives a killed process without a
    flush, and after a power failure it may lag behind, never lead."""

    def __init__(self, path: Path, readonly: bool) -> None:
        self.path = path
        self._file: int | None = None
        if not readonly or path.exists():
            flags = os.O_RDONLY if readonly else os.O_RDWR | os.O_CREAT
            self._file = os.open(path, flags, 0o644)

    def read(self) -> int:
        raw = os.pread(self._file, 16, 0) if self._file is not None else b""
        if len(raw) < 16:
            return 0
        (seq,) = struct.unpack("<Q", raw[:8])
        if checksum("acknowledged", seq)[:8] != raw[8:]:
            raise BadState(
                f"{self.path} is damaged, so that missing entries would go unnoticed: "
                "restore a backup, or delete that file to go on regardless"
            )
        return int(seq)

    def write(self, seq: int) -> None:
        assert self._file is not None
        with suppress(OSError):  # a full disk: the mark lags behind, which is safe
            os.pwrite(self._file, struct.pack("<Q", seq) + checksum("acknowledged", seq)[:8], 0)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
