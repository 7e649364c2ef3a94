"""F, the plastic network: a body that makes an embedding, and a linear head that grows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from verse.types import BadSetting, Refused

PRECISIONS = ("float32", "bfloat16")
BATCHNORMS = ("frozen", "train")
SMALLEST_CAPACITY = 16


def head_capacity(n: int) -> int:
    """Rows allocated for ``n`` classes: a power of two, so that growth is rare.

    It follows from ``n`` alone, so a resumed head has the same layout as one that grew.

    >>> head_capacity(3), head_capacity(17)
    (16, 32)
    """
    return max(SMALLEST_CAPACITY, 1 << (n - 1).bit_length()) if n else SMALLEST_CAPACITY


class Head(nn.Module):
    """A linear layer whose outputs appear as classes arrive; those of unseen classes do not exist.

    ``weight`` is [capacity, d]; only the first ``n`` rows are live, the others are zero.

    Parameters
    ----------
    d
        Width of its input.

    >>> head = Head(4)
    >>> head(torch.zeros(2, 4)).shape
    torch.Size([2, 0])
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = d
        self.n = 0
        capacity = head_capacity(0)
        self.weight = nn.Parameter(torch.zeros(capacity, d))
        self.bias = nn.Parameter(torch.zeros(capacity))

    def forward(self, e: Tensor) -> Tensor:
        return nn.functional.linear(e, self.weight[: self.n], self.bias[: self.n])


class Plastic(nn.Module):
    """F = head ∘ body: features z [n, *z_shape] to scores [n, classes].

    ``precision`` and ``batchnorm`` belong to the network, not to the method that trains it:

    - ``precision="bfloat16"`` computes the body in bfloat16 from float32 master weights.
    - ``batchnorm="frozen"`` normalises with the pretrained statistics (scale and shift still
      learn); ``"train"`` uses the statistics of the batch.
    - ``channels_last`` says in which layout its convolutions are fastest (a builder measures it).

    Parameters
    ----------
    body
        All but the head.
    head
        The layer that grows.
    z_shape
        Of a feature.
    precision
        "float32", or "bfloat16" for the body.
    batchnorm
        "frozen" or "train".
    channels_last
        Is that layout faster?

    >>> F = Plastic(nn.Identity(), Head(4), z_shape=(4,))
    >>> F(torch.zeros(2, 4)).shape
    torch.Size([2, 0])
    """

    def __init__(
        self,
        body: nn.Module,
        head: Head,
        *,
        z_shape: tuple[int, ...],
        precision: str = "float32",
        batchnorm: str = "frozen",
        channels_last: bool = False,
    ) -> None:
        super().__init__()
        if precision not in PRECISIONS:
            raise BadSetting(f"precision {precision!r}: use one of {', '.join(PRECISIONS)}")
        if batchnorm not in BATCHNORMS:
            raise BadSetting(f"batchnorm {batchnorm!r}: use one of {', '.join(BATCHNORMS)}")
        self.body = body
        self.head = head
        self.z_shape = z_shape
        self.precision = precision
        self.batchnorm = batchnorm
        self.channels_last = channels_last
        self.eval()

    def forward(self, z: Tensor) -> Tensor:
        scores: Tensor = self.head(self.body(z))
        return scores

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """A feature's shape in memory: [h, w, c] where the network is channels-last."""
        if self.channels_last and len(self.z_shape) == 3:
            return (self.z_shape[1], self.z_shape[2], self.z_shape[0])
        return self.z_shape

    def stored(self, Z: Tensor) -> Tensor:
        """Features [n, *z_shape] (or one of them) in the layout and type of memory."""
        Z = Z.unsqueeze(0) if Z.dim() == len(self.z_shape) else Z
        if tuple(Z.shape[1:]) != self.z_shape:
            raise Refused(f"a feature has shape {self.z_shape}, this one {tuple(Z.shape[1:])}")
        Z = Z.to(self.head.weight.device, torch.float32)
        if self.channels_last and Z.dim() == 4:
            return Z.permute(0, 2, 3, 1).contiguous()
        return Z.contiguous()
