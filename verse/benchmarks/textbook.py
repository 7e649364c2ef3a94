"""Algorithm 1 of VERSE written plainly, as one writes it first: what the library is compared with.

A deep copy for θ_v, one forward for every set of samples, automatic differentiation, a list as
memory, plain loops over parameters. Eager PyTorch for G.
"""

from __future__ import annotations

import copy
import random

import torch
import torch.nn.functional as nn_F
from torch import Tensor, nn

from verse.backbones.preprocess import Preprocessor


class TextbookVERSE:
    """The learner; its settings have VERSE's names and defaults."""

    def __init__(
        self,
        F: nn.Module,
        *,
        alpha: float = 0.005,
        beta: float = 0.01,
        lam: float = 0.3,
        gamma: float = 0.9,
        r: float = 0.05,
        C: int = 16,
        clip: float = 1.0,
        capacity: int = 200,
        seed: int = 0,
    ) -> None:
        self.F = copy.deepcopy(F).requires_grad_(True)
        self.phi = copy.deepcopy(F).requires_grad_(False)
        self.alpha, self.beta, self.lam, self.gamma, self.r = alpha, beta, lam, gamma, r
        self.C, self.clip, self.capacity, self.seen = C, clip, capacity, 0
        self.memory: list[tuple[Tensor, int]] = []
        self.random = random.Random(seed)

    def draw(self) -> tuple[Tensor, Tensor]:
        samples = self.random.sample(self.memory, min(self.C, len(self.memory)))
        return torch.stack([z for z, _ in samples]), torch.tensor([y for _, y in samples])

    def gradients(self, network: nn.Module, loss: Tensor) -> list[Tensor]:
        parameters = list(network.parameters())
        gradients = torch.autograd.grad(loss, parameters)
        norm = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))
        scale = min(1.0, self.clip / float(norm))
        return [g * scale for g in gradients]

    def learn_one(self, z: Tensor, y: int) -> None:
        if self.memory:
            z_v, y_v = self.draw()
            z_v, y_v = torch.cat([z.unsqueeze(0), z_v]), torch.cat([torch.tensor([y]), y_v])
        else:
            z_v, y_v = z.unsqueeze(0), torch.tensor([y])
        virtual = copy.deepcopy(self.F)
        loss = nn_F.cross_entropy(virtual(z_v), y_v)
        gradients = self.gradients(virtual, loss)
        with torch.no_grad():
            for p, g in zip(virtual.parameters(), gradients, strict=True):
                p.sub_(self.alpha * g)
        z_l, _ = self.draw() if self.memory else (z_v, y_v)
        z_m, y_m = self.draw() if self.memory else (z_v, y_v)
        with torch.no_grad():
            teacher = self.phi(z_l)
        loss = nn_F.cross_entropy(virtual(z_m), y_m)
        loss = loss + self.lam * nn_F.mse_loss(virtual(z_l), teacher)
        gradients = self.gradients(virtual, loss)
        with torch.no_grad():
            for p, g in zip(self.F.parameters(), gradients, strict=True):
                p.sub_(self.beta * g)
            if self.random.random() < self.r:
                for slow, fast in zip(self.phi.parameters(), self.F.parameters(), strict=True):
                    slow.mul_(self.gamma).add_((1 - self.gamma) * fast)
        self.seen += 1
        if len(self.memory) < self.capacity:
            self.memory.append((z, y))
        else:
            place = self.random.randrange(self.seen)
            if place < self.capacity:
                self.memory[place] = (z, y)


class TextbookPipeline:
    """Decode, eager G, textbook step."""

    def __init__(
        self, preprocess: Preprocessor, network: nn.Module, learner: TextbookVERSE
    ) -> None:
        self.preprocess, self.learner = preprocess, learner
        self.network = copy.deepcopy(network).eval()
        for p in (*self.network.parameters(), *self.network.buffers()):
            p.data = p.data.contiguous()  # as a network lies by default

    def learn_one(self, image: object, y: int) -> None:
        x = torch.from_numpy(self.preprocess(image).copy()).unsqueeze(0)
        with torch.no_grad():
            z = self.network(x)[0].contiguous()
        self.learner.learn_one(z, y)
