"""Memory budgets: words (``3MB``, ``200``, ``20 per class``, ``4%``) and numbers of samples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral
from typing import TypedDict

from verse.types import BadSetting

FORMS = (
    "bytes (3MB, 64kB), a number of samples (200), 20 per class (grows with every new class), "
    "20 x classes (room for all classes of a recorded stream from the start), or a share of a "
    "recorded stream (4%)"
)
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class Budget(TypedDict):
    """The keyword arguments of a memory; with several, the smallest holds."""

    capacity: int | None
    byte_limit: int | None
    per_class: int | None


def budget(
    text: int | str | None,
    *,
    stream_length: int | None = None,
    classes: int | None = None,
    byte_limit: int | None = None,
    per_class: int | None = None,
) -> Budget:
    """The limits that a capacity stands for, together with limits given as numbers. (With a total
    number of samples, ``per_class`` is ignored.) ``stream_length`` and ``classes`` are those of a
    recorded stream.

    >>> budget("20 x classes", classes=8)["capacity"]
    160
    >>> budget("4%", stream_length=2304)["capacity"], budget("20 per class")["per_class"]
    (92, 20)
    >>> budget("3MB")
    {'capacity': None, 'byte_limit': 3000000, 'per_class': None}
    """
    found = Budget(capacity=None, byte_limit=byte_limit, per_class=per_class)
    if text is None:
        return found
    if not isinstance(text, str):  # the memory itself refuses what is no number of samples
        return Budget(capacity=text, byte_limit=byte_limit, per_class=None)
    number = r"(\d{1,15}(?:\.\d+)?)"  # of more digits nothing here can count
    if match := re.fullmatch(rf"{number}\s*(B|kB|MB|GB)", text, re.IGNORECASE):
        limit = _positive(int(float(match[1]) * _UNITS[match[2].upper()]), text)
        found["byte_limit"] = limit if byte_limit is None else min(limit, byte_limit)
    elif match := re.fullmatch(r"(\d{1,15})\s*(?:/|per)\s*class", text):
        limit = _positive(int(match[1]), text)
        found["per_class"] = limit if per_class is None else min(limit, per_class)
    elif match := re.fullmatch(r"(\d{1,15})\s*[x×*]\s*classes", text):
        found["capacity"] = _positive(int(match[1]), text) * _known(
            classes, "number of classes", text
        )
    elif match := re.fullmatch(rf"{number}\s*%", text):
        found["capacity"] = _share(float(match[1]), stream_length, text)
    elif re.fullmatch(r"\d{1,15}", text):
        found["capacity"] = _positive(int(text), text)
    else:
        raise BadSetting(f"capacity {text!r:.80}: give {FORMS}")
    return found


def _known(value: int | None, what: str, text: str) -> int:
    if value is None:
        raise BadSetting(
            f"capacity {text!r}: the {what} of a live stream is not known, give bytes, a number "
            "of samples, or 20 per class"
        )
    return value


def _share(percent: float, stream_length: int | None, text: str) -> int:
    length = _known(stream_length, "length", text)
    if not 0 < percent <= 100:
        raise BadSetting(f"capacity {text!r}: a share lies above 0 and up to 100 %")
    return max(1, round(percent / 100 * length))


def _positive(value: int, text: str) -> int:
    if value < 1:
        raise BadSetting(f"capacity {text!r} holds nothing: give {FORMS}")
    return value


def is_whole(value: object, *, least: int) -> bool:
    """Is it a whole number of at least ``least`` that fits 64 bits? True and False are none."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return least <= int(value) < 2**63


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a memory, at least one of them; with several, the smallest holds.

    Parameters
    ----------
    capacity
        Samples in all.
    byte_limit
        Bytes in all.
    per_class
        Samples for every class there is.

    >>> Bounds(capacity=100, per_class=20).samples(classes=3, item_bytes=4)
    60
    """

    capacity: int | None = None
    byte_limit: int | None = None
    per_class: int | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("capacity", "byte_limit", "per_class")}
        if all(value is None for value in given.values()):
            raise BadSetting("a memory needs a budget: capacity, byte_limit or per_class")
        for name, value in given.items():
            if value is not None and not is_whole(value, least=1):
                raise BadSetting(f"{name} must be a whole number of at least 1, not {value!r}")

    def require_room(self, item_bytes: int) -> None:
        """Refuse a budget that has no room for a single sample."""
        if self.byte_limit is not None and self.byte_limit < item_bytes:
            raise BadSetting(
                f"byte_limit {self.byte_limit} is less than one sample ({item_bytes} bytes)"
            )

    def samples(self, classes: int, item_bytes: int) -> int:
        """How many samples of ``item_bytes`` each fit with this number of classes."""
        bounds = [self.capacity] if self.capacity is not None else []
        if self.byte_limit is not None:
            # at least one: a field that follows the head may outgrow a budget of one sample
            bounds.append(max(1, self.byte_limit // item_bytes))
        if self.per_class is not None:
            bounds.append(self.per_class * max(1, classes))
        return min(bounds)
