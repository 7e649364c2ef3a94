"""Memory budgets in words: ``4%`` of the stream, ``200`` samples, ``20/class``, ``5MB``."""

from __future__ import annotations

import re
from typing import Any

from verse.types import BadSetting

FORMS = "a number of samples (200), a share of the stream (4%), 20/class, or bytes (5MB)"
_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


def budget(text: str, stream_length: int) -> dict[str, Any]:
    """The keyword arguments of a memory.

    >>> budget("4%", 2304), budget("20/class", 0), budget("5MB", 0)
    ({'capacity': 92}, {'per_class': 20}, {'byte_limit': 5000000})
    """
    number = r"(\d+(?:\.\d+)?)"
    if match := re.fullmatch(rf"{number}\s*%", text):
        share = float(match[1])
        if not 0 < share <= 100:
            raise BadSetting(f"capacity {text!r}: a share lies above 0 and up to 100 %")
        return {"capacity": max(1, round(share / 100 * stream_length))}
    if match := re.fullmatch(r"(\d+)\s*/\s*class", text):
        return {"per_class": _positive(int(match[1]), text)}
    if match := re.fullmatch(rf"{number}\s*(kB|MB|GB)", text):
        return {"byte_limit": _positive(int(float(match[1]) * _UNITS[match[2]]), text)}
    if text.isdecimal():
        return {"capacity": _positive(int(text), text)}
    raise BadSetting(f"capacity {text!r}: give {FORMS}")


def _positive(value: int, text: str) -> int:
    if value < 1:
        raise BadSetting(f"capacity {text!r} holds nothing: give {FORMS}")
    return value
