"""Our methods with exemplars beside Avalanche's: ER, GDumb and iCaRL.

What draws no random numbers is compared at equal weights and samples; of what does, the outcome.
See README.md for how to install Avalanche beside the package.
"""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace

import torch
from compare import (
    BODY,
    CLASSES,
    LENGTH,
    LR,
    STRETCHES,
    experiences,
    flat,
    laid_out,
    learn,
    learn_beside,
    ours,
    put,
    report,
    theirs,
    train,
)

# isort: split
from avalanche.benchmarks import nc_benchmark
from avalanche.benchmarks.utils import as_classification_dataset
from avalanche.training import supervised
from avalanche.training.losses import ICaRLLossPlugin
from avalanche.training.plugins import LRSchedulerPlugin, ReplayPlugin
from avalanche.training.storage_policy import ClassBalancedBuffer, ReservoirSamplingBuffer
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.utils.data import TensorDataset

from verse.kernels.losses import binary_cross_entropy
from verse.learners.gdumb import warm_restarts
from verse.memory import Memory, Reservoir
from verse.memory.greedy_balanced import GreedyBalanced
from verse.memory.herding import Herding


def say(method: str, what: str, outcome: str) -> None:
    print(f"{method:6} {what:58} {outcome}")


def network(weights: Tensor) -> nn.Sequential:
    """A body with its head, as Avalanche's strategies take it."""
    model = nn.Sequential(nn.Sequential(nn.Linear(8, 6), nn.Tanh()), nn.Linear(6, CLASSES))
    nn.utils.vector_to_parameters(weights.clone(), model.parameters())
    return model


# ---- replay ---------------------------------------------------------------------------------


def compare_er() -> None:
    """C is the whole memory, so that both replay the same samples."""
    mine = ours("tinyer", C=LENGTH)
    plugin = ReplayPlugin(
        mem_size=LENGTH,
        batch_size=1,
        batch_size_mem=LENGTH,
        storage_policy=ReservoirSamplingBuffer(max_size=LENGTH),
    )
    other = theirs("Naive", flat(mine.theta), plugins=[plugin])
    stream = experiences(*STRETCHES[:2])
    train(other, stream[:1])
    put(mine.theta, flat(other.model))
    train(other, stream[1:])
    learn_beside(mine, STRETCHES[1], held=STRETCHES[0])
    report(
        "ER",
        "weights after 20 steps on 1 new and 20 old samples",
        flat(mine.theta),
        flat(other.model),
    )


def compare_reservoir(seen: int = 100, room: int = 10, trials: int = 1000) -> None:
    """Both should hold every sample of a stream with the same probability."""
    counts = torch.zeros(2, seen)
    samples = (torch.arange(seen).float().view(-1, 1), torch.zeros(seen, dtype=torch.int64))
    dataset = experiences(samples)[0].dataset
    for trial in range(trials):
        memory = filled(Reservoir(room, seed=trial), *samples)
        buffer = ReservoirSamplingBuffer(room)
        buffer.update_from_dataset(dataset)
        held = torch.tensor([int(buffer.buffer[i][0]) for i in range(room)])
        for row, kept in enumerate((memory.all().z[:, 0].long(), held)):
            counts[row, kept] += 1
    mine, other = ((share - room / seen).abs().max() for share in counts / trials)
    error = (room / seen * (1 - room / seen) / trials) ** 0.5
    say(
        "ER",
        f"how often {room} of {seen} samples are held, {trials} streams",
        f"largest deviation from {room / seen}: {mine:.3f}, Avalanche's {other:.3f} "
        f"(standard error {error:.3f})",
    )


def filled(memory: Memory, Z: Tensor, y: Tensor, **extra: Tensor) -> Memory:
    """A memory of its own, offered these samples in this order."""
    memory.allocate(
        torch.device("cpu"), z=Z.shape[1:], **{k: v.shape[1:] for k, v in extra.items()}
    )
    for i, (z, label) in enumerate(zip(Z, y, strict=True)):
        memory.add(z, int(label), **{k: v[i] for k, v in extra.items()})
    return memory


# ---- GDumb ----------------------------------------------------------------------------------


