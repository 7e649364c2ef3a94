"""The part of the ONNX file format we write: protocol-buffer messages as bytes.

Writing them directly keeps ``onnx`` and ``onnxscript`` out of the dependencies and a start at
milliseconds. Field numbers are those of onnx.proto3 (IR version 8, operator set 17); the tests
read the result back with the ``onnx`` package and its checker.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IR_VERSION, OPSET = 8, 17
TYPES = {"float32": 1, "uint8": 2, "int64": 7, "float16": 10}
Attribute: TypeAlias = int | float | str | Sequence[int]


def write_varint(n: int) -> bytes:
    """A whole number in as few bytes as it needs."""
    n &= (1 << 64) - 1  # negative numbers are ten bytes long
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def write_int(field: int, n: int) -> bytes:
    """A field that is a whole number."""
    return write_varint(field << 3) + write_varint(n)


def write_bytes(field: int, data: bytes | str) -> bytes:
    """A field that is a text, bytes or a message."""
    data = data.encode() if isinstance(data, str) else data
    return write_varint(field << 3 | 2) + write_varint(len(data)) + data


def tensor(name: str, array: npt.NDArray[np.generic]) -> bytes:
    """A TensorProto with little-endian raw data."""
    dims = b"".join(write_int(1, d) for d in array.shape)
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return dims + write_int(2, TYPES[array.dtype.name]) + write_bytes(8, name) + write_bytes(9, raw)


def _attribute(name: str, value: Attribute) -> bytes:
    head = write_bytes(1, name)
    if isinstance(value, int):
        return head + write_int(3, value) + write_int(20, 2)
    if isinstance(value, float):
        return head + write_varint(2 << 3 | 5) + struct.pack("<f", value) + write_int(20, 1)
    if isinstance(value, str):
        return head + write_bytes(4, value) + write_int(20, 3)
    return head + b"".join(write_int(8, i) for i in value) + write_int(20, 7)


def node(
    op: str,
    inputs: Sequence[str],
    output: str,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    more: Sequence[str] = (),
) -> bytes:
    """A NodeProto; its first output also names it, ``more`` are further ones."""
    message = b"".join(write_bytes(1, i) for i in inputs)
    message += b"".join(write_bytes(2, o) for o in (output, *more))
    message += write_bytes(3, output) + write_bytes(4, op)
    for name, value in (attributes or {}).items():
        message += write_bytes(5, _attribute(name, value))
    return message


def value(name: str, dtype: str, shape: Sequence[int | str]) -> bytes:
    """A ValueInfoProto: a name, an element type, and sizes (a string is a free one)."""
    dims = b"".join(
        write_bytes(1, write_int(1, d) if isinstance(d, int) else write_bytes(2, d)) for d in shape
    )
    kind = write_int(1, TYPES[dtype]) + write_bytes(2, dims)
    return write_bytes(1, name) + write_bytes(2, write_bytes(1, kind))


def model(
    nodes: Sequence[bytes],
    initializers: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    metadata: Mapping[str, str],
) -> bytes:
    """A ModelProto, ready to be a file."""
    graph = [write_bytes(1, n) for n in nodes] + [write_bytes(2, "verse")]
    graph += [write_bytes(5, t) for t in initializers]
    graph += [write_bytes(11, i) for i in inputs] + [write_bytes(12, o) for o in outputs]
    entries = [write_bytes(14, write_bytes(1, k) + write_bytes(2, v)) for k, v in metadata.items()]
    return b"".join(
        [
            write_int(1, IR_VERSION),
            write_bytes(2, "verse"),
            write_bytes(7, b"".join(graph)),
            write_bytes(8, write_bytes(1, "") + write_int(2, OPSET)),
            *entries,
        ]
    )
