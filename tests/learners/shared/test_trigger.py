from __future__ import annotations

import pytest
import torch

from verse import learners
from verse.checks import (
    check_exact_resume,
    check_new_class_midstream,
    check_survives_exception,
    small_network,
    small_stream,
)
from verse.learners.shared.trigger import DEFAULT, Trigger
from verse.memory import ClassBalanced
from verse.types import BadSetting

USERS = ("ewcpp", "mas", "si", "lwf", "gem", "vcl", "coreset-vcl")


def fired(setting: str, ys: list[int]) -> list[int]:
    trigger = Trigger(setting)
    return [t for t, y in enumerate(ys) if trigger.due(y)]


def test_every_n_samples() -> None:
    assert fired("every:3", [0] * 10) == [3, 6, 9]
    assert fired("every:1", [0] * 3) == [1, 2]


def test_class_change() -> None:
    assert fired("class-change", [0, 0, 1, 1, 0, 2]) == [2, 4, 5]


def test_event_only_when_asked_and_once() -> None:
    trigger = Trigger("event")
    assert not trigger.due_at_event()
    assert fired("event", [0, 1, 2]) == []
    trigger.due(0)
    assert trigger.due_at_event()
    assert not trigger.due_at_event()


@pytest.mark.parametrize("setting", ["every:3", "class-change"])
def test_other_rules_ignore_events(setting: str) -> None:
    trigger = Trigger(setting)
    trigger.due(0)
    assert not trigger.due_at_event()
    assert trigger.state()[""].tolist() == [1, 0]


@pytest.mark.parametrize(
    "setting", ["every", "every:0", "every:-1", "every:x", "task", "", "event:3"]
)
def test_a_bad_setting_names_the_good_ones(setting: str) -> None:
    with pytest.raises(BadSetting, match="every:N"):
        Trigger(setting)


@pytest.mark.parametrize("name", USERS)
def test_all_methods_have_the_same_default(name: str) -> None:
    assert learners.settings(name)["trigger"].default == DEFAULT


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize(
    ("check", "trigger"),
    [
        (check_exact_resume, "every:7"),
        (check_survives_exception, "every:7"),
        (check_new_class_midstream, "class-change"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_conformance_while_consolidating(name: str, trigger: str, check) -> None:
    """The suite's streams are too short for the default; here the rule fires all the time."""
    quick = {"epochs": 2} if name == "coreset-vcl" else {}
    check(
        lambda F, memory, seed: learners.build(
            name, F, memory, trigger=trigger, lr=0.05, seed=seed, **quick
        )
    )


@pytest.mark.parametrize("name", USERS)
def test_event_consolidates_in_consolidate_alone(name: str) -> None:
    """θ does not move at an event, later learning does; a second event changes nothing."""
    F = small_network()
    stream = small_stream(F)
    quick = {"epochs": 2} if name == "coreset-vcl" else {}
    a, b = (
        learners.build(name, F, ClassBalanced(24), trigger="event", lr=0.05, **quick)
        for _ in range(2)
    )
    for z, y in stream[:20]:
        a.learn_one(z, y)
        b.learn_one(z, y)
    a.consolidate()
    assert torch.equal(a.theta.data, b.theta.data)
    once = {k: v.clone() for k, v in a.state().items()}
    a.consolidate()
    assert all(torch.equal(v, once[k]) for k, v in a.state().items())
    for z, y in stream[20:]:
        a.learn_one(z, y)
        b.learn_one(z, y)
    assert not torch.equal(a.theta.data, b.theta.data)
