"""Teach a vision model new classes from a live stream, one frame at a time.

Public names load on first use (PEP 562), so that ``import verse`` takes milliseconds and
never imports torch.

>>> import verse
>>> "StreamClassifier" in dir(verse)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verse.classifier import StreamClassifier
    from verse.durable import open

__version__ = "0.1.0"

__all__ = ["StreamClassifier", "open", "__version__"]

_NAMES = {
    "StreamClassifier": "verse.classifier",
    "open": "verse.durable",
}
_MODULES = frozenset(
    {
        "backbones",
        "checkpoint",
        "checks",
        "classifier",
        "compat",
        "datasets",
        "durable",
        "evaluate",
        "experiments",
        "export",
        "extras",
        "features",
        "images",
        "kernels",
        "learners",
        "memory",
        "metrics",
        "realtime",
        "reports",
        "serve",
        "streams",
        "trackers",
        "types",
        "video",
    }
)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
        globals()[name] = value  # the next access no longer comes here
        return value
    if name in _MODULES:
        return importlib.import_module(f"verse.{name}")
    raise AttributeError(f"module 'verse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
