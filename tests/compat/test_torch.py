"""PyTorch data sets, loaders and plain iterables as streams."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import verse.datasets
from verse import StreamClassifier, backbones, evaluate, streams
from verse.compat.torch import frames, samples, stream_features
from verse.features import Features
from verse.learners import SLDA
from verse.types import BadData, BadImage, BadSetting

X = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)) + 4 * torch.eye(4).repeat(10, 1)
Y = torch.arange(40) % 4
G = backbones.identity(4).G


class Files(Dataset):
    """Images decoded where they are asked for, as data sets of images do."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> tuple[Image.Image, str]:
        image = Image.open(self.paths[i])
        image.load()
        return image, self.paths[i].name[0]


class Endless(IterableDataset):
    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        yield from zip(X, Y.tolist(), strict=True)


@pytest.mark.parametrize(
    "data",
    [
        TensorDataset(X, Y),
        TensorDataset(X, Y, torch.zeros(40)),
        Endless(),
        DataLoader(TensorDataset(X, Y), batch_size=7),
        list(zip(X.numpy(), Y.numpy(), strict=True)),
        zip(X.tolist(), Y.tolist(), strict=True),
    ],
    ids=["dataset", "triples", "iterable", "loader", "arrays", "generator"],
)
def test_any_kind_gives_the_same_stream(data: object) -> None:
    got = list(stream_features(data, G, batch=16))
    assert torch.equal(torch.stack([z for z, _ in got]), X)
    assert [y for _, y in got] == Y.tolist()
    assert all(type(y) is int for _, y in got)


def test_workers_decode_and_keep_the_order(tmp_path: Path) -> None:
    for i in range(12):
        Image.new("RGB", (30 + i, 30), (20 * i, 0, 0)).save(tmp_path / f"{'ab'[i % 2]}{i:02}.png")
    data = Files(sorted(tmp_path.iterdir()))
    backbone = backbones.build("efficientnet-lite0", weights="random")
    alone = list(stream_features(data, backbone.G, batch=4))
    together = list(stream_features(data, backbone.G, batch=4, workers=2))
    assert [y for _, y in together] == list("a" * 6 + "b" * 6)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(alone, together, strict=True))
    classifier = StreamClassifier(backbone=backbone)
    for z, y in together:
        classifier.learn_feature(z, y)
    assert classifier.classes == ["a", "b"] and classifier.samples == 12


def test_a_bad_image_in_a_worker_is_told(tmp_path: Path) -> None:
    data = [(np.zeros((4, 4, 9), np.uint8), 0)]
    backbone = backbones.build("efficientnet-lite0", weights="random")
    with pytest.raises(BadImage, match="channels"):
        list(stream_features(torch.utils.data.Subset(data, [0]), backbone.G, workers=1))


def test_workers_need_a_data_set() -> None:
    with pytest.raises(BadSetting, match="without them"):
        list(stream_features([(X[0], 1)], G, workers=2))
    with pytest.raises(BadSetting, match="shares itself out"):
        list(stream_features(Endless(), G, workers=2))


def test_samples_go_into_the_one_loop() -> None:
    rows = samples(TensorDataset(X, Y), G)
    learner = SLDA(backbones.identity(4).F)
    schedule = streams.Schedule.of("iid", rows.y, steps=2)
    tested = [
        event
        for event in evaluate.stream(learner, rows, rows, schedule)
        if isinstance(event, evaluate.Tested)
    ]
    assert [event.after for event in tested] == [20, 40] and tested[-1].accuracy > 0.9


@pytest.mark.parametrize("label", ["cup", -1, 1.5, True])
def test_a_label_that_is_no_class_number_is_told(label: object) -> None:
    with pytest.raises(BadData, match="class number"):
        samples([(X[0], label)], G)


def test_nothing_is_told() -> None:
    with pytest.raises(BadData, match="empty"):
        samples([], G)


def test_a_side_of_a_data_set() -> None:
    images = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)
    train = frames(
        TensorDataset(images, torch.tensor([0, 0, 1, 1, 1, 0])), videos=[0, 0, 1, 1, 2, 3]
    )
    test = frames(TensorDataset(images[:2], torch.tensor([0, 1])), labels=[0, 1], videos=[7, 8])
    data = verse.datasets.Dataset("mine", ("cup", "mug"), train, test)
    assert data.train.frames.tolist() == [0, 1, 0, 1, 0, 0]
    assert np.array_equal(train.read(2), images[2].permute(1, 2, 0).numpy())
    assert train.key(0) == test.key(0) != train.key(1)
    z = Features.of(train, backbones.build("efficientnet-lite0", weights="random"), cache=False)
    assert len(z) == 6
    with pytest.raises(BadData, match="no length"):
        frames(Endless())
