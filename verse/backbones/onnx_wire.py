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
TYPES = {"float32": 1, "uint8": 2, "int64": 7}
Attribute: TypeAlias = int | float | str | Sequence[int]


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1  # negative numbers are ten bytes long
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _int(field: int, n: int) -> bytes:
    return _varint(field << 3) + _varint(n)


def _bytes(field: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def tensor(name: str, array: npt.NDArray[np.generic]) -> bytes:
    """A TensorProto with little-endian raw data."""
    dims = b"".join(_int(1, d) for d in array.shape)
    raw = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return dims + _int(2, TYPES[array.dtype.name]) + _bytes(8, name) + _bytes(9, raw)


def _attribute(name: str, value: Attribute) -> bytes:
    head = _bytes(1, name)
    if isinstance(value, int):
        return head + _int(3, value) + _int(20, 2)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1)
    if isinstance(value, str):
        return head + _bytes(4, value) + _int(20, 3)
    return head + b"".join(_int(8, i) for i in value) + _int(20, 7)


def node(
    op: str, inputs: Sequence[str], output: str, attributes: Mapping[str, Attribute] | None = None
) -> bytes:
    """A NodeProto with one output, which also names it."""
    message = b"".join(_bytes(1, i) for i in inputs) + _bytes(2, output)
    message += _bytes(3, output) + _bytes(4, op)
    for name, value in (attributes or {}).items():
        message += _bytes(5, _attribute(name, value))
    return message


def value(name: str, dtype: str, shape: Sequence[int | str]) -> bytes:
    """A ValueInfoProto: a name, an element type, and sizes (a string is a free one)."""
    dims = b"".join(_bytes(1, _int(1, d) if isinstance(d, int) else _bytes(2, d)) for d in shape)
    kind = _int(1, TYPES[dtype]) + _bytes(2, dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, kind))


def model(
    nodes: Sequence[bytes],
    initializers: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    metadata: Mapping[str, str],
) -> bytes:
    """A ModelProto, ready to be a file."""
    graph = [_bytes(1, n) for n in nodes] + [_bytes(2, "verse")]
    graph += [_bytes(5, t) for t in initializers]
    graph += [_bytes(11, i) for i in inputs] + [_bytes(12, o) for o in outputs]
    entries = [_bytes(14, _bytes(1, k) + _bytes(2, v)) for k, v in metadata.items()]
    return b"".join(
        [
            _int(1, IR_VERSION),
            _bytes(2, "verse"),
            _bytes(7, b"".join(graph)),
            _bytes(8, _bytes(1, "") + _int(2, OPSET)),
            *entries,
        ]
    )
