"""VCL and coreset VCL: variational continual learning."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.gaussian_head import expected_cross_entropy, kl_gradient, log_predictive
from verse.kernels.randomness import Random
from verse.learners.base import Learner, require, require_settings
from verse.learners.shared.outputs import without_row
from verse.learners.shared.trigger import DEFAULT, Trigger, When, task_traits
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, Rate, about
from verse.types import BadSetting

START_LOG_VAR = -6.0  # the authors' first posterior
PRIOR_MEAN, PRIOR_LOG_VAR = 0.0, 0.0  # the authors' first prior, N(0, 1)


class VCL(Learner):
    """Variational continual learning: the posterior so far is the next prior.

    C. V. Nguyen et al., "Variational continual learning", ICLR 2018. With independent Gaussians
    q = N(μ, σ²) over the head's weights and p the prior, N(0, 1) at first::

        μ, log σ²  ←  descent on  E_q[ CE(z_t, y_t) ] + KL(q ‖ p) / N
        p ← q                                                     at the trigger

    The expectation takes ``draws`` draws (10), a prediction ``predict_draws`` (100), always with
    the same noise, so that equal questions have equal answers.

    Adapted: a task's end is the ``trigger``, and ``N`` (a task's number of samples) a setting. The
    head is Bayesian, the body learns by SGD from the same loss (``plastic_body=False``: stays as
    it is): draws of a whole convolutional network for every prediction would cost a hundred
    forward passes. One SGD step a sample replaces many epochs of Adam, so log σ² has its own rate.

    With ``coreset_epochs`` it is coreset VCL: ``consolidate`` fits a copy of q on the samples in
    memory, which predicts until the next sample is learned and is then dropped, as the authors
    do. They hold the coreset back from q; here a sample that memory keeps was also learned.

    >>> from verse.network.plastic import Head
    >>> learner = VCL(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "vcl"
    traits: ClassVar[Traits] = task_traits(
        "a trigger stands for the end of a task; the head alone is Bayesian, as draws of a whole "
        "convolutional network are too slow for a stream; one step of SGD a sample"
    )
    STATE: ClassVar[tuple[str, ...]] = (
        "clock",
        "learned",
        "log_var",
        "prior_mean",
        "prior_log_var",
        "tuned",
    )

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        N: Annotated[int, about("samples over which the KL of a task is spread", least=1)] = 100,
        lr_var: Annotated[float, about("learning rate of log σ²", least=0)] = 1.0,
        draws: Annotated[int, about("weights drawn for a step", least=1)] = 10,
        predict_draws: Annotated[int, about("weights drawn for an answer", least=1)] = 100,
        plastic_body: Annotated[bool, about("whether the body learns, too")] = True,
        coreset_epochs: Annotated[
            int, about("epochs over the replay buffer at an evaluation", least=0)
        ] = 0,
        C: Annotated[int, about("batch size over the replay buffer", least=1)] = 16,
        trigger: When = DEFAULT,
        lr: Rate = 0.01,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(VCL, locals())
        super().__init__(F, memory if coreset_epochs else None, seed=seed)
        require(not coreset_epochs or memory is not None, "a coreset needs a memory")
        self.N, self.lr, self.lr_var, self.clip = N, lr, lr_var, clip
        self.draws, self.predict_draws, self.plastic_body = draws, predict_draws, plastic_body
        self.coreset_epochs, self.C, self.trigger = coreset_epochs, C, trigger
        self.clock = Trigger(trigger)
        self.learned = 0  # outputs that had a sample before this one
        # [n, d + 1], replaced in every change, so that a refused sample is taken back; μ is in θ
        self.log_var = self.prior_mean = self.prior_log_var = torch.zeros(
            0, F.head.d + 1, device=self.device
        )
        self.tuned: Tensor | None = None  # [2, n, d + 1]: μ and log σ² fitted on the coreset

    @property
    def mean(self) -> Tensor:
        """μ [n, d + 1], a copy of the head's weights and biases."""
        views = self.theta.layout.views(self.theta.data)
        n = self.theta.n
        return torch.cat((views["head.weight"][:n], views["head.bias"][:n, None]), 1)

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.remember()
        mean, log_var, n = self.mean, self.log_var, self.theta.n
        noise = self.random.normal_tensor((self.draws, 1, n)).to(self.device)
        target = torch.tensor([y], device=self.device)
        head: list[Tensor] = []

        def loss(e: Tensor) -> tuple[Tensor, Tensor]:
            value, de, *by_head = expected_cross_entropy(e, target, mean, log_var, noise)
            head.extend(by_head)
            return value, de if self.plastic_body else torch.zeros_like(de)

        _, g = self.theta.body_gradient(z, loss)
        kl_mean, kl_log_var = kl_gradient(mean, log_var, self.prior_mean, self.prior_log_var)
        by_mean = head[0] + kl_mean / self.N
        views = self.theta.layout.views(g)
        views["head.weight"][:n] = by_mean[:, :-1]
        views["head.bias"][:n] = by_mean[:, -1]
        self.descend(g, self.lr, self.clip)
        self.log_var = log_var - self.lr_var * (head[1] + kl_log_var / self.N)
        self.learned = n
        self.tuned = None
        if self.memory is not None:
            self.memory.add(z[0], y)

    def new_output(self, output: int) -> None:
        row = self.log_var.new_ones(1, self.log_var.shape[1])
        self.log_var = torch.cat((self.log_var, START_LOG_VAR * row))
        self.prior_mean = torch.cat((self.prior_mean, PRIOR_MEAN * row))
        self.prior_log_var = torch.cat((self.prior_log_var, PRIOR_LOG_VAR * row))

    def drop_output(self, output: int, into: int | None) -> None:
        self.learned -= output < self.learned
        self.tuned = None
        self.log_var = without_row(self.log_var, output)
        self.prior_mean = without_row(self.prior_mean, output)
        self.prior_log_var = without_row(self.prior_log_var, output)

    def remember(self) -> None:
        """p ← q, but for an output that has just arrived: it has learned nothing."""
        k = self.learned
        self.prior_mean = torch.cat((self.mean[:k], self.prior_mean[k:]))
        self.prior_log_var = torch.cat((self.log_var[:k], self.prior_log_var[k:]))

    @torch.no_grad()
    def consolidate(self) -> None:
        if self.clock.due_at_event():
            self.remember()
        if self.coreset_epochs and self.tuned is None and self.memory is not None and self.memory:
            self.tuned = self.fit_coreset(self.memory)

    def fit_coreset(self, coreset: Memory) -> Tensor:
        """μ and log σ² after ``coreset_epochs`` over the coreset, with q as their prior."""
        every = coreset.all()
        e = self.theta.embed(every.z)
        prior = self.mean, self.log_var
        mean, log_var = prior
        for _ in range(self.coreset_epochs):
            order = torch.from_numpy(self.random.numpy.permutation(len(every))).to(self.device)
            for first in range(0, len(every), self.C):
                rows = order[first : first + self.C]
                noise = self.random.normal_tensor((self.draws, len(rows), mean.shape[0]))
                _, _, by_mean, by_log_var = expected_cross_entropy(
                    e[rows], every.y[rows], mean, log_var, noise.to(self.device)
                )
                kl_mean, kl_log_var = kl_gradient(mean, log_var, *prior)
                by_mean = by_mean + kl_mean / len(every)
                mean = mean - self.lr * self.clip_scale(by_mean, self.clip) * by_mean
                log_var = log_var - self.lr_var * (by_log_var + kl_log_var / len(every))
        return torch.stack((mean, log_var))

    def logits(self, Z: Tensor) -> Tensor:
        """Log probabilities, averaged over draws of the weights."""
        mean, log_var = (self.mean, self.log_var) if self.tuned is None else self.tuned
        noise = Random(self.seed, 2).normal_tensor((self.predict_draws, self.theta.n))
        return log_predictive(self.theta.embed(Z), mean, log_var, noise.to(self.device))

    def network(self) -> torch.nn.Module:
        raise BadSetting("vcl answers with draws of its weights, which is no network to export")
