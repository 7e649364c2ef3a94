"""Crops of feature maps equal cropping and bilinear resizing one by one."""

from __future__ import annotations

import numpy as np
import torch

from verse.kernels.crops import random_boxes, random_resized_crops, stretch
from verse.kernels.randomness import Random


def test_equals_cropping_and_interpolating_each_map() -> None:
    maps = Random(0).normal_tensor((40, 7, 5, 3))
    cropped = random_resized_crops(maps, smallest=0.2, random=Random(1))
    boxes = random_boxes(40, 7, 5, smallest=0.2, random=Random(1))
    for before, after, top, left, high, wide in zip(maps, cropped, *boxes, strict=True):
        piece = before[top : top + high, left : left + wide].permute(2, 0, 1).unsqueeze(0)
        expected = torch.nn.functional.interpolate(
            piece, size=(7, 5), mode="bilinear", align_corners=False
        )
        assert torch.allclose(after, expected[0].permute(1, 2, 0), atol=1e-5)


def test_boxes_are_inside_and_of_the_asked_area() -> None:
    top, left, high, wide = random_boxes(5000, 7, 7, smallest=2 / 7, random=Random(0))
    assert (top >= 0).all() and (left >= 0).all()
    assert (top + high <= 7).all() and (left + wide <= 7).all()
    area = high * wide / 49
    assert area.min() >= 0.2 and area.max() == 1.0  # rounding to whole cells lets it go below 2/7
    assert 0.5 < area.mean() < 0.75
    assert len(set(zip(high.tolist(), wide.tolist(), strict=True))) > 10


def test_whole_map_is_left_alone() -> None:
    assert torch.equal(stretch(np.array([0]), np.array([7]), 7)[0], torch.eye(7))
