"""Folders of older versions, which took labels that are refused today."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from verse.labels import check_label


def teach_anyway(classifier: Any, image: object, label: str) -> int:
    """Learn an image under any label, as older versions did."""
    with any_label():
        return int(classifier.learn_one(image, label))


@contextmanager
def any_label() -> Iterator[None]:
    """No label is refused."""
    users = [m for m in list(sys.modules.values()) if vars(m).get("check_label") is check_label]
    patches = [patch.object(module, "check_label", lambda label: label) for module in users]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
