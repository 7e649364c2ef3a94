"""States from files: those of version 0.1.0 load, those that do not fit are refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from verse import learners, memory
from verse.checks import small_network, small_stream
from verse.learners.base import Learner
from verse.types import BadState

# Written by the first version: four classes, one forgotten and taught again, two merged. Outputs
# of classes that had left stayed in the network then, and counts were float32.
OLD = load_file(Path(__file__).with_name("forgotten.safetensors"))
NAMES = sorted({key.partition("/")[0] for key in OLD})
QUICK = {
    "lr": 0.05,
    "epochs": 2,
    "passes": 2,
    "base": 8,
    "trigger": "every:5",
    "predict_draws": 5,
    "max_epochs": 3,
}
F = small_network("linear")
STREAM = small_stream(F, classes=4, each=4)


def made(name: str) -> Learner:
    settings = {k: v for k, v in QUICK.items() if k in learners.settings(name)}
    return learners.build(
        name, F, memory.get("class-balanced")(per_class=2, seed=3), seed=3, **settings
    )


def saved(name: str) -> dict[str, torch.Tensor]:
    """What one learner saved."""
    return {k.partition("/")[2]: v for k, v in OLD.items() if k.startswith(f"{name}/")}


@pytest.mark.parametrize("name", NAMES)
def test_a_state_with_forgotten_classes_loads_without_their_outputs(name: str) -> None:
    state, learner = saved(name), made(name)
    answers, live = state.pop("answers"), state.pop("live").tolist()
    learner.load_state(state)
    assert learner.labels == live and learner.theta.n == len(live)
    now = learner.predict_proba_many(torch.stack([z for z, _ in STREAM]))
    if "vcl" not in name:  # it draws as many numbers for an answer as there are outputs
        assert torch.allclose(now, answers, atol=1e-3)
    again = made(name)
    again.load_state({k: v.clone() for k, v in learner.state().items()})
    for each in (learner, again):
        for z, y in STREAM[::-1]:
            each.learn_one(z, y)
        each.consolidate()
    assert all(torch.equal(v, again.state()[k]) for k, v in learner.state().items())


@pytest.mark.parametrize("name", ["verse-lda", "slda", "icarl", "exstream", "ewcpp", "ncm"])
def test_a_state_that_does_not_fit_is_refused(name: str) -> None:
    learner = made(name)
    for z, y in STREAM:
        learner.learn_one(z, y)
    state = learner.state()
    for key in state:
        broken = {k: v.clone() for k, v in state.items()}
        del broken[key]
        if key not in ("range", "moments.rows"):  # older files have none
            with pytest.raises(BadState):
                made(name).load_state(broken)
        if state[key].is_floating_point() and state[key].numel():
            broken[key] = state[key].clone()
            broken[key].view(-1)[0] = math.nan
            with pytest.raises(BadState, match=key.replace(".", r"\.")):
                made(name).load_state(broken)


@pytest.mark.parametrize("labels", [[], [10], [10, 10, 11, 12], [10, 11, 12, 13, 14]])
def test_labels_that_do_not_fit_are_refused(labels: list[int]) -> None:
    learner = made("tinyer")
    for z, y in STREAM:
        learner.learn_one(z, y)
    state = learner.state_dict() | {"labels": torch.tensor(labels, dtype=torch.int64)}
    with pytest.raises(BadState):
        made("tinyer").load_state(state)


@pytest.mark.parametrize("part", ["averages.", "statistics.tail"])
def test_a_state_of_before_is_refused_with_what_to_do(part: str) -> None:
    learner = learners.build("verse-joint", F, memory.get("class-balanced")(8))
    for z, y in STREAM:
        learner.learn_one(z, y)
    old = {name: value for name, value in learner.state().items() if not name.startswith(part)}
    with pytest.raises(BadState, match="another version of verse wrote it; teach again"):
        learner.load_state(old)


def test_what_torch_adds_to_an_error_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some errors of torch come with a trace of its own, line by line."""
    learner = made("tinyer")

    def fail(state: dict[str, torch.Tensor]) -> None:
        raise RuntimeError("Overflow when unpacking long long\nframe #0: c10::Error")

    monkeypatch.setattr(learner.state_parts, "load_state", fail)
    with pytest.raises(BadState, match="Overflow when unpacking") as refused:
        learner.load_state(learner.state())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [[torch.zeros(2), torch.ones(2)], {"a": 1}])
def test_an_attribute_that_cannot_be_saved_says_what_to_use(value: object) -> None:
    class Keeper(learners.FineTune):
        STATE = ("kept",)

    learner = Keeper(F)
    learner.kept = value
    with pytest.raises(TypeError, match=r"kept is a (list|dict).* cannot be saved: use"):
        learner.state()
