"""Methods that differ from another only by constants or by their memory: functions, not classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

from verse.learners.base import Learner
from verse.learners.der import DER
from verse.learners.lamaml import LaMAML
from verse.learners.replay import TinyER
from verse.learners.shared.trigger import DEFAULT
from verse.learners.slda import SLDA
from verse.learners.traits import Traits
from verse.learners.vcl import VCL
from verse.learners.verse import VERSE
from verse.memory.base import Memory
from verse.memory.ring import Ring
from verse.network.plastic import Plastic
from verse.settings import about


@dataclass(frozen=True)
class Variant:
    """A named setting of a learner."""

    name: str
    make: Callable[..., Learner]
    traits: Traits

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self.make.__doc__ or ""


def fifo(
    F: Plastic,
    memory: Memory,
    *,
    lr: float = 0.01,
    C: int = 16,
    clip: float | None = 1.0,
    seed: int = 0,
) -> TinyER:
    """Replay from a ring of the latest samples."""
    return TinyER(F, Ring.like(memory), lr=lr, C=C, clip=clip, seed=seed)


def derpp(
    F: Plastic,
    memory: Memory,
    *,
    lr: float = 0.01,
    alpha: float = 0.2,
    beta: float = 0.5,
    later: str = "ignore",
    C: int = 16,
    clip: float | None = 1.0,
    seed: int = 0,
) -> DER:
    """DER with the labels of a second draw from memory.

    ``beta`` is the authors' value for batches of as many new samples as old ones. Here it weighs
    the mean of C old ones against a single new one: a fair comparison tries larger values, too.
    """
    return DER(F, memory, lr=lr, alpha=alpha, beta=beta, later=later, C=C, clip=clip, seed=seed)


def c_maml(
    F: Plastic,
    memory: Memory,
    *,
    lr: float = 0.01,
    C: int = 16,
    clip: float | None = 2.0,
    seed: int = 0,
) -> LaMAML:
    """Look-ahead MAML with one fixed rate, for the step ahead and for the weights."""
    return LaMAML(F, memory, lr=lr, eta=0.0, C=C, clip=clip, seed=seed)


def tinyer_c48(
    F: Plastic, memory: Memory, *, lr: float = 0.01, clip: float | None = 1.0, seed: int = 0
) -> TinyER:
    """Replay with 48 draws: as many as VERSE uses in a step."""
    return TinyER(F, memory, lr=lr, C=48, clip=clip, seed=seed)


def tinyer_two_steps(
    F: Plastic,
    memory: Memory,
    *,
    lr: float = 0.01,
    C: int = 16,
    clip: float | None = 1.0,
    seed: int = 0,
) -> TinyER:
    """Replay with two updates a sample: as many gradients as VERSE computes."""
    return TinyER(F, memory, lr=lr, C=C, steps=2, clip=clip, seed=seed)


def verse_no_virtual(
    F: Plastic,
    memory: Memory,
    *,
    beta: float = 0.01,
    lam: float = 0.3,
    gamma: float = 0.9,
    r: float = 0.05,
    C: int = 16,
    clip: float | None = 1.0,
    seed: int = 0,
) -> VERSE:
    """VERSE with α = 0: replay and distillation without the virtual step."""
    return VERSE(
        F, memory, alpha=0.0, beta=beta, lam=lam, gamma=gamma, r=r, C=C, clip=clip, seed=seed
    )


def slda_grid(
    F: Plastic, memory: Memory | None = None, *, shrinkage: float | None = 0.1, seed: int = 0
) -> SLDA:
    """SLDA with one covariance over the quarters of a map, as ``verse-joint`` looks at them."""
    return SLDA(F, memory, shrinkage=shrinkage, features="grid", seed=seed)


def coreset_vcl(
    F: Plastic,
    memory: Memory,
    *,
    epochs: Annotated[int, about("epochs over the replay buffer at an evaluation", least=0)] = 100,
    N: int = 100,
    lr_var: float = 1.0,
    draws: int = 10,
    predict_draws: int = 100,
    plastic_body: bool = True,
    C: int = 16,
    trigger: str = DEFAULT,
    lr: float = 0.01,
    clip: float | None = 1.0,
    seed: int = 0,
) -> VCL:
    """VCL whose copy is fitted on the samples in memory before an evaluation."""
    return VCL(
        F,
        memory,
        coreset_epochs=epochs,
        N=N,
        lr_var=lr_var,
        draws=draws,
        predict_draws=predict_draws,
        plastic_body=plastic_body,
        C=C,
        trigger=trigger,
        lr=lr,
        clip=clip,
        seed=seed,
    )


VARIANTS = (
    Variant("fifo", fifo, TinyER.traits),
    Variant("derpp", derpp, DER.traits),
    Variant("c-maml", c_maml, LaMAML.traits),
    Variant("tinyer-c48", tinyer_c48, TinyER.traits),
    Variant("tinyer-2step", tinyer_two_steps, TinyER.traits),
    Variant("verse-no-virtual", verse_no_virtual, VERSE.traits),
    Variant("slda-grid", slda_grid, SLDA.traits),
    Variant(
        "coreset-vcl",
        coreset_vcl,
        replace(
            VCL.traits, fine_tuning=True, subset_replay=False, inference_time="ζ(n)", buffer="-"
        ),
    ),
)
