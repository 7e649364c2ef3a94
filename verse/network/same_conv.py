"""A convolution padded as TensorFlow does."""

from __future__ import annotations

from torch import Tensor, nn


class SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow's SAME: for stride 2 and even sizes, one more at the end.

    ``size`` is that of its input: the padding follows from it.

    >>> import torch
    >>> SameConv(3, 8, 3, stride=2, size=8)(torch.zeros(1, 3, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int, size: int, groups: int = 1
    ) -> None:
        total = kernel - (size % stride or stride)
        pads = (total // 2, total - total // 2)
        even = pads[0] == pads[1]
        padding = pads[0] if even else 0
        super().__init__(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
        self.extra = [] if even else [*pads, *pads]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.pad(x, self.extra) if self.extra else x)
