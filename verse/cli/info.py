"""``verse info``: what a bug report needs to say about a machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import click

from verse import __version__
from verse.cli.output import json_option, print_json, print_table, result_only

PACKAGES = ("torch", "numpy", "onnxruntime", "onnx", "safetensors", "pillow", "click", "rich")
EXTRAS = {
    "serve": ("fastapi", "uvicorn", "python-multipart", "prometheus-client", "httpx"),
    "report": ("matplotlib", "jinja2"),
    "ray": ("ray",),
    "compat": ("river", "scikit-learn"),
    "video": ("av",),
    "faiss": ("faiss-cpu",),
    "qp": ("daqp",),
    "tensorboard": ("tensorboard",),
}


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Show versions, devices, caches and engines, for bug reports."""
    with result_only(as_json):
        facts = {
            "verse": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "machine": platform.machine(),
            "executable": sys.executable,
            "packages": {name: version(name) for name in PACKAGES},
            "extras": {
                extra: {name: version(name) for name in names} for extra, names in EXTRAS.items()
            },
            "device": device(),
            "engines": engines(),
        }
    if as_json:
        print_json(facts)
    else:
        print_table([{"what": key, "value": sentence(value)} for key, value in facts.items()])


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

    libraries = {
        "mkl": torch.backends.mkl.is_available(),
        "onednn": torch.backends.mkldnn.is_available(),
        "openmp": torch.backends.openmp.is_available(),
    }
    return {
        "onnxruntime": list(onnxruntime.get_available_providers()),
        "torch": [name for name, present in libraries.items() if present],
    }


def sentence(value: object) -> str:
    """A value of the facts as one line for people."""
    if isinstance(value, dict):
        return "; ".join(f"{key} {sentence(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not installed" if value is None else str(value)
