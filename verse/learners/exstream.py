"""ExStream: prototypes of each class, merged when they are too many, and all replayed."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.prototypes import Prototypes
from verse.network.plastic import Plastic
from verse.settings import Clip, Rate, about
from verse.types import Refused


class ExStream(Learner):
    """Prototypes per class that are merged; the last layer learns from all of them.

    T. Hayes, N. Cahill, C. Kanan, "Memory efficient experience replay for streaming learning",
    ICRA 2019. With embeddings e = body(z) of the start weights and a full memory, the two closest
    prototypes (a, b) of the largest class make room for the new one::

        e_a ← (n_a e_a + n_b e_b) / (n_a + n_b),  n_a ← n_a + n_b,  e_b ← e_t,  n_b ← 1
        W ← W − lr ∇ CE(B; W)   for every mini-batch B of one shuffled pass over all prototypes

    Only the last layer learns. Replaying the whole memory breaks the rule of subset replay; that
    is the method. With a budget per class, a class merges when its own share is full.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import ClassBalanced
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = ExStream(F, ClassBalanced(4), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t // 10], t // 10)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "exstream"
    class_shares: ClassVar[bool] = True
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        subset_replay=False,
        buffer="≤ 5 %",
        violates_cisll=True,
        fidelity="adapted",
        adaptation="SGD on the linear layer instead of Adam on a network of three layers, so that "
        "all methods share optimiser and head; the authors' single-buffer form, because a total "
        "budget cannot be split among classes that are not known yet.",
    )

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        batch: Annotated[int, about("batch size of a pass over all prototypes", least=1)] = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(ExStream, locals())
        super().__init__(F, Prototypes.like(memory), {"z": (F.head.d,)}, seed=seed)
        self.lr, self.batch, self.clip = lr, batch, clip
        self.memory: Prototypes

    def step(self, z: Tensor, y: int) -> None:
        e = self.theta.embed(z)[0]
        self.memory.require_storable(e)
        plan = self.memory.plan(e, y)  # carried out last, when nothing can fail any more
        outputs = self.memory.outputs_after(plan, y)

        # one pass over all prototypes as they will be, in mini-batches of about equal size
        head, n = self.theta.layout.views(self.theta.data), len(self.labels)
        weight, bias = head["head.weight"][:n].clone(), head["head.bias"][:n].clone()
        order = torch.from_numpy(self.random.numpy.permutation(len(outputs))).to(self.device)
        batches = -(-len(outputs) // self.batch)
        rows = self.memory.rows_after(plan, order).tensor_split(batches)
        right = one_hot(outputs[order], n).to(weight).tensor_split(batches)
        gradient = weight.new_empty(weight.numel() + n)
        g_weight, g_bias = gradient[:-n].view_as(weight), gradient[-n:]
        for E, target in zip(rows, right, strict=True):
            # the derivative of the mean cross-entropy by the scores
            slope = torch.addmm(bias, E, weight.t()).softmax(1).sub_(target).div_(len(E))
            torch.mm(slope.t(), E, out=g_weight)
            torch.sum(slope, 0, out=g_bias)
            rate = self.lr * self.clip_scale(gradient, self.clip)
            weight.sub_(g_weight, alpha=rate)
            bias.sub_(g_bias, alpha=rate)
        if not bool(torch.isfinite(weight).all() and torch.isfinite(bias).all()):
            raise Refused("the last layer would no longer be finite; nothing was learned")

        head["head.weight"][:n] = weight
        head["head.bias"][:n] = bias
        self.theta.sync()
        self.memory.carry_out(plan, y)
