"""A plastic network by plain autograd in double precision, to check learners against.

It shares no code with the learners: its parameters are ordinary tensors and its gradients come
from ``torch.autograd``. New rows of the head are drawn as the contract says they are.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from verse.network.plastic import Plastic


class Reference:
    def __init__(self, F: Plastic, classes: int, seed: int = 0) -> None:
        self.body = copy.deepcopy(F.body).double().eval().requires_grad_(True)
        self.d = F.head.d
        self.W = torch.zeros(classes, self.d, dtype=torch.float64, requires_grad=True)
        self.b = torch.zeros(classes, dtype=torch.float64, requires_grad=True)
        self.labels: list[int] = []
        self.dice = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, 0))))

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.body.parameters(), self.W, self.b]

    @property
    def flat(self) -> Tensor:
        return torch.cat([p.detach().reshape(-1) for p in self.parameters])

    def welcome(self, label: int) -> int:
        """The output of a label; a new label gets a row from ±1/√d."""
        if label not in self.labels:
            row = self.dice.uniform(-(self.d**-0.5), self.d**-0.5, self.d + 1).astype(np.float32)
            with torch.no_grad():
                self.W[self.n] = torch.from_numpy(row[:-1]).double()
                self.b[self.n] = float(row[-1])
            self.labels.append(label)
        return self.labels.index(label)

    def scores(self, Z: Tensor) -> Tensor:
        return self.body(Z.double()) @ self.W[: self.n].t() + self.b[: self.n]

    def gradient(self, value: Tensor) -> Tensor:
        parts = torch.autograd.grad(value, self.parameters, allow_unused=True)
        return torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).reshape(-1)
                for p, g in zip(self.parameters, parts, strict=True)
            ]
        )

    def move(self, by: Tensor) -> None:
        at = 0
        with torch.no_grad():
            for p in self.parameters:
                p += by[at : at + p.numel()].view(p.shape)
                at += p.numel()

    def spring_step(
        self,
        g: Tensor,
        lr: float,
        lam: float,
        omega: Tensor,
        anchor: Tensor,
        penalty: str,
        clip: float = float("inf"),
    ) -> Tensor:
        """One step on a loss of gradient g and λ Σ Ω (θ − θ*)²; returns how θ moved."""
        before = self.flat
        if penalty == "explicit":
            g = g + 2 * lam * omega * (before - anchor)
        after = before - lr * g * min(1.0, clip / max(float(g.norm()), 1e-30))
        if penalty == "implicit":
            after = (after + 2 * lr * lam * omega * anchor) / (1 + 2 * lr * lam * omega)
        self.move(after - before)
        return after - before

    def live(self, flat: Tensor, n: int) -> Tensor:
        """Mask of the parameters that exist with ``n`` outputs."""
        mask = torch.ones_like(flat, dtype=torch.bool)
        bias, weight = len(self.b), self.W.numel()
        mask[-bias:] = torch.arange(bias) < n
        mask[-bias - weight : -bias] = torch.arange(weight) < n * self.d
        return mask


def flat_of(vector, classes: int) -> Tensor:
    """A learner's Vector in the order of ``Reference.flat``."""
    views = vector.layout.views(vector.data)
    return torch.cat(
        [
            (v[:classes] if name.startswith("head.") else v).double().reshape(-1)
            for name, v in views.items()
        ]
    )


def mixed(stream: list) -> list:
    """The same 36 samples with classes interleaved; each class arrives at another time."""
    return [stream[7 * t % len(stream)] for t in range(len(stream))]
