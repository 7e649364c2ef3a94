from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from verse import backbones
from verse.backbones.efficientnet_lite import VARIANTS
from verse.backbones.preprocess import Normalise, Preprocess
from verse.types import BadImage, BadSetting


@pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (5000, 1), (37, 53), (224, 224), (900, 700)])
@pytest.mark.parametrize("crop", [1.0, 0.875])
def test_any_size_becomes_the_square(shape: tuple[int, int], crop: float) -> None:
    out = Preprocess(crop=crop)(np.full((*shape, 3), 7, np.uint8))
    assert out.shape == (224, 224, 3)
    assert (out == 7).all()


def test_the_centre_is_kept() -> None:
    image = np.zeros((40, 100, 3), np.uint8)
    image[:, 30:70] = 255
    assert (Preprocess(size=20)(image) == 255).mean() >= 0.9


def test_a_path_and_its_pixels_agree_for_small_images() -> None:
    image = np.asarray(Image.linear_gradient("L").convert("RGB"))
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    np.testing.assert_array_equal(Preprocess()(out.getvalue()), Preprocess()(image))


def test_normalisation_is_that_of_the_formula() -> None:
    import torch

    x = np.random.default_rng(0).integers(0, 256, (1, 4, 4, 3), dtype=np.uint8)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    expected = ((x / 255 - mean) / std).transpose(0, 3, 1, 2)
    out = Normalise(mean, std)(torch.from_numpy(x))
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-6)
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_bad_images_are_refused_by_g() -> None:
    G = backbones.build("efficientnet-lite0", at="fc", weights="random", engine="torch").G
    with pytest.raises(BadImage):
        G([np.full((4, 4, 3), np.nan)])


def test_unknown_backbone() -> None:
    with pytest.raises(BadSetting, match=r"efficientnet-lite0, .*resnet18, .*onnx:FILE"):
        backbones.build("vgg")
    assert set(backbones.names()) >= {*VARIANTS, "resnet18"}
