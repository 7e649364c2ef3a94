"""Labels as they come from outside, and as they are shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from verse.labels import check_label
from verse.serve.errors import NotFound
from verse.types import BadLabel, Label

LONGEST_LABEL = 100
UNSHOWN = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control, surrogate, line and paragraph ends


def clean_label(text: str) -> str:
    """A label as the service takes it; what could harm a page, a log or a path is refused.

    >>> clean_label(" mug ")
    'mug'
    >>> clean_label("../mug")
    Traceback (most recent call last):
    ...
    verse.types.BadLabel: invalid label: it must not contain / or \\
    """
    label = unicodedata.normalize("NFC", text).strip()
    if len(label) > LONGEST_LABEL:
        raise BadLabel(f"invalid label: at most {LONGEST_LABEL} characters, not {len(label)}")
    if "/" in label or "\\" in label:
        raise BadLabel("invalid label: it must not contain / or \\")
    if label in (".", ".."):
        raise BadLabel("invalid label: it must not be . or ..")
    # control, private and unassigned characters, and those that turn text around; a joiner is part
    # of some emoji
    if any(unicodedata.category(c).startswith("C") and c != "\u200d" for c in label):
        raise BadLabel("invalid label: it must not contain control or invisible characters")
    check_label(label)
    return label


def escape_label(label: Label) -> Label:
    """A label as it is sent: what is no valid text (of an old folder) is escaped.

    >>> escape_label("mug"), escape_label(7), escape_label("caf\\udce9"), escape_label("a\\u2028b")
    ('mug', 7, 'caf\\\\udce9', 'a\\\\u2028b')
    """
    if isinstance(label, int):
        return label
    text = "".join(_escape(c) if unicodedata.category(c) in UNSHOWN else c for c in label)
    try:
        return check_label(text)
    except BadLabel:  # nothing of it can be seen
        return _escape(text) or "\\"


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode()


def find_label(labels: Iterable[Label], given: str) -> Label:
    """The class that is shown as ``given``; one taught as a number is found by its digits.

    >>> find_label(["mug", 7, "caf\\udce9"], "7")
    7
    """
    known = list(labels)
    if given in known:
        return given
    for label in known:
        if str(escape_label(label)) == given:
            return label
    raise NotFound(f"class {given!r} not found")
