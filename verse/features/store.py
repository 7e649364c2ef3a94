"""Features on disk: chunk files of 16-byte frame identities, then the features.

A chunk gets its name only when it is complete, so that a killed process loses one chunk and any
number of processes may fill a store together.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.datasets.base import DataWarning
from verse.paths import write_atomic
from verse.types import BadSetting

Ints = npt.NDArray[np.int64]
DTYPES: dict[str, np.dtype[np.floating]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}
KEY_BYTES = 16
STALE_SECONDS = 3600.0


class FeatureStore:
    """Chunk files of one G, read through memory maps.

    Parameters
    ----------
    folder
        Where the chunk files lie.
    z_shape
        Of a feature.
    dtype
        How it is stored.

    >>> import tempfile
    >>> store = FeatureStore(Path(tempfile.mkdtemp()), (2,), "float32")
    >>> store.add([b"0123456789abcdef"], torch.ones(1, 2))
    >>> store.places([b"0123456789abcdef"])
    {b'0123456789abcdef': (0, 0)}
    """

    def __init__(self, folder: Path, z_shape: tuple[int, ...], dtype: str) -> None:
        self.folder, self.z_shape = folder, z_shape
        self.dtype: np.dtype[np.floating] = DTYPES[dtype]
        self.row_bytes = int(np.prod(z_shape)) * self.dtype.itemsize
        self._paths: list[Path] = []
        self._known: set[str] = set()
        self._lengths: list[int] = []
        self._place: dict[bytes, tuple[int, int]] = {}  # identity → (chunk, row)
        self.open_chunk = lru_cache(maxsize=128)(
            self._open
        )  # each open map holds a file descriptor
        folder.mkdir(parents=True, exist_ok=True)
        self._sweep()

    def look(self) -> None:
        """Take notice of chunks that have appeared, from this process or another."""
        for path in sorted(self.folder.glob("*.z")):
            if path.name not in self._known:
                n, rest = divmod(path.stat().st_size, KEY_BYTES + self.row_bytes)
                if rest:
                    warnings.warn(f"{path} is damaged: computed anew", DataWarning, stacklevel=2)
                    path.unlink(missing_ok=True)
                    continue
                with open(path, "rb") as file:
                    for row in range(n):
                        self._place[file.read(KEY_BYTES)] = (len(self._paths), row)
                self._paths.append(path)
                self._lengths.append(n)
                self._known.add(path.name)

    def places(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
        """Identity → (chunk, row) of the frames that are there."""
        self.look()
        return {key: self._place[key] for key in keys if key in self._place}

    def add(self, keys: Sequence[bytes], z: Tensor) -> None:
        """Write one chunk, all or nothing."""
        joined = b"".join(keys)
        path = self.folder / f"{hashlib.sha256(joined).hexdigest()[:32]}.z"
        try:
            write_atomic(path, joined + z.numpy().astype(self.dtype).tobytes())
        except OSError as error:
            raise BadSetting(
                f"features cannot be kept in {self.folder} ({error}): set VERSE_CACHE to a folder "
                "with space, or run without cache (--no-cache)"
            ) from error

    def rows(self, chunk: Ints, row: Ints) -> Tensor:
        """Features [n, …] in storage of their own: bits of a matrix product depend on alignment."""
        out = torch.empty(len(chunk), *self.z_shape)
        into = out.numpy()
        for j, (c, r) in enumerate(zip(chunk.tolist(), row.tolist(), strict=True)):
            into[j] = self.open_chunk(c)[r]
        return out

    def _open(self, chunk: int) -> npt.NDArray[np.floating]:
        n = self._lengths[chunk]
        return np.memmap(
            self._paths[chunk],
            self.dtype,
            mode="r",
            offset=n * KEY_BYTES,
            shape=(n, *self.z_shape),
        )

    def _sweep(self) -> None:
        """Remove unfinished files that a killed process left long ago."""
        for path in self.folder.glob(".*.part"):
            try:
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()
            except FileNotFoundError:  # another process was faster
                pass
