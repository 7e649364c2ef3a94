"""Working storage that lives from one step to the next.

A buffer of some megabytes that is allocated anew costs its page faults each time, which on the
paper's network is a tenth of a step. Every thread has its own, so a reader may answer while the
writer learns.
"""

from __future__ import annotations

import threading
from math import prod

import torch
from torch import Tensor


class Scratch(threading.local):
    """Buffers by name; what is in one stays until the same name is taken again.

    >>> Scratch().take("a", (2, 3), torch.device("cpu")).shape
    torch.Size([2, 3])
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.device], Tensor] = {}
        self.owner: dict[str, object] = {}  # name → whoever's values are in it

    def take(self, name: str, shape: tuple[int, ...], device: torch.device) -> Tensor:
        """A float32 buffer with any content; it begins at an aligned address."""
        n = prod(shape)
        buffer = self._buffers.get((name, device))
        if buffer is None or buffer.numel() < n:
            buffer = self._buffers[name, device] = torch.empty(n, device=device)
            self.owner.pop(name, None)
        return buffer[:n].view(shape)


scratch = Scratch()
"""What all fast forms share."""
