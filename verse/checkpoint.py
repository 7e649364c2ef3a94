"""One file that holds a whole learner: safetensors with its JSON in the metadata, no pickle.

Compatibility: ``FORMAT`` is a number. A newer program reads every older format back to 1; an older
program refuses a newer one. Writing is atomic: a new file is complete on disk before it takes the
name, so that a crash leaves the old file or the new one, never a mixture.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import platform
import struct
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from verse.paths import write_atomic
from verse.types import BadState

FORMAT = 1


def circumstances() -> dict[str, str]:
    """What must be equal for a resumed run to be equal to the last bit."""
    return {
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "onnxruntime": _version("onnxruntime"),
        "threads": str(torch.get_num_threads()),
        "machine": platform.machine(),
        "processor": torch.backends.cpu.get_cpu_capability(),
    }


def differences(saved: dict[str, str], now: dict[str, str] | None = None) -> list[str]:
    """What has changed since, in words; empty when resuming is exact.

    ``now`` is ``circumstances()`` by default.
    """
    now = circumstances() if now is None else now
    # what an older version did not note is not known to have changed
    return [f"{k} was {saved[k]}, is {v}" for k, v in now.items() if saved.get(k, v) != v]


@functools.cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _checksum(tensors: dict[str, Tensor], document: str) -> str:
    """A hash over the document and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        t = tensors[name]
        digest.update(f"|{name}|{t.dtype}|{tuple(t.shape)}|".encode())
        digest.update(t.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def to_bytes(tensors: dict[str, Tensor], spec: dict[str, Any]) -> bytes:
    """The file's content: a plain safetensors file with a checksum over everything in it."""
    # A copy of each: safetensors refuses tensors that share storage, and views do.
    own = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    document = json.dumps(
        {"format": FORMAT, "spec": spec, "circumstances": circumstances()}, sort_keys=True
    )
    return save(own, {"verse": document, "sha256": _checksum(own, document)})


def from_bytes(content: bytes, origin: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, document). Refuses what is cut, altered or of a newer format."""
    try:
        tensors = load(content)
        (length,) = struct.unpack("<Q", content[:8])
        metadata = json.loads(content[8 : 8 + length])["__metadata__"]
        text, checksum = metadata["verse"], metadata["sha256"]
        document: dict[str, Any] = json.loads(text)
        version = int(document["format"])
        if not isinstance(document["spec"], dict):
            raise ValueError("it says nothing of what it holds")
        noted = document["circumstances"]
        if not isinstance(noted, dict) or not all(isinstance(v, str) for v in noted.values()):
            raise ValueError("it does not say where it was made")
    except (
        SafetensorError,
        struct.error,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise BadState(f"{origin} is damaged, cut short or no verse checkpoint: {error}") from error
    if version > FORMAT:
        raise BadState(
            f"{origin} has format {version}, this program reads up to {FORMAT}: upgrade verse"
        )
    if _checksum(tensors, text) != checksum:
        raise BadState(f"{origin} is damaged: its checksum does not match its content")
    return tensors, document


def write(path: str | Path, tensors: dict[str, Tensor], spec: dict[str, Any]) -> None:
    """Save atomically.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "state.verse"
    >>> write(file, {"w": torch.ones(2)}, {"name": "example"})
    >>> tensors, document = read(file)
    >>> tensors["w"].tolist(), document["spec"]["name"]
    ([1.0, 1.0], 'example')
    """
    write_atomic(Path(path), to_bytes(tensors, spec))


def read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load what ``write`` wrote."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise BadState(f"there is no file {path}") from None
    except OSError as error:
        raise BadState(f"cannot read {path}: {error}") from error
    return from_bytes(content, str(path))
