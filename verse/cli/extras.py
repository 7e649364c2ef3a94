"""Which optional package belongs to which extra, so that its absence names the way to get it."""

from __future__ import annotations

from verse.types import MissingExtra

EXTRAS = {
    "serve": {
        "fastapi": "fastapi",
        "httpx2": "httpx2",
        "prometheus_client": "prometheus-client",
        "python_multipart": "python-multipart",
        "uvicorn": "uvicorn",
    },
    "report": {"jinja2": "jinja2", "matplotlib": "matplotlib"},
    "ray": {"ray": "ray"},
    "compat": {"river": "river", "sklearn": "scikit-learn"},
    "video": {"av": "av"},
    "faiss": {"faiss": "faiss-cpu"},
    "qp": {"daqp": "daqp"},
    "tensorboard": {"tensorboard": "tensorboard"},
}
"""Extra → the module each of its packages is imported by → the package."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """The error that names the extra, or None where the module belongs to none of them.

    >>> print(missing_extra(ModuleNotFoundError(name="fastapi.responses")))
    this needs the package fastapi: pip install 'verse[serve]'
    """
    module = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if module in packages:
            return MissingExtra(packages[module], extra)
    return None
