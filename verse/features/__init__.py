"""Frame → z: G once per frame, kept on disk under the identity of the frame and of G.

Belongs here: how features are stored on disk, found again and sent to other machines. Does not
belong here: the networks that compute them (``verse.backbones``), and what uses them.

Subsets (another split, every n-th frame) find what is there, and a changed file is computed anew,
because frames are found one by one. Several processes may compute together: each takes missing
chunks at random and looks again before the next.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.backbones.base import Backbone, Extractor
from verse.datasets.base import DataWarning, Frames
from verse.features.store import DTYPES, KEY_BYTES, FeatureStore
from verse.paths import cache_directory, write_atomic
from verse.types import BadData, BadImage, BadSetting

__all__ = ["DTYPES", "Features", "Progress", "FeatureStore", "frame_digest", "store_folder"]

Ints = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Called with (frames done, frames in all)."""

BATCH = 32
CHUNK_BYTES = 16 << 20
READERS = 2


class Features:
    """The features of the frames that could be read; ``features[indices]`` is float32 [n, …].

    Parameters
    ----------
    frames
        Those that could be read.
    read
        Indices → features.
    skipped
        Frame of the original side → why it cannot be read.

    >>> from verse.backbones import identity
    >>> from verse.datasets.base import Source
    >>> class Grey(Source):
    ...     def read(self, i):
    ...         return np.full(3, i, np.uint8)
    ...     def key(self, i):
    ...         return f"grey {i}"
    >>> frames = Frames([0, 1], [0, 1], [0, 0], Grey())
    >>> Features.of(frames, identity(3), cache=False)[np.array([1])]
    tensor([[1., 1., 1.]])
    """

    def __init__(
        self, frames: Frames, read: Callable[[Ints], Tensor], skipped: dict[int, str]
    ) -> None:
        self.frames = frames
        self.skipped = skipped  # frame of the original side → why it cannot be read
        self._read = read

    @classmethod
    def of(
        cls,
        frames: Frames,
        backbone: Backbone,
        *,
        dtype: str = "float32",
        cache: bool = True,
        strict: bool = False,
        folder: Path | None = None,
        progress: Progress | None = None,
    ) -> Features:
        """Compute what is not on disk yet; without ``cache`` compute on every access instead.

        Images that cannot be read are left out with a warning, or refused with ``strict``.
        """
        if dtype not in DTYPES:
            raise BadSetting(f"features are kept as {' or '.join(DTYPES)}, not {dtype!r}")
        bad: dict[int, str] = {}
        note = _refuse if strict else bad.__setitem__
        if cache:
            store = FeatureStore(store_folder(folder, backbone, dtype), backbone.G.z_shape, dtype)
            keys = [frame_digest(frames.key(i)) for i in range(len(frames))]
            _fill(store, frames, keys, backbone.G, note, progress)
            place = store.places(keys)
            good = [i for i, key in enumerate(keys) if key in place]
            chunk = np.array([place[keys[i]][0] for i in good], dtype=np.int64)
            row = np.array([place[keys[i]][1] for i in good], dtype=np.int64)
            kept = _drop_unreadable(frames, good, bad)
            return cls(kept, lambda at: store.rows(chunk[at], row[at]), bad)
        _scan(frames, note, progress)
        kept = _drop_unreadable(frames, [i for i in range(len(frames)) if i not in bad], bad)
        return cls(kept, lambda at: _compute_rows(kept, at, backbone.G, dtype), bad)

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, index: Ints) -> Tensor:
        return self._read(np.asarray(index, dtype=np.int64))


def frame_digest(key: str) -> bytes:
    """A frame's identity, as a store keeps it."""
    return hashlib.sha256(key.encode()).digest()[:KEY_BYTES]


def store_folder(folder: Path | None, backbone: Backbone, dtype: str) -> Path:
    """Where the features of a backbone are kept, in the cache or in ``folder``."""
    about = {
        "backbone": backbone.name,
        "at": backbone.at,
        "key": backbone.key,
        "engine": backbone.G.engine,
        "z_shape": backbone.G.z_shape,
        "dtype": dtype,
    }
    text = json.dumps(about, sort_keys=True)
    plain = re.sub(r"[^\w.-]+", "-", backbone.name)[-60:]  # a model's name may hold a path
    name = f"{plain}-{backbone.at}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    place = (cache_directory() if folder is None else folder) / "features" / name
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not (place / "about.json").exists():
            write_atomic(place / "about.json", text.encode())
    except OSError as error:
        raise BadSetting(
            f"features cannot be kept in {place} ({error}): set VERSE_CACHE to a folder that can "
            "be written, or run without cache (--no-cache)"
        ) from error
    return place


