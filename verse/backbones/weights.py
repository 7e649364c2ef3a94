"""Where pretrained weights come from: a path, the cache directory, or a checked download."""

from __future__ import annotations

import hashlib
import math
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from verse.paths import cache_directory, open_atomic, sha256
from verse.types import BadSetting, BadState

RANDOM = "random"
"""The value of ``weights`` that needs no file: the same random network on every machine."""

TIMEOUT = 30.0
CHUNK = 1 << 20

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all (0 when the server does not say)."""


@dataclass(frozen=True)
class PublishedWeights:
    """Files that hold the same published weights; each is known by its sha256."""

    url: str
    files: Mapping[str, str]  # file name → sha256


def find_weights(
    published: PublishedWeights, *, backbone: str, progress: Progress | None = None
) -> Path:
    """A published file from the cache directory, downloading it when it is not there."""
    folder = cache_directory()
    for name, expected in published.files.items():
        path = folder / name
        if path.is_file():
            if sha256(path) != expected:
                raise BadState(f"{path} is damaged (its sha256 is not {expected}): delete it")
            return path
    name = published.url.rsplit("/", 1)[1]
    try:
        return download(published.url, folder / name, published.files[name], progress)
    except (OSError, urllib.error.URLError) as error:
        raise BadSetting(
            f"no weights for {backbone}: the download failed ({error}). Three ways to get them: "
            f"(1) pass weights=PATH to a file; (2) put one of {', '.join(published.files)} into "
            f"{folder} (VERSE_CACHE moves it); (3) go online, so that {published.url} can be "
            f"downloaded. weights='{RANDOM}' runs without, for measuring speed only."
        ) from error


def download(url: str, path: Path, expected: str, progress: Progress | None = None) -> Path:
    """Fetch a file, check its hash, and only then give it its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, done = hashlib.sha256(), 0
    with open_atomic(path) as file, urllib.request.urlopen(url, timeout=TIMEOUT) as response:
        total = int(response.headers.get("Content-Length") or 0)
        while chunk := response.read(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            (progress or _show)(done, total)
        if digest.hexdigest() != expected:
            raise BadState(f"{url} gave a file whose sha256 is not {expected}: try again")
    return path


def _show(done: int, total: int) -> None:
    share = f"{100 * done // total:3d} %" if total else f"{done >> 20} MB"
    sys.stderr.write(f"\rdownloading weights: {share}" + ("\n" if done == total else ""))
    sys.stderr.flush()


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors or PyTorch file; nothing in it is executed."""
    if not path.is_file():
        raise BadSetting(f"no weights at {path}")
    try:
        if path.suffix == ".safetensors":
            return safetensors.torch.load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zip, pickle and safetensors each have their own errors
        reason = " ".join(str(error).partition("\n")[0].split())[:200]
        raise BadState(f"cannot read weights from {path}: {reason}") from error
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise BadState(f"{path} is not a state dict of tensors")
    return state


def fill(parts: Mapping[str, nn.Module], state: Mapping[str, Tensor], path: Path) -> None:
    """Copy tensors named ``part.rest`` into the parts; every one must be there, with its shape."""
    for part, module in parts.items():
        for name, tensor in module.state_dict(prefix=f"{part}.").items():
            given = state.get(name)
            if given is None and name.endswith("num_batches_tracked"):
                continue
            if given is None or given.shape != tensor.shape:
                found = "is missing" if given is None else f"has shape {tuple(given.shape)}"
                raise BadState(f"{path} does not fit: {name} {found}")
            tensor.copy_(given)  # into the module's own, aligned storage


def randomise(parts: Mapping[str, nn.Module], seed: int = 0) -> None:
    """He initialisation from a fixed seed: same shapes and cost as the real network."""
    generator = torch.Generator().manual_seed(seed)
    for module in parts.values():
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d):
                fan = layer.weight[0].numel()
                layer.weight.data.normal_(0, math.sqrt(2 / fan), generator=generator)
