"""What a row of the journal is, and the checksums by which damage is noticed."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import Any

from verse.durable.errors import damage_error

Statement = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One operation. ``fate`` is "kept", "refused", "undone" or "forgotten"; unless it is "kept",
    only the number remains."""

    seq: int
    kind: str
    arguments: dict[str, Any]
    z: bytes | None
    fate: str


def checksum(*parts: object) -> bytes:
    """Sixteen bytes over the parts and their lengths.

    >>> checksum("ab", "c") == checksum("a", "bc")
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(struct.pack("<Q", len(raw)))
        digest.update(raw)
    return digest.digest()


def as_row(entry: JournalEntry) -> tuple[Any, ...]:
    text = json.dumps(entry.arguments, sort_keys=True)
    check = checksum(entry.seq, entry.kind, text, entry.z or b"", entry.fate)
    return entry.seq, entry.kind, text, entry.z, entry.fate, check


def strike_entry(seq: int, fate: str) -> Statement:
    """The row of an entry of which only the number remains."""
    row = as_row(JournalEntry(seq, "learn", {}, None, fate))
    return "REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)", row


def check_entry(row: tuple[Any, ...]) -> JournalEntry:
    seq, kind, text, z, fate, check = row
    if checksum(seq, kind, text, z or b"", fate) != check:
        raise damage_error(f"entry {seq}")
    return JournalEntry(seq, kind, json.loads(text), z, fate)


def meta_row(name: str, value: Any) -> Statement:
    text = json.dumps(value)
    return "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, text, checksum(name, text))