def compare_gdumb_memory(capacity: int = 50, classes: int = 10, each: int = 200) -> None:
    """How many samples of each class are held while classes arrive one by one."""
    generator = torch.Generator().manual_seed(0)
    memory, buffer = GreedyBalanced(capacity), ClassBalancedBuffer(capacity)
    memory.allocate(torch.device("cpu"), z=(1,))
    worst = points = 0
    for t in range(0, classes * each, 100):
        y = torch.randint(t // each + 1, (100,), generator=generator)
        for label in y.tolist():
            memory.add(torch.zeros(1), label)
        buffer.update_from_dataset(experiences((torch.zeros(100, 1), y))[0].dataset)
        other = Counter({k: len(group.buffer) for k, group in buffer.buffer_groups.items()})
        pairs = zip(sorted(memory.counts().values()), sorted(other.values()), strict=True)
        worst, points = max(worst, *(abs(a - b) for a, b in pairs)), points + 1
    say(
        "GDumb",
        f"samples of each class, {classes * each} labels, looked at {points} times",
        f"largest difference {worst}",
    )


def compare_gdumb_training(passes: int, stretches: int) -> None:
    """Whole batches, no mixing: then the order of samples has no influence."""
    settings = {"momentum": 0.9, "weight_decay": 1e-4}
    lowest = LR / 100
    mine = ours("gdumb", batch=1000, passes=passes, mix=0.0, lr_min=lowest, **settings)
    model = network(flat(mine.theta))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, **settings)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: warm_restarts(epoch, 1.0, lowest / LR)
    )
    other = supervised.GDumb(
        model=model,
        optimizer=optimizer,
        criterion=nn.CrossEntropyLoss(),
        mem_size=1000,
        train_mb_size=1000,
        train_epochs=passes,
        evaluator=None,
        plugins=[LRSchedulerPlugin(schedule)] if stretches == 1 else [],
    )
    if stretches > 1:  # a schedule would go on: keep the rate of the first pass
        for group in optimizer.param_groups:
            group["lr"] = LR / 10
    train(other, experiences(*STRETCHES[:stretches]))
    for stretch in STRETCHES[:stretches]:
        learn(mine, stretch)
        mine.consolidate()
    what = f"weights after {passes} passes, training {'' if stretches == 1 else 'again '}from θ₀"
    report("GDumb", what, flat(mine.trained), flat(other.model))


# ---- iCaRL ----------------------------------------------------------------------------------


def compare_icarl_loss() -> None:
    """Avalanche takes the mean over outputs, we their sum as the authors do: a constant factor."""
    mine = ours("icarl", C=0, trigger="event")
    put(mine.teacher, flat(mine.theta))
    mine.known = 2
    put(mine.theta, flat(mine.theta) + 0.3 * torch.randn(len(flat(mine.theta))))
    loss = ICaRLLossPlugin()
    loss.old_model, loss.old_classes = network(flat(mine.teacher)), [0, 1]
    model = network(flat(mine.theta))
    optimizer = torch.optim.SGD(model.parameters(), lr=LR * CLASSES)
    Z, y = STRETCHES[0]

    def gradient(rows: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            target = mine.targets(Z[rows], y[rows])
            _, g = mine.theta.gradient(Z[rows], binary_cross_entropy(target))
        loss.before_forward(SimpleNamespace(mb_x=Z[rows]))
        optimizer.zero_grad()
        loss(model(Z[rows]), y[rows]).backward()
        theirs_ = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        return laid_out(mine.theta, g), CLASSES * theirs_

    report("iCaRL", "gradient, samples of a class the teacher does not know", *gradient(y == 2))
    with torch.no_grad():
        target = mine.targets(Z, y)
        answers = torch.sigmoid(loss.old_model(Z))
    other_outputs = torch.arange(CLASSES) != y[:, None]
    other_outputs[:, 2] = False
    report(
        "iCaRL",
        "targets of the outputs it knows, but for the true class",
        target[other_outputs],
        answers[other_outputs],
    )
    report("iCaRL", "gradient, samples of known classes (adapted: the label)", *gradient(y < 2))
    for z, label in zip(Z[y == 2], y[y == 2], strict=True):
        mine.learn_one(z, int(label))
        loss.before_forward(SimpleNamespace(mb_x=z[None]))
        optimizer.zero_grad()
        loss(model(z[None]), label[None]).backward()
        optimizer.step()
    report(
        "iCaRL",
        f"weights after {int((y == 2).sum())} steps on a new class",
        flat(mine.theta),
        flat(model),
    )


def avalanche_icarl(Z: Tensor, y: Tensor, room: int) -> supervised.ICaRL:
    """Its strategy after one experience at (practically) fixed weights, exemplars chosen."""
    data = TensorDataset(Z, y)
    data.targets = y.tolist()
    dataset = as_classification_dataset(data)
    benchmark = nc_benchmark(
        dataset, dataset, n_experiences=1, task_labels=False, fixed_class_order=range(CLASSES)
    )
    model = network(
        torch.cat([*(p.detach().reshape(-1) for p in BODY.parameters()), torch.zeros(7 * CLASSES)])
    )
    strategy = supervised.ICaRL(
        feature_extractor=model[0],
        classifier=model[1],
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-30),
        memory_size=room,
        buffer_transform=None,
        fixed_memory=True,
        train_mb_size=len(y),
        eval_mb_size=len(y),
        evaluator=None,
    )
    strategy.train(benchmark.train_stream[0])
    strategy.model.eval()
    return strategy


