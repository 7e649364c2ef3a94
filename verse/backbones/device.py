"""Which device a network computes on: a name becomes a device that is there, or a clear error."""

from __future__ import annotations

from collections.abc import Callable

import torch

from verse.configuration import DEVICES
from verse.types import BadSetting


def resolve_device(device: str) -> str:
    """ "auto" → "cuda", "mps" or "cpu", the first that is there; one that is not is refused.

    >>> resolve_device("cpu")
    'cpu'
    """
    if device not in DEVICES:
        raise BadSetting(f"device {device!r}: use one of {', '.join(DEVICES)}")
    there: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    if device == "auto":
        return next((name for name, is_there in there.items() if is_there()), "cpu")
    if device in there and not there[device]():
        raise BadSetting(
            f"torch sees no {device} device here: use device='cpu' or 'auto', or install a torch "
            f"that supports {device} (verse info shows what it sees)"
        )
    return device
