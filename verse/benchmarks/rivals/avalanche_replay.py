"""Avalanche's online replay at batch size 1, in an environment of its own; asked through a pipe.

Reads a JSON line with the network's shape, then numbers n on standard input; learns n samples and
prints the seconds. The stream of experiences is made beforehand: only training is timed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import torch
from torch import nn
from torch.utils.data import TensorDataset


class ResidualBlock(nn.Module):
    """The paper's F: ResNet-18's last block, pooling and the classifier."""

    def __init__(self, c: int, classes: int) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))
        self.b = nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))
        self.fc = nn.Linear(c, classes)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.b(torch.relu(self.a(z))) + z)
        return self.fc(y.mean((2, 3)))


def main() -> None:
    """Learn as many samples as the parent asks for, and say how long it took."""
    warnings.simplefilter("ignore")  # printing them would slow the rival down
    # torchvision expects operators of its compiled part, which a CPU build of torch may not have
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

    from avalanche.benchmarks import benchmark_from_datasets, split_online_stream
    from avalanche.benchmarks.utils import AvalancheDataset, DataAttribute
    from avalanche.benchmarks.utils.data import make_avalanche_dataset
    from avalanche.training.plugins import ReplayPlugin
    from avalanche.training.plugins.evaluation import EvaluationPlugin
    from avalanche.training.storage_policy import ReservoirSamplingBuffer
    from avalanche.training.templates import SupervisedTemplate

    settings = json.loads(sys.stdin.readline())
    torch.set_num_threads(settings["threads"])
    shape, classes, most = settings["shape"], settings["classes"], settings["most"]
    torch.manual_seed(0)
    Z = torch.randn(most, *shape)
    y = torch.randint(0, classes, (most,))
    data = TensorDataset(Z, y)
    data.targets = y.tolist()
    targets = DataAttribute(data.targets, "targets")
    tasks = DataAttribute([0] * most, "targets_task_labels", use_in_getitem=True)
    dataset = make_avalanche_dataset(data, data_attributes=[targets, tasks])
    assert isinstance(dataset, AvalancheDataset)
    stream = benchmark_from_datasets(train=[dataset]).train_stream
    online = list(split_online_stream(stream, experience_size=1, access_task_boundaries=False))
    model = nn.Linear(shape[0], classes) if len(shape) == 1 else ResidualBlock(shape[0], classes)
    buffer = ReservoirSamplingBuffer(max_size=settings["capacity"])
    strategy = SupervisedTemplate(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=1,
        train_epochs=1,
        evaluator=EvaluationPlugin(),
        plugins=[
            ReplayPlugin(
                mem_size=settings["capacity"],
                batch_size=1,
                batch_size_mem=settings["C"],
                storage_policy=buffer,
            )
        ],
    )
    print("ready", flush=True)
    at = 0
    for line in sys.stdin:
        n = int(line)
        start = time.perf_counter()
        for _ in range(n):
            strategy.train(online[at % len(online)], num_workers=0)
            at += 1
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