def compare_icarl_exemplars(worlds: int = 20, room: int = 15) -> None:
    """Herding on the same embeddings, then answers from the same exemplars."""
    m, distances, wrong, asked, gap = room // CLASSES, [], 0, 0, 0.0
    for world in range(worlds):
        torch.manual_seed(world)
        y = torch.arange(20 * CLASSES) % CLASSES
        Z = torch.randn(CLASSES, 8)[y] + torch.randn(len(y), 8)
        other = avalanche_icarl(Z, y, room)
        chosen = next(p for p in other.plugins if type(p).__name__ == "_ICaRLPlugin")
        with torch.no_grad():
            e = normalize(BODY(Z))
        memory = filled(Herding(room), Z, y, e=e).all()
        for k in range(CLASSES):
            mean, mine = e[y == k].mean(0), normalize(BODY(memory.z[memory.y == k])).detach()
            theirs_ = normalize(BODY(chosen.x_memory[k])).detach()
            subsets = torch.tensor(list(itertools.combinations(range(20), m)))
            every = (e[y == k][subsets].mean(1) - mean).norm(dim=1)
            distances.append(
                [
                    float((mine.mean(0) - mean).norm()),
                    float((theirs_.mean(0) - mean).norm()),
                    float(every.min()),
                    float(every.mean()),
                ]
            )
        learner = ours("icarl")
        put(learner.theta, flat(nn.Sequential(BODY, nn.Linear(6, CLASSES))))
        for k, samples in enumerate(chosen.x_memory):
            for z in samples:
                learner.memory.add(z, k, e=normalize(BODY(z[None])).detach()[0])
        questions = torch.randn(500, 8) * 2
        with torch.no_grad():
            far = (-learner.logits(questions)).clamp_min(0).sqrt()
            published = -other.model(questions)
        wrong += int((far.argmin(1) != published.argmin(1)).sum())
        asked, gap = asked + len(questions), max(gap, float((far - published).abs().max()))
    mine_, theirs_, best, chance = torch.tensor(distances).mean(0).tolist()
    say(
        "iCaRL",
        f"exemplars' mean to class mean, {m} of 20, {len(distances)} classes",
        f"distance {mine_:.3f}, Avalanche's {theirs_:.3f}, the best {m} {best:.3f}, "
        f"any {m} {chance:.3f}",
    )
    say(
        "iCaRL",
        f"answers from the same exemplars, {asked} questions",
        f"{wrong} differ; distances to means differ by at most {gap:.1e}",
    )


if __name__ == "__main__":
    compare_er()
    compare_reservoir()
    compare_gdumb_memory()
    compare_gdumb_training(passes=8, stretches=1)
    compare_gdumb_training(passes=1, stretches=2)
    compare_icarl_loss()
    compare_icarl_exemplars()
