"""Suggestions for a name that is unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def find_similar(word: str, known: Iterable[str]) -> str | None:
    """The known name that is most like a word, if one is.

    >>> find_similar("resrvoir", ["fifo", "reservoir"])
    'reservoir'
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return near[0] if near else None


def suggest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known one, else all there are.

    >>> suggest("resrvoir", ["fifo", "reservoir"]), suggest("x", ["fifo", "reservoir"])
    ("did you mean 'reservoir'?", 'there are: fifo, reservoir')
    """
    known = list(known)
    near = find_similar(word, known)
    return f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"


def suggest_and_list(word: str, known: Iterable[str]) -> str:
    """The same, with all there are in any case.

    >>> suggest_and_list("x", ["fifo", "reservoir"])
    '. There are: fifo, reservoir'
    """
    known = list(known)
    near = find_similar(word, known)
    meant = f", did you mean {near!r}?" if near else "."
    return f"{meant} There are: {', '.join(known)}"
