"""Every registered learner passes every check; a learner added to the registry is tested here."""

from __future__ import annotations

import pytest
from torch import Tensor

from verse import learners
from verse.checks import LEARNER_CHECKS, check_exported_network
from verse.learners.base import Learner
from verse.memory.base import Memory
from verse.network.plastic import Plastic

# Offline keeps the whole stream on purpose: it is the upper bound of a comparison.
EXEMPT = {("offline", "check_capacity_never_exceeded")}
# Rates and sizes that suit the checks' tiny networks; everything else is the default.
QUICK = {"lr": 0.1, "beta": 0.1, "epochs": 3, "M": 64}


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", learners.names())
def test_learner(name: str, check) -> None:
    if (name, check.__name__) in EXEMPT:
        pytest.skip("exempt: keeps the whole stream by definition")
    settings = {k: v for k, v in QUICK.items() if k in learners.settings(name)}

    def make(F: Plastic, memory: Memory, seed: int) -> Learner:
        return learners.build(name, F, memory, seed=seed, **settings)

    check(make)


def test_logits_without_the_network_that_computes_them_are_noticed() -> None:
    class Reversed(learners.TinyER):
        def logits(self, Z: Tensor) -> Tensor:
            return -super().logits(Z)

    with pytest.raises(AssertionError, match=r"network\(\) does not compute"):
        check_exported_network(lambda F, memory, seed: Reversed(F, memory, lr=0.1, seed=seed))
