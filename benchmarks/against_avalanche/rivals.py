"""Our rivals of today beside Avalanche's: ER-ACE, SCR, MIR, FeCAM and SLDA on the same numbers.

Prints each difference beside the largest one allowed, and fails if one is larger. See README.md for
how to install Avalanche beside the package.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from compare import BODY, CLASSES, LENGTH, LR, STRETCHES, experiences, flat, ours, put, train

# isort: split
from avalanche.training import supervised
from avalanche.training.losses import SCRLoss
from avalanche.training.plugins import MIRPlugin
from differences import apart, finish, report
from discriminants import compare_fecam, compare_slda
from rehearsal import network
from torch import Tensor, nn
from torch.nn.functional import normalize

from verse.kernels.contrast import supervised_contrast
from verse.learners import Learner

START = flat(nn.Sequential(BODY, nn.Linear(6, CLASSES)))


def hold(learner: Learner, Z: Tensor, y: Tensor) -> None:
    assert learner.memory is not None
    for z, label in zip(Z, y, strict=True):
        learner.memory.add(z, int(label))


def compare_er_ace() -> None:
    """Each sample of a batch learned alone, after the classes of all: the mean update is that of
    the whole batch. Avalanche halves the loss, so its learning rate is doubled."""
    Z, y = (part[STRETCHES[1][1] < 2][:10] for part in STRETCHES[1])  # not of all classes
    model = network(START)
    other = supervised.ER_ACE(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=2 * LR),
        mem_size=1000,
        batch_size_mem=LENGTH + len(y),  # all that it holds, the present samples as well
        train_mb_size=len(y),
        evaluator=None,
    )
    stream = experiences(STRETCHES[0], (Z, y))
    train(other, stream[:1])
    start, updates = flat(model), []
    train(other, stream[1:])
    for z, label in zip(Z, y, strict=True):
        mine: Any = ours("er-ace", C=1000, recent=len(y) + 1)
        put(mine.theta, start)
        hold(mine, *STRETCHES[0])
        hold(mine, Z, y)
        mine.latest = y.tolist()
        mine.learn_one(z, int(label))
        updates.append(flat(mine.theta) - start)
    gap = apart(torch.stack(updates).mean(0), flat(model) - start)
    report("er-ace", "update of 10 new and 30 old samples", gap, 1e-5)


def compare_scr_loss() -> None:
    """Two views of a sample are to our loss two samples."""
    generator = torch.Generator().manual_seed(0)
    e, P = (torch.randn(n, 6, generator=generator, requires_grad=True) for n in (2 * LENGTH, 5))
    y = STRETCHES[0][1]
    views = normalize(e @ P.t()).view(2, LENGTH, 5).transpose(0, 1)
    for name, rows, labels in (("one view", views[:, :1], y), ("two views", views, y.repeat(2))):
        n, value = len(labels), SCRLoss(0.07)(rows, y)
        de, dP = torch.autograd.grad(value, (e, P), retain_graph=True)
        mine, our_de, our_dP = supervised_contrast(e[:n], P, labels, 0.07)
        ours_, theirs = torch.cat((our_de, our_dP)), torch.cat((de[:n], dP))
        report("scr", f"loss of 20 samples, {name}", apart(mine, value.detach()), 1e-5)
        report("scr", f"its gradient, {name}", apart(ours_, theirs), 1e-5)


def compare_scr_update() -> None:
    mine: Any = ours("scr", C=1000, p=5)
    put(mine.theta, START)
    Z, y = STRETCHES[0]
    hold(mine, Z[:-1], y[:-1])
    body, P = network(START)[0], nn.Parameter(mine.projection.clone())
    optimizer = torch.optim.SGD([*body.parameters(), P], lr=LR)
    start = torch.cat((flat(body), P.detach().flatten()))
    mine.learn_one(Z[-1], int(y[-1]))
    SCRLoss(0.07)(normalize(body(Z) @ P.t())[:, None], y).backward()
    optimizer.step()
    after = torch.cat((flat(mine.theta)[: len(flat(body))], mine.projection.flatten()))
    theirs = torch.cat((flat(body), P.detach().flatten()))
    report("scr", "update of F and P", apart(after - start, theirs - start), 1e-5)


def compare_mir(trials: int = 50, C: int = 16) -> None:
    """Which of the same 60 candidates are replayed, at random weights."""
    Z, y = (torch.cat(parts) for parts in zip(*STRETCHES, strict=True))
    plugin, loss, other_choice = MIRPlugin(batch_size_mem=C), nn.CrossEntropyLoss(), 0
    for trial in range(trials):
        generator = torch.Generator().manual_seed(trial)
        new, label = torch.randn(8, generator=generator), torch.tensor([trial % CLASSES])
        weights = torch.randn(len(START), generator=generator)
        seen: list[Tensor] = []
        mine: Any = ours("mir", candidates=1000, C=C)
        put(mine.theta, weights)
        hold(mine, Z, y)
        mine.theta.gradient = partial(note, seen, mine.theta.gradient)
        mine.learn_one(new, int(label))
        chosen = {tuple(row) for row in seen[-1][1:].tolist()}  # the new sample is the first
        model = network(weights)
        model.register_forward_pre_hook(partial(note_input, seen))
        plugin.replay_loader = iter([(Z, y, torch.zeros(len(y)))])
        plugin.before_backward(
            SimpleNamespace(
                device="cpu",
                model=model,
                optimizer=torch.optim.SGD(model.parameters(), lr=LR),
                _criterion=loss,
                loss=loss(model(new[None]), label),
            )
        )
        other_choice += len(chosen ^ {tuple(row) for row in seen[-1].tolist()})
    share = other_choice / (2 * C * trials)
    report("mir", f"share of {trials} times {C} chosen samples that differ", share, 0.0)


def note(seen: list[Tensor], gradient: Any, Z: Tensor, *rest: Any, **settings: Any) -> Any:
    seen.append(Z.clone())
    return gradient(Z, *rest, **settings)


def note_input(seen: list[Tensor], _: nn.Module, inputs: tuple[Tensor]) -> None:
    seen.append(inputs[0].clone())


if __name__ == "__main__":
    torch.set_num_threads(1)
    compare_er_ace()
    compare_scr_loss()
    compare_scr_update()
    compare_mir()
    compare_fecam()
    compare_slda()
    finish()
