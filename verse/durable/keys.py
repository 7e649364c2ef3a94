"""Idempotency keys: the sample that each stands for, and what became of it.

A key outlives its entry. It is bound to what was sent with it (a digest) and to the fate of the
sample, so that sending it again never gets an answer that is not true.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from verse.durable.entry import Statement
from verse.durable.errors import KeyUsed
from verse.types import Refused

KEYS_KEPT = 1_000_000  # they outlive their entries, but not for ever
SET = "UPDATE keys SET {}, crc=key_crc(key, seq, {}) WHERE {}"


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """What is known of a key. ``fate`` is "kept", "refused", "undone" or "forgotten"; ``content``
    is the digest of what came with it, None if that is not known (any more)."""

    seq: int
    content: bytes | None
    fate: str

    def problem(self, content: bytes) -> Exception | None:
        """Why a sample of this content cannot be answered with "learned"; None if it can.

        >>> IdempotencyKey(7, b"mug", "kept").problem(b"mug") is None
        True
        """
        if self.content is not None and self.content != content:
            return KeyUsed(
                f"this key was used for another sample (number {self.seq}): send it with a key "
                "of its own"
            )
        if self.fate == "refused":
            return Refused(
                f"sample {self.seq} was refused when this key came first; to try again, send it "
                "with another key"
            )
        if self.fate != "kept":
            return KeyUsed(
                f"sample {self.seq} was learned with this key and then {self.fate}; to learn it "
                "again, send it with another key"
            )
        return None


def short_key(key: str) -> bytes:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def key_crc(key: bytes, seq: int, content: bytes | None, label: str | None, fate: str) -> int:
    """Checksum of a row; SQL calls this function by the same name."""
    return zlib.crc32(repr((content, label, fate)).encode(), zlib.crc32(key, seq))


def insert(key: bytes, seq: int, content: bytes | None, label: Any, fate: str) -> Statement:
    """A new key; ``label`` is that of its sample, to find it when the class is forgotten."""
    return (
        "INSERT INTO keys VALUES (?1, ?2, ?3, ?4, ?5, key_crc(?1, ?2, ?3, ?4, ?5))",
        (key, seq, content, None if label is None else json.dumps(label), fate),
    )


def set_fate(seqs: Iterable[int], fate: str) -> Iterator[Statement]:
    """What became of samples."""
    for seq in seqs:
        if fate == "forgotten":
            yield (
                SET.format("fate=?1, content=NULL, label=NULL", "NULL, NULL, ?1", "seq=?2"),
                (
                    fate,
                    seq,
                ),
            )
        else:
            yield SET.format("fate=?1", "content, label, ?1", "seq=?2"), (fate, seq)


def relabel_keys(label: Any, new: Any) -> Statement:
    """The samples of a class belong to another label now; None: to no one, they are forgotten."""
    old = json.dumps(label)
    if new is None:
        fate = "CASE fate WHEN 'kept' THEN 'forgotten' ELSE fate END"
        values = f"fate={fate}, content=NULL, label=NULL"
        return SET.format(values, f"NULL, NULL, {fate}", "label=?1"), (old,)
    return SET.format("label=?1", "content, ?1, fate", "label=?2"), (json.dumps(new), old)


def prune(position: int) -> Statement:
    """The oldest go."""
    return "DELETE FROM keys WHERE seq <= ?", (position - KEYS_KEPT,)
