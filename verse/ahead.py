"""Features of pictures in order, the next one computed while the current one is learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, zip_longest
from typing import Any

from torch import Tensor

from verse.labels import check_label
from verse.types import BadData, Image, Label


def prepare_pairs(
    features: Callable[[Sequence[Image]], Tensor],
    images: Iterable[Image],
    labels: Iterable[Label],
    *,
    overlap: bool,
) -> Iterator[tuple[Tensor, Label]]:
    """(feature, checked label) of each pair in order; an image's error comes at its turn.

    With ``overlap`` a separate thread computes ``features``, and ``images`` is read one ahead.

    >>> import torch
    >>> list(prepare_pairs(torch.tensor, [1.0, 2.0], ["a", "b"], overlap=True))
    [(tensor(1.), 'a'), (tensor(2.), 'b')]
    """
    pairs = pair_up(images, labels)
    if not overlap:
        for image, label in pairs:
            label = check_label(label)
            yield features([image])[0], label
        return
    with ThreadPoolExecutor(1) as worker:
        waiting: deque[tuple[Future[Tensor], Label]] = deque()
        for image, label in pairs:
            label = check_label(label)
            waiting.append((worker.submit(features, [image]), label))
            if len(waiting) > 1:
                z, due = waiting.popleft()
                yield z.result()[0], due
        for z, due in waiting:
            yield z.result()[0], due


def pair_up(images: Iterable[Image], labels: Iterable[Label]) -> Iterator[tuple[Image, Label]]:
    """(image, label) in order. If both have a length, the lengths must be equal.

    >>> list(pair_up(["a.png", "b.png"], ["mug"]))
    Traceback (most recent call last):
    verse.types.BadData: there are 2 images and 1 labels: nothing was learned
    """
    for given, what in ((images, "images"), (labels, "labels")):
        if isinstance(given, str | bytes):  # or its letters would be learned
            raise BadData(
                f"{what} are several, not one {type(given).__name__}: nothing was learned"
            )
    if isinstance(images, Sized):
        n = len(images)
        labels = labels if isinstance(labels, Sized) else list(islice(labels, n + 1))
        if len(labels) != n:
            raise BadData(f"there are {n} images and {len(labels)} labels: nothing was learned")
    end: Any = object()
    for count, (image, label) in enumerate(zip_longest(images, labels, fillvalue=end)):
        if image is end or label is end:
            which = "images" if image is end else "labels"
            raise BadData(f"there are only {count} {which}; these pairs are learned, no more")
        yield image, label
