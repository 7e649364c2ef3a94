"""No network at all: what comes in already is a feature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.backbones.base import Backbone, content_key, plastic
from verse.types import BadImage, BadSetting


class IdentityExtractor:
    """G for inputs that are features: checks shape and finiteness, nothing more.

    Parameters
    ----------
    shape
        Of a feature.

    >>> IdentityExtractor((2,))([[1, 2], [3, 4]])
    tensor([[1., 2.],
            [3., 4.]])
    """

    engine = "none"
    threads = 1

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.z_shape = shape

    def preprocess(self, image: object) -> npt.NDArray[np.float32]:
        """One feature, as an array, a tensor or numbers → float32."""
        raw = image.detach().cpu().float() if isinstance(image, Tensor) else image
        try:
            z = np.asarray(raw, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise BadImage(f"cannot read a {type(image).__name__} as a feature: {error}") from error
        if z.shape != self.z_shape:
            raise BadImage(f"a feature has shape {self.z_shape}, not {z.shape}")
        if not np.isfinite(z).all():
            raise BadImage("the feature contains NaN or infinite values")
        return z

    def run(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        """Features [n, …] as they are."""
        return torch.tensor(inputs, dtype=torch.float32)

    def __call__(self, images: Sequence[object]) -> Tensor:
        if len(images) == 0:
            return torch.empty(0, *self.z_shape)
        return self.run(np.stack([self.preprocess(z) for z in images]))


def identity(
    shape: int | tuple[int, ...], *, precision: str = "float32", batchnorm: str = "frozen"
) -> Backbone:
    """Features of ``shape``; F averages feature maps [c, h, w] and is linear behind that.

    >>> identity(512).F.head.d
    512
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sizes or any(n < 1 for n in sizes):
        raise BadSetting(f"a feature's shape has sizes of at least 1, not {sizes}")
    body: nn.Module = nn.Identity()
    if len(sizes) == 3:
        body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    elif len(sizes) > 1:
        body = nn.Flatten(1)
    F = plastic(body, torch.zeros(1, *sizes), precision=precision, batchnorm=batchnorm)
    return Backbone(
        "identity", "fc", IdentityExtractor(sizes), F, content_key(["identity", sizes], [])
    )
