"""``verse info``: what a bug report needs to say about a machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from verse import __version__
from verse.cli.output import json_option, print_json, print_table, result_only
from verse.extras import EXTRAS

PACKAGES = ("torch", "numpy", "onnxruntime", "safetensors", "pillow", "click", "rich")


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Show versions, devices and caches, for bug reports."""
    with result_only(as_json):
        facts = {
            "verse": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "executable": sys.executable,
            "packages": {name: version(name) for name in PACKAGES},
            "extras": {
                extra: {package: version(package) for package in packages.values()}
                for extra, packages in EXTRAS.items()
            },
            "device": device(),
            "engines": engines(),
            "caches": caches(),
        }
    if as_json:
        print_json(facts)
    else:
        print_table([{"what": what, "value": value} for what, value in lines(facts)])


def version(package: str) -> str | None:
    """The installed version of a package, None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def device() -> dict[str, object]:
    """The processor, its threads and vector instructions, and any accelerator torch sees."""
    import torch

    accelerators = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        accelerators.append("mps")
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "vector_instructions": torch.backends.cpu.get_cpu_capability(),
        "accelerators": accelerators,
    }


def engines() -> dict[str, list[str]]:
    """The engines that can run the frozen network G, with their providers."""
    import onnxruntime
    import torch

    libraries = (torch.backends.mkl, torch.backends.mkldnn, torch.backends.openmp)
    return {
        "onnxruntime": list(onnxruntime.get_available_providers()),
        "torch": [
            library.__name__.rpartition(".")[2] for library in libraries if library.is_available()
        ],
    }


def caches() -> dict[str, object]:
    """Where downloaded weights and computed features are kept, and how large each part is."""
    from verse.paths import cache_directory

    directory = cache_directory()
    parts = sorted(directory.iterdir()) if directory.is_dir() else []
    return {"directory": directory} | {f"{part.name} bytes": size(part) for part in parts}


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def lines(facts: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """The facts for people: one line each, nested names joined.

    >>> list(lines({"device": {"cores": 2, "accelerators": []}, "ray": None}))
    [('device cores', '2'), ('device accelerators', 'none'), ('ray', 'not installed')]
    """
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from lines(value, f"{before}{name} ")
        elif isinstance(value, list):
            yield before + name, ", ".join(map(str, value)) or "none"
        else:
            yield before + name, "not installed" if value is None else str(value)
