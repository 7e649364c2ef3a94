"""The part of the ONNX file format we read: messages as lists of fields, nothing trusted.

External weights (files next to the model) are read into it here, so that nothing else ever opens a
path that a model names. Field numbers are those of onnx.proto3.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from verse.backbones.onnx_wire import write_bytes, write_int, write_varint
from verse.types import BadState

Field: TypeAlias = tuple[int, int | bytes]
LARGEST = 1 << 30
"""Bytes that a model may have, its weights included."""

DEPTH = 8  # graphs inside graphs

# message → {field number: the message inside}, as far as tensors may hide there
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_EXTERNAL, _LOCATION, _RAW = 13, 14, 9  # of a tensor


def read_fields(data: bytes) -> list[Field]:
    """The fields of a message in their order; bytes that are no message are refused.

    >>> read_fields(bytes([0x08, 0x96, 0x01, 0x12, 0x01, 0x41]))
    [(1, 150), (2, b'A')]
    """
    return list(_fields(memoryview(data)))


def _fields(data: memoryview) -> Iterator[Field]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind, -1)
        if number == 0 or length < 0 or at + length > len(data):
            raise BadState("this is not an ONNX model: a field of it is damaged")
        content = bytes(data[at : at + length])
        yield (number, content) if kind == 2 else (-number, content)  # negative: a fixed number
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise BadState("this is not an ONNX model: a number in it does not end")


def write_fields(fields: list[Field]) -> bytes:
    """The message again.

    >>> write_fields([(1, 150), (2, b"A")]).hex()
    '089601120141'
    """
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(write_int(number, value))
        elif number > 0:
            parts.append(write_bytes(number, value))
        else:
            parts.append(write_varint(-number << 3 | (1 if len(value) == 8 else 5)) + value)
    return b"".join(parts)


def read_model(path: Path) -> bytes:
    """A model with all its weights inside; refused where that is not safe or too large."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise BadState(f"{path} is not a file")
        if size > LARGEST:
            raise BadState(f"{path} has {size:,} bytes: at most {LARGEST:,} are read")
        data = path.read_bytes()
    except OSError as error:
        raise BadState(f"cannot read {path}: {error.strerror}") from error
    if data[:2] in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"\x1f\x8b"):
        raise BadState(f"{path} is an archive or a pickle, not an ONNX model: it is not opened")
    try:
        fields = read_fields(data)
        if not {1, 7, 8} <= {number for number, _ in fields}:
            raise BadState("this is not an ONNX model: it has no version or no graph")
        budget = [LARGEST - size]
        return write_fields(_inline("model", fields, path.resolve().parent, budget, DEPTH))
    except BadState as error:
        raise BadState(f"{path}: {error}") from error


def _inline(
    kind: str, fields: list[Field], folder: Path, budget: list[int], depth: int
) -> list[Field]:
    """The fields with every outside tensor's bytes inside; ``budget`` counts what may follow."""
    if kind == "tensor":
        return _tensor(fields, folder, budget)
    depth -= kind == "graph"
    if depth < 0:
        raise BadState("its graphs lie too deep inside each other")
    found: list[Field] = []
    for number, value in fields:
        inside = _INSIDE[kind].get(number)
        if inside is not None and isinstance(value, bytes):
            message = read_fields(value)
            changed = _inline(inside, message, folder, budget, depth)
            value = value if changed is message else write_fields(changed)
        found.append((number, value))
    return fields if found == fields else found


def _tensor(fields: list[Field], folder: Path, budget: list[int]) -> list[Field]:
    entries = [value for number, value in fields if number == _EXTERNAL]
    if not entries and (_LOCATION, 1) not in fields:
        return fields
    facts: dict[str, str] = {}
    for entry in entries:
        if not isinstance(entry, bytes):
            raise BadState("a tensor of it is damaged")
        pair = dict(read_fields(entry))
        facts[_text(pair.get(1))] = _text(pair.get(2))
    raw = _outside(facts, folder, budget)
    kept = [f for f in fields if f[0] not in (_EXTERNAL, _LOCATION, _RAW)]
    return [*kept, (_RAW, raw)]


def _outside(facts: dict[str, str], folder: Path, budget: list[int]) -> bytes:
    """The bytes of a tensor from a file in the model's own folder, never from elsewhere."""
    place = facts.get("location", "")
    file = (folder / place).resolve()
    if not place or not file.is_relative_to(folder) or not file.is_file():
        raise BadState(f"its weights lie at {place!r}, which is not a file in the model's folder")
    try:
        start, length = int(facts.get("offset", 0)), int(facts.get("length", -1))
    except ValueError as error:
        raise BadState("a tensor of it is damaged") from error
    size = file.stat().st_size
    length = size - start if length < 0 else length
    if start < 0 or length < 0 or start + length > size:
        raise BadState(f"{place} is too short for the weights that should be in it")
    budget[0] -= length
    if budget[0] < 0:
        raise BadState(f"with its weights it has more than {LARGEST:,} bytes")
    with file.open("rb") as stream:
        stream.seek(start)
        return stream.read(length)


def _text(value: int | bytes | None) -> str:
    if not isinstance(value, bytes):
        raise BadState("a tensor of it is damaged")
    return value.decode("utf-8", "replace")
