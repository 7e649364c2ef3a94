"""What the command line says when an optional package is missing."""

from __future__ import annotations

from verse.extras import EXTRAS
from verse.types import MissingExtra

__all__ = ["EXTRAS", "find_missing_extra"]


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
