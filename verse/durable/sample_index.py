"""Finds the sequence number of a stored sample by its feature."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections import OrderedDict

import numpy as np
from torch import Tensor

from verse.types import BadState

MOST = 8192  # samples; the oldest leave
LONG = 16  # values of a feature


class SampleIndex:
    """Short digests of features → sequence numbers, bounded.

    A learner may scale what it keeps, so the digest of a long feature is of which of its values
    are larger than others; that of a short one is of its direction.

    >>> import torch
    >>> index = SampleIndex()
    >>> index.add(torch.ones(3), 7)
    >>> index.find(torch.ones(3)), index.find(torch.zeros(3))
    (7, None)
    """

    def __init__(self) -> None:
        self._seqs: OrderedDict[bytes, int] = OrderedDict()

    def add(self, z: Tensor, seq: int) -> None:
        """Remember the number of a sample."""
        digest = _digest(z)
        self._seqs.pop(digest, None)
        self._seqs[digest] = seq
        if len(self._seqs) > MOST:
            self._seqs.popitem(last=False)

    def find(self, z: Tensor) -> int | None:
        """The number of a sample, or None."""
        return self._seqs.get(_digest(z))

    def document(self) -> str:
        """As text."""
        packed = b"".join(digest + struct.pack("<q", seq) for digest, seq in self._seqs.items())
        return base64.b64encode(packed).decode("ascii")

    def load(self, document: str) -> None:
        """Become what ``document`` gave."""
        try:
            packed = base64.b64decode(document, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise BadState(f"the index of samples is damaged: {error}") from error
        if len(packed) % 16 or len(packed) > 16 * MOST:
            raise BadState("the index of samples is damaged: its length is wrong")
        rows = (packed[i : i + 16] for i in range(0, len(packed), 16))
        self._seqs = OrderedDict((row[:8], struct.unpack("<q", row[8:])[0]) for row in rows)


def _digest(z: Tensor) -> bytes:
    values = z.detach().cpu().float().flatten().numpy()
    if len(values) >= LONG:
        larger = [values > np.roll(values, shift) for shift in (1, 2, 5)]
        content = np.packbits(np.concatenate(larger)).tobytes()
    else:
        content = np.round(values / max(float(np.linalg.norm(values)), 1e-12), 3).tobytes()
    return hashlib.blake2b(content, digest_size=8).digest()
