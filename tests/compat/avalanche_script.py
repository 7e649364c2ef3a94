"""Runs in an environment with the real Avalanche library; prints what the test looks at as JSON."""

from __future__ import annotations

import json

import torch
from torch.utils.data import TensorDataset

from verse import StreamClassifier, backbones, evaluate
from verse.compat.avalanche import build_stream, lessons
from verse.learners import SLDA


def define_operators() -> torch.library.Library:
    """Builds of torchvision for other torch builds lack these, which nothing here calls."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def side(n: int) -> TensorDataset:
    y = torch.arange(n) % 6
    data = TensorDataset(torch.eye(6)[y] * 3 + torch.randn(n, 6), y)
    data.targets = y.tolist()
    return data


def main() -> None:
    kept = define_operators()
    import avalanche
    from avalanche.benchmarks import nc_benchmark
    from avalanche.benchmarks.utils import as_classification_dataset

    del kept
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, test = as_classification_dataset(side(120)), as_classification_dataset(side(60))
    benchmark = nc_benchmark(train, test, n_experiences=3, task_labels=False, seed=4)
    backbone = backbones.identity(6)
    s = build_stream(benchmark, backbone.G, seed=1)
    tested = [
        event
        for event in evaluate.stream(SLDA(backbone.F), s.train, s.test, s.schedule)
        if isinstance(event, evaluate.Tested)
    ]
    decoded = build_stream(benchmark, backbone.G, seed=1, workers=1)
    classifier = StreamClassifier(backbone=backbones.identity(6), learner="slda")
    for x, y in lessons(benchmark, seed=1):
        classifier.learn_one(x, y)
    print(
        json.dumps(
            {
                "version": avalanche.__version__,
                "experiences": [
                    sorted(e.classes_in_this_experience) for e in benchmark.train_stream
                ],
                "after": [event.after for event in tested],
                "classes": [event.classes for event in tested],
                "accuracy": [event.accuracy for event in tested],
                "tested_on": [sum(row[2] for row in event.by_class) for event in tested],
                "same_with_workers": bool(torch.equal(decoded.train.z, s.train.z)),
                "arrival": classifier.classes,
                "samples": classifier.samples,
                "labels": s.train.y.tolist(),
            }
        )
    )


if __name__ == "__main__":
    main()
