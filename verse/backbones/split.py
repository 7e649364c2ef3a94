"""Any user's network as a backbone: traced, and cut before a named layer."""

from __future__ import annotations


def split() -> None:
    """Not yet."""
