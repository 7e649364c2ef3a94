"""Teach a vision model new classes from a live stream, one frame at a time.

Public names load on first use (PEP 562), so that ``import verse`` takes milliseconds and
never imports torch.

Belongs into this folder: the classifier and what several folders need. Does not belong here: what
only one folder needs; docs/architecture.md lists the folders.

>>> import verse
>>> "StreamClassifier" in dir(verse)
True
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verse.classifier import StreamClassifier
    from verse.configuration import Configuration
    from verse.durable import open
    from verse.portable import merge

# Threads that wait must sleep, not spin: on a busy machine spinning takes the core from the thread
# that is waited for (a step of a millisecond then takes twenty). OpenMP reads it when torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# The library behind NumPy has threads of its own, which always spin. verse gives it small products
# alone (``verse.network.products``), for which a second thread only costs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"

__all__ = ["Configuration", "StreamClassifier", "merge", "open", "__version__"]

_NAMES = {
    "Configuration": "verse.configuration",
    "StreamClassifier": "verse.classifier",
    "merge": "verse.portable",
    "open": "verse.durable",
}
_MODULES = frozenset(
    {
        "ahead",
        "backbones",
        "benchmarks",
        "build",
        "checkpoint",
        "checks",
        "classifier",
        "compat",
        "configuration",
        "datasets",
        "doctor",
        "durable",
        "evaluate",
        "experiments",
        "export",
        "extras",
        "feature_classifier",
        "features",
        "images",
        "kernels",
        "labels",
        "learners",
        "memory",
        "metrics",
        "network",
        "paths",
        "portable",
        "realtime",
        "reports",
        "saved",
        "serve",
        "settings",
        "stateful",
        "streams",
        "suggestions",
        "trackers",
        "types",
        "video",
        "watch",
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
