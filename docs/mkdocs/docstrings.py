"""Docstrings as Markdown: examples and indented blocks become code, roles plain names."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Called by griffe for everything that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring before it is shown."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text: str) -> str:
    r"""The docstring as Markdown.

    >>> print(markdown("Adds, as in::\n\n    a + b\n\n>>> 1 + 1\n2"))
    Adds, as in:
    <BLANKLINE>
        a + b
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    text = re.sub(r":(?:mod|class|func|meth):`~?([^`]+)`", r"`\1`", text)
    text = re.sub(r"::$", ":", text, flags=re.M)
    return re.sub(r"^>>> .*?(?=^\s*$|\Z)", fenced, text, flags=re.M | re.S)


def fenced(example: re.Match[str]) -> str:
    """One run of example lines as a code block."""
    return f"```pycon\n{example[0].rstrip()}\n```\n"