def _fill(
    store: FeatureStore,
    frames: Frames,
    keys: Sequence[bytes],
    G: Extractor,
    note: Callable[[int, str], None],
    progress: Progress | None,
) -> None:
    """Compute the features that the store does not have."""
    place = store.places(keys)
    first: dict[bytes, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)  # equal frames are computed once
    missing = np.array([i for key, i in first.items() if key not in place], dtype=np.int64)
    size = max(BATCH, min(16 * BATCH, CHUNK_BYTES // store.row_bytes // BATCH * BATCH))
    chunks = [missing[a : a + size] for a in range(0, len(missing), size)]
    total, done = len(first), len(first) - len(missing)
    if progress is not None:
        progress(done, total)
    pick = random.SystemRandom()
    while chunks:
        chunk = chunks.pop(pick.randrange(len(chunks)))
        there = store.places([keys[i] for i in chunk])
        done += len(there)
        parts, good = [], []
        for rows, inputs in _batches(frames, [i for i in chunk if keys[i] not in there], G, note):
            parts.append(G.run(inputs))
            good += [keys[i] for i in rows]
            done += len(rows)
            if progress is not None:
                progress(done, total)
        if good:
            store.add(good, torch.cat(parts))


def _batches(
    frames: Frames, indices: Sequence[int], G: Extractor, note: Callable[[int, str], None]
) -> Iterator[tuple[list[int], npt.NDArray[np.generic]]]:
    """Prepared inputs in batches; threads read the next batch while G runs."""
    with ThreadPoolExecutor(READERS) as pool:
        blocks = [indices[a : a + BATCH] for a in range(0, len(indices), BATCH)]
        ahead = [pool.submit(_prepare, frames, block, G) for block in blocks[:READERS]]
        for k in range(len(blocks)):
            rows, inputs, reasons = ahead.pop(0).result()
            if k + READERS < len(blocks):
                ahead.append(pool.submit(_prepare, frames, blocks[k + READERS], G))
            for i, reason in reasons.items():
                note(i, reason)
            if rows:
                yield rows, np.stack(inputs)


def _prepare(
    frames: Frames, block: Sequence[int], G: Extractor
) -> tuple[list[int], list[npt.NDArray[np.generic]], dict[int, str]]:
    rows, inputs, reasons = [], [], {}
    for i in block:
        try:
            inputs.append(G.preprocess(frames.read(int(i))))
            rows.append(int(i))
        except BadImage as error:
            reasons[int(i)] = str(error)
    return rows, inputs, reasons


def _scan(frames: Frames, note: Callable[[int, str], None], progress: Progress | None) -> None:
    """Find the frames that cannot be read, so that results are the same as with a cache."""

    def reason(i: int) -> str | None:
        try:
            frames.read(i)
        except BadImage as error:
            return str(error)
        return None

    with ThreadPoolExecutor(READERS) as pool:
        for i, why in enumerate(pool.map(reason, range(len(frames)), chunksize=BATCH)):
            if why is not None:
                note(i, why)
            if progress is not None and (i % BATCH == 0 or i + 1 == len(frames)):
                progress(i + 1, len(frames))


def _compute_rows(frames: Frames, at: Ints, G: Extractor, dtype: str) -> Tensor:
    parts = [G.run(x) for _, x in _batches(frames, at.tolist(), G, _refuse)]
    z = torch.cat(parts) if parts else torch.empty(0, *G.z_shape)
    return z.half().float() if dtype == "float16" else z


def _refuse(_: int, reason: str) -> None:
    raise BadImage(f"{reason}; mend or remove it, or let it be skipped (without --strict)")


def _drop_unreadable(frames: Frames, good: Sequence[int], bad: dict[int, str]) -> Frames:
    first = bad[min(bad)] if bad else ""
    if bad and not good:
        raise BadData(f"none of the {len(frames)} images can be read; the first: {first}")
    if bad:
        warnings.warn(
            f"{len(bad)} of {len(frames)} images cannot be read, left out; the first: {first}",
            DataWarning,
            stacklevel=3,
        )
    return frames.take(np.array(good, dtype=np.int64)) if bad else frames
