"""How many samples a budget has room for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from verse.types import BadSetting


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
        """How many samples of so many bytes fit while there are so many classes."""
        bounds = [self.capacity] if self.capacity is not None else []
        if self.byte_limit is not None:
            # at least one: a field that follows the head may outgrow a budget of one sample
            bounds.append(max(1, self.byte_limit // item_bytes))
        if self.per_class is not None:
            bounds.append(self.per_class * max(1, classes))
        return min(bounds)
