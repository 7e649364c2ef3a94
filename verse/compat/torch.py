"""PyTorch data as a stream: any ``Dataset``, ``DataLoader`` or iterable of (x, y)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from verse.backbones import Extractor
from verse.datasets import Frames, Source
from verse.evaluate import Samples
from verse.images import rgb
from verse.types import BadData, BadSetting

PreparedBatch = tuple[npt.NDArray[np.generic], list[Any]]
"""Network inputs [n, …] and their labels."""


def stream_features(
    data: Iterable[Any] | Dataset[Any], G: Extractor, *, workers: int = 0, batch: int = 32
) -> Iterator[tuple[Tensor, Any]]:
    """(z, y) one at a time, in the order of ``data``, features computed ``batch`` at a time.

    ``data`` gives (x, y) or longer tuples, of which the rest is ignored; a ``DataLoader`` gives
    batches of them. x is anything that G takes. Of a ``Dataset``, ``workers`` processes read and
    decode ahead; an ``IterableDataset`` that shares itself out among workers comes in a
    ``DataLoader`` of its own. A label that is a tensor of one number becomes that number.

    >>> from verse.backbones import identity
    >>> pairs = [([1.0, 2.0], "mug"), ([3.0, 4.0], "cup")]
    >>> [(z.tolist(), y) for z, y in stream_features(pairs, identity(2).G)]
    [([1.0, 2.0], 'mug'), ([3.0, 4.0], 'cup')]
    """
    prepare = _Prepare(G.preprocess)
    batches: Iterable[PreparedBatch]
    if isinstance(data, Dataset):
        if workers > 1 and isinstance(data, IterableDataset):
            raise BadSetting(
                "each worker would go over the whole IterableDataset: use workers=1, or hand over "
                "a DataLoader of a data set that shares itself out"
            )
        batches = DataLoader(data, batch_size=batch, num_workers=workers, collate_fn=prepare)
    elif workers:
        raise BadSetting("workers read a Dataset only: other data comes as it is, without them")
    else:
        pairs = _unbatch(data) if isinstance(data, DataLoader) else iter(data)
        batches = map(prepare, _groups(pairs, batch))
    for inputs, labels in batches:
        yield from zip(G.run(inputs), labels, strict=True)


def samples(
    data: Iterable[Any] | Dataset[Any], G: Extractor, *, workers: int = 0, batch: int = 32
) -> Samples:
    """All of ``data`` as features in memory with class numbers, for ``verse.evaluate.stream``.

    >>> from verse.backbones import identity
    >>> samples([([1.0, 2.0], 0), ([3.0, 4.0], 1)], identity(2).G).y.tolist()
    [0, 1]
    """
    rows: list[Tensor] = []
    labels: list[int] = []
    for z, y in stream_features(data, G, workers=workers, batch=batch):
        rows.append(z)
        labels.append(_number(y))
    if not rows:
        raise BadData("there is no data: the stream is empty")
    return Samples(torch.stack(rows), np.array(labels, dtype=np.int64), np.arange(len(labels)))


def frames(
    data: Dataset[Any],
    labels: Sequence[int] | None = None,
    videos: Sequence[int] | None = None,
) -> Frames:
    """A map-style ``Dataset`` of images as one side of ``verse.datasets.Dataset``, read on demand.

    ``labels`` are its class numbers (default: read off all items, once), ``videos`` the video of
    each image (default: each its own), whose images stand in order of time.

    >>> from torch.utils.data import TensorDataset
    >>> side = frames(TensorDataset(torch.zeros(2, 3, 8, 8), torch.tensor([0, 1])))
    >>> side.labels.tolist(), side.read(1).shape
    ([0, 1], (8, 8, 3))
    """
    if isinstance(data, IterableDataset) or not isinstance(data, Sized):
        raise BadData(f"{type(data).__name__} has no length: a side of a data set needs numbers")
    n = len(data)
    y = [_number(data[i][1]) for i in range(n)] if labels is None else list(labels)
    video = np.arange(n) if videos is None else np.asarray(videos, dtype=np.int64)
    position, seen = np.empty(n, dtype=np.int64), dict[int, int]()
    for i, v in enumerate(video.tolist()):
        position[i] = seen[v] = seen.get(v, -1) + 1
    return Frames(np.asarray(y, dtype=np.int64), video, position, Items(data))


class Items(Source):
    """The images of a map-style data set.

    >>> Items([(np.zeros((4, 4, 3), np.uint8), 0)]).read(0).shape
    (4, 4, 3)
    """

    def __init__(self, data: Any) -> None:
        self.data = data

    def read(self, i: int) -> npt.NDArray[np.uint8]:
        return rgb(self.data[i][0])

    def key(self, i: int) -> str:
        """Its content: an item has no name or time of change."""
        pixels = self.read(i)
        return f"{pixels.shape} {hashlib.sha256(pixels.tobytes()).hexdigest()}"


class _Prepare:
    """(x, y) pairs to network inputs; a class, so that workers started anew can have it."""

    def __init__(self, preprocess: Callable[[object], npt.NDArray[np.generic]]) -> None:
        self.preprocess = preprocess

    def __call__(self, pairs: Sequence[Any]) -> PreparedBatch:
        return np.stack([self.preprocess(p[0]) for p in pairs]), [_label(p[1]) for p in pairs]


def _unbatch(batches: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for batch in batches:
        yield from zip(batch[0], batch[1], strict=True)


def _groups(pairs: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while group := list(islice(pairs, size)):
        yield group


def _label(y: Any) -> Any:
    return y.item() if isinstance(y, Tensor | np.generic) else y


def _number(y: Any) -> int:
    label = _label(y)
    if isinstance(label, bool) or not isinstance(label, int) or label < 0:
        raise BadData(f"a class number is a whole number from 0, not {label!r}")
    return label
