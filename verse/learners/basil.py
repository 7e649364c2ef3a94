"""BaSiL: a Bayesian linear layer, updated by one sample at a time."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy, ragged_mse
from verse.learners.base import Learner, require_settings
from verse.learners.shared.answers import FIELDS, answer_fields, drop_answers
from verse.learners.shared.outputs import without_row
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.doubtful import Doubtful
from verse.network.plastic import Plastic
from verse.settings import Clip, about
from verse.types import BadSetting

CHOICES = ("uncertainty", "loss", "uniform")
POOL = 4  # candidates looked at for every sample that is replayed


class BaSiL(Learner):
    """A Gaussian posterior over the linear layer, updated with every sample.

    S. Banerjee, V. K. Verma, V. P. Namboodiri, "Streaming lifelong learning with any-time
    inference", ICRA 2023. Inspired by it: the authors' code is not public, and this follows the
    abstract, which names a Bayesian update from a single example, snapshot self-distillation, a
    choice of what to rehearse and a rule of what to replace. With x = (φ(z), 1), p = softmax(W x)
    and the weights W_k ~ N(w_k, 1/Λ_k), element by element, starting with Λ = 1/lr::

        Λ_k ← Λ_k + p_k (1 − p_k) x²                            (evidence of the new sample alone)
        w   ← w − (1/Λ) ⊙ ∇ [ CE({new} ∪ M') + lam · MSE(W x', h') over M' ]

    one Newton step of the diagonal Laplace approximation, with the old posterior as the prior. h'
    are the logits at a sample's last visit, its snapshot. M' are C of 4 C random candidates, half
    of them the most and half the least doubtful, by predictive entropy or loss at the last visit
    (``by``); the less doubtful of the largest class are the likelier to be replaced. Answers are
    moderated by their variance, softmax(W x / √(1 + π v/8)), D. J. C. MacKay, Neural Computation
    1992. The body stays as it was: the authors train linear layers only.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = BaSiL(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "basil"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        buffer="≤ 5 %",
        fidelity="adapted",
        adaptation="inspired by the paper, not a reproduction: no public code, written from its "
        "abstract; the Bayesian update is a diagonal Laplace step on the linear layer",
    )
    STATE: ClassVar[tuple[str, ...]] = ("precision",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Annotated[
            float, about("learning rate: the prior variance of a weight", above=0)
        ] = 0.01,
        lam: Annotated[float, about("weight of the stored logits", least=0)] = 0.3,
        by: Annotated[str, about("which samples are replayed", one_of=CHOICES)] = "uncertainty",
        C: Annotated[int, about("samples replayed in a step", least=2)] = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(BaSiL, locals())
        # also the snapshot of the logits, and how doubtful the sample was at its last visit
        super().__init__(F, Doubtful.like(memory), FIELDS | {"doubt": ()}, seed=seed)
        self.lr, self.lam, self.by, self.C, self.clip = lr, lam, by, C, clip
        self.memory: Memory
        self.precision = torch.zeros(0, F.head.d + 1, device=self.device)  # Λ

    def new_output(self, output: int) -> None:
        prior = self.precision.new_full((1, self.precision.shape[1]), 1 / self.lr)
        self.precision = torch.cat((self.precision, prior))

    def drop_output(self, output: int, into: int | None) -> None:
        self.precision = without_row(self.precision, output)
        drop_answers(self.memory, output)

    def step(self, z: Tensor, y: int) -> None:
        memory, visited = self.memory, self.choose()
        old = memory.rows(visited)
        labels = torch.cat((torch.tensor([y], device=self.device), old.y))
        x = self._inputs(torch.cat((z, old.z)))  # [1 + C, d + 1]
        w = self._weights()
        scores = x @ w.t()
        _, ds = cross_entropy(labels)(scores)
        if len(old):
            ds[1:] += ragged_mse(old.extra["logits"], old.extra["width"], self.lam)(scores[1:])[1]
        g = ds.t() @ x

        p = torch.softmax(scores[:1], 1)
        precision = self.precision + (p * (1 - p)).t() * x[:1].square()
        w = w - self.clip_scale(g, self.clip) * g / precision
        after = x @ w.t()
        doubt = self.doubt(after, labels)

        self.precision = precision
        head = self.theta.layout.views(self.theta.data)
        head["head.weight"][: self.theta.n] = w[:, :-1]
        head["head.bias"][: self.theta.n] = w[:, -1]
        self.theta.sync()
        held = len(memory)
        said = answer_fields(memory, after) | {"doubt": doubt}
        if len(memory) == held:  # else a budget in bytes shrank and moved the slots
            for name, values in said.items():
                memory.fields[name][visited] = values[1:]
        memory.add(z[0], y, **{name: values[0] for name, values in said.items()})

    def choose(self) -> Tensor:
        """Slots of C samples: the most and the least doubtful of some random candidates."""
        pool = self.memory.draw(self.C if self.by == "uniform" else POOL * self.C)
        if len(pool) <= self.C:
            return pool
        ranked = pool[self.memory.fields["doubt"][pool].argsort(stable=True)]
        most = self.C // 2
        return torch.cat((ranked[: self.C - most], ranked[-most:]))

    def doubt(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Entropy of the answer, or loss of the label, for every row."""
        log_p = torch.log_softmax(scores, 1)
        if self.by == "loss":
            return -log_p.gather(1, labels.view(-1, 1)).view(-1)
        return -(log_p.exp() * log_p).sum(1)

    def _inputs(self, Z: Tensor) -> Tensor:
        return torch.nn.functional.pad(self.theta.embed(Z), (0, 1), value=1.0)

    def _weights(self) -> Tensor:
        head, n = self.theta.layout.views(self.theta.data), self.theta.n
        return torch.cat((head["head.weight"][:n], head["head.bias"][:n].view(-1, 1)), 1)

    def logits(self, Z: Tensor) -> Tensor:
        x = self._inputs(Z)
        variance = x.square() @ (1 / self.precision).t()
        return x @ self._weights().t() / torch.sqrt(1 + math.pi / 8 * variance)

    def network(self) -> torch.nn.Module:
        raise BadSetting(
            "basil answers with the variance of its weights, which is no network to export"
        )
