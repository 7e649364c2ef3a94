"""Budgets in words: one parser for the classifier, runs and the command line."""

from __future__ import annotations

import pytest

from verse.memory import Reservoir
from verse.memory.budget import budget
from verse.types import BadSetting

NONE = {"capacity": None, "byte_limit": None, "per_class": None}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("3MB", {"byte_limit": 3_000_000}),
        ("64kB", {"byte_limit": 64_000}),
        ("1.5 mb", {"byte_limit": 1_500_000}),
        ("268435456B", {"byte_limit": 268_435_456}),
        ("230", {"capacity": 230}),
        (230, {"capacity": 230}),
        ("4%", {"capacity": 92}),
        ("0.001 %", {"capacity": 1}),
        ("20/class", {"per_class": 20}),
        ("23 per class", {"per_class": 23}),
        ("23 x classes", {"capacity": 184}),
        ("23×classes", {"capacity": 184}),
        (None, {}),
    ],
)
def test_capacity_in_words(text: int | str | None, meaning: dict[str, int]) -> None:
    assert budget(text, stream_length=2304, classes=8) == NONE | meaning


def test_limits_beside_it() -> None:
    assert budget("3MB", per_class=20, byte_limit=10**6) == NONE | {
        "per_class": 20,
        "byte_limit": 10**6,
    }
    assert budget("20 per class", per_class=5, byte_limit=10**6) == NONE | {
        "per_class": 5,
        "byte_limit": 10**6,
    }
    # classifiers of before were saved with a number of samples and a share a class that was unused
    assert budget(500, per_class=20) == NONE | {"capacity": 500}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lots", "give bytes"),
        ("9" * 40, "give bytes"),
        ("9" * 400 + "MB", "give bytes"),
        ("9" * 40 + " per class", "give bytes"),
        ("0", "holds nothing"),
        ("0.4B", "holds nothing"),
        ("0 per class", "holds nothing"),
        ("4%", "length of a live stream is not known"),
        ("20 x classes", "number of classes of a live stream is not known"),
    ],
)
def test_nonsense_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        budget(text)


def test_a_capacity_beyond_64_bits_is_refused() -> None:
    with pytest.raises(BadSetting, match="capacity must be a whole number"):
        Reservoir(10**30)
