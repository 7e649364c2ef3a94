"""Offline trains afresh, only in consolidate, until the training loss is flat."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from verse.checks import small_network, small_stream
from verse.learners import Offline
from verse.learners.shared.training import TrainingRecipe, is_flat, predict_labels, train_offline
from verse.memory.everything import Everything
from verse.types import BadData, BadSetting


def _stacked(F, classes: int = 3, each: int = 30) -> tuple[torch.Tensor, np.ndarray]:
    stream = small_stream(F, classes=classes, each=each)
    return torch.stack([z for z, _ in stream]), np.array([y for _, y in stream])


def _taught(n: int = 60, **settings) -> tuple[Offline, list]:
    F = small_network()
    learner = Offline(F, lr=0.1, **settings)
    stream = small_stream(F, classes=3, each=20)
    for z, y in stream[:n]:
        learner.learn_one(z, y)
    return learner, stream


def test_learns_only_in_consolidate_and_keeps_everything() -> None:
    learner, stream = _taught()
    body = learner.theta.layout.views(learner.theta.data)["body.conv.weight"]
    assert torch.equal(body, learner.F.body.conv.weight) and len(learner.memory) == 60
    learner.consolidate()
    assert not torch.equal(body, learner.F.body.conv.weight)
    assert learner.predict_many(torch.stack([z for z, _ in stream])) == [y for _, y in stream]


def test_trains_afresh_from_the_start_weights() -> None:
    """What was trained before, and how often, leaves no trace."""
    once, stream = _taught()
    once.consolidate()
    often, _ = _taught(30)
    often.consolidate()
    for z, y in stream[30:]:
        often.learn_one(z, y)
    often.consolidate()
    again = often.theta.data.clone()
    often.consolidate()
    assert torch.equal(once.theta.data, again) and torch.equal(again, often.theta.data)


def test_trains_again_after_forgetting() -> None:
    learner, _ = _taught()
    learner.consolidate()
    before = learner.theta.data.clone()
    learner.forget(10)
    learner.consolidate()
    assert not torch.equal(before, learner.theta.data) and len(learner.memory) == 40


def test_trains_again_after_merging() -> None:
    learner, stream = _taught()
    learner.consolidate()
    learner.merge(12, into=10)
    learner.consolidate()
    expected = [10 if y == 12 else y for _, y in stream]
    assert learner.predict_many(torch.stack([z for z, _ in stream])) == expected


def test_function_and_learner_are_the_same_training() -> None:
    learner, stream = _taught()
    learner.consolidate()
    Z, y = torch.stack([z for z, _ in stream]), np.array([label for _, label in stream])
    net, log = train_offline(learner.F, Z, y, seed=0, recipe=learner.recipe)
    assert torch.equal(net.data, learner.theta.data) and log.classes == (10, 11, 12)


def test_one_epoch_equals_torch_sgd() -> None:
    """One full batch: gradient, momentum and weight decay as torch does them."""
    F = small_network("linear")
    Z, y = _stacked(F, classes=2, each=20)
    recipe = TrainingRecipe(batch=100, epochs=5, max_epochs=5, clip=None)
    start, _ = train_offline(
        F, Z, y, seed=3, recipe=TrainingRecipe(lr=1e-30, epochs=1, max_epochs=1)
    )
    head = torch.nn.Linear(6, 2)
    views = start.layout.views(start.data)
    with torch.no_grad():
        head.weight.copy_(views["head.weight"][:2])
        head.bias.copy_(views["head.bias"][:2])
    sgd = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    losses = []
    for _ in range(5):
        sgd.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(Z), torch.from_numpy(y - 10))
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    net, log = train_offline(F, Z, y, seed=3, recipe=recipe)
    assert log.losses == pytest.approx(losses, rel=1e-4)
    assert torch.allclose(net.layout.views(net.data)["head.weight"][:2], head.weight, atol=1e-5)


def test_stops_when_flat_and_not_before_ten_epochs() -> None:
    F = small_network()
    Z, y = _stacked(F)
    done: list[tuple[int, float]] = []
    _, log = train_offline(
        F,
        Z,
        y,
        seed=0,
        recipe=TrainingRecipe(lr=0.1, max_epochs=200),
        progress=lambda *a: done.append(a),
    )
    assert log.flat and 10 <= len(log.losses) < 200
    assert done == list(enumerate(log.losses, start=1))
    _, log = train_offline(F, Z, y, seed=0, recipe=TrainingRecipe(lr=1e-4, max_epochs=12))
    assert not is_flat([3.0, 2.0, 1.0, 0.9, 0.8], 3) and len(log.losses) <= 12


def test_reads_a_memory_mapped_file_in_half_precision(tmp_path) -> None:
    F = small_network()
    Z, y = _stacked(F)
    np.save(tmp_path / "z.npy", Z.numpy().astype(np.float16))
    mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
    net, log = train_offline(F, mapped, y, seed=0, recipe=TrainingRecipe(lr=0.1, batch=16))
    assert (predict_labels(net, log, mapped, batch=7) == y).all()


def test_pieces_give_the_gradient_of_the_whole(monkeypatch) -> None:
    F = small_network()
    Z, y = _stacked(F)
    recipe = TrainingRecipe(epochs=2, max_epochs=2)
    pieces, _ = train_offline(F, Z, y, seed=0, recipe=recipe)
    monkeypatch.setattr("verse.learners.shared.training.PIECE", 10_000)
    whole, _ = train_offline(F, Z, y, seed=0, recipe=recipe)
    assert torch.allclose(pieces.data, whole.data, atol=1e-5)


def test_single_class_needs_no_training() -> None:
    F = small_network()
    net, log = train_offline(F, torch.randn(5, 4, 3, 3), [4] * 5, seed=0)
    assert log.losses == () and predict_labels(net, log, torch.randn(2, 4, 3, 3)).tolist() == [4, 4]


def test_bad_data_and_settings() -> None:
    F = small_network()
    with pytest.raises(BadData):
        train_offline(F, torch.randn(0, 4, 3, 3), [], seed=0)
    with pytest.raises(BadData):
        train_offline(F, torch.randn(2, 4, 3, 3), [0], seed=0)
    with pytest.raises(BadSetting):
        Offline(F, lr=0.0)
    with pytest.raises(BadSetting, match="diverged"):
        train_offline(
            F,
            1e30 * torch.randn(4, 4, 3, 3),
            [0, 1, 0, 1],
            seed=0,
            recipe=TrainingRecipe(lr=1e30, clip=None),
        )


def test_everything_grows_and_resumes() -> None:
    a, b = Everything(), Everything()
    for memory in (a, b):
        memory.allocate(torch.device("cpu"), z=(2,))
    for t in range(150):
        a.add(torch.full((2,), float(t)), t % 3)
    b.load_state({k: v.clone() for k, v in a.state().items()})
    assert len(b) == 150 and torch.equal(a.all().z, b.all().z) and b.bytes == 150 * 16
    assert b.discard(1) == 50 and len(b) == 100
