"""iCaRL: the nearest mean of exemplars, on an embedding that is distilled from its former self."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from verse.backbones.outputs import UnitLength
from verse.kernels.losses import binary_cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.shared.exemplar_means import ExemplarMeans, make_means_layer, score_means
from verse.learners.shared.trigger import DEFAULT, Trigger, When
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.herding import Herding
from verse.network.plastic import Plastic
from verse.settings import Clip, DrawsOrNone, Rate


class ICaRL(Learner):
    """Exemplars chosen by herding; predicts the class with the nearest exemplar mean.

    S.-A. Rebuffi et al., "iCaRL: incremental classifier and representation learning", CVPR 2017.
    With targets t of one for the true class, σ(F_teacher(z))_k for the other classes k that the
    teacher knows, and zero for the rest; φ the embedding scaled to length one, and μ_c the mean of
    φ over the exemplars of class c, scaled likewise::

        θ ← θ − lr ∇ mean over {(z_t, y_t)} ∪ C draws of Σ_k BCE(σ(F_θ(z))_k, t_k)
        answer: argmin_c ‖φ(z) − μ_c‖

    Adapted: the teacher is the network at the last ``trigger``, not at the end of a task; because
    a class may go on arriving after that, its own output is always taught by the label; exemplars
    are herded as they come (see ``Herding``), by their embeddings at arrival, which are stored.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = ICaRL(F, Reservoir(10))
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "icarl"
    traits: ClassVar[Traits] = Traits(
        kind="batch",
        batch_size="≫ 1",
        single_pass=False,
        training_time="ζ(n)",
        buffer="-",
        violates_cisll=True,
        fidelity="adapted",
        adaptation="a trigger stands for the end of a task; exemplars are herded one at a time, "
        "by the embeddings at arrival; the true class is always taught by its label",
    )
    STATE: ClassVar[tuple[str, ...]] = ("clock", "teacher", "known", "learned")
    ANSWERS_FROM_MEMORY: ClassVar[bool] = True

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        C: DrawsOrNone = 16,
        trigger: When = DEFAULT,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(ICaRL, locals())
        # also the embedding at arrival, of length one, which herding compares
        super().__init__(F, Herding.like(memory), {"e": (F.head.d,)}, seed=seed)
        self.lr, self.C, self.trigger, self.clip = lr, C, trigger, clip
        self.memory: Memory
        self.clock = Trigger(trigger)
        self.teacher = self.theta.copy()
        self.known = 0  # outputs the teacher knows
        self.learned = 0  # outputs that had a sample before this one
        self._means = ExemplarMeans()

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.protect(self.teacher.data, self.teacher.stats)
            self._remember()
        old = self.memory.sample(self.C)
        Z = torch.cat((z, old.z))
        labels = torch.cat((torch.tensor([y], device=self.device), old.y))
        target = self.targets(Z, labels)
        e = self._phi(z)[0]
        _, g = self.theta.gradient(Z, binary_cross_entropy(target))
        self.descend(g, self.lr, self.clip)
        self.learned = len(self.labels)
        self.memory.add(z[0], y, e=e)

    def targets(self, Z: Tensor, labels: Tensor) -> Tensor:
        """What each sigmoid is taught, [n, classes]."""
        own = one_hot(labels, len(self.labels)).float()
        target = own.clone()
        if self.known:
            target[:, : self.known] = torch.sigmoid(self.teacher.scores(Z)[:, : self.known])
        return torch.maximum(target, own)

    def drop_output(self, output: int, into: int | None) -> None:
        self.known -= output < self.known
        self.learned -= output < self.learned

    def _remember(self) -> None:
        self.teacher.assign(self.theta)
        self.known = self.learned

    @torch.no_grad()
    def consolidate(self) -> None:
        if self.clock.due_at_event():
            self._remember()

    def logits(self, Z: Tensor) -> Tensor:
        """−‖φ(z) − μ_c‖² for every class."""
        return score_means(self._phi(Z), self._class_means())

    def network(self) -> torch.nn.Module:
        F = self.theta.freeze(*make_means_layer(self._class_means()))
        return torch.nn.Sequential(F.body, UnitLength(), F.head)

    def _phi(self, Z: Tensor) -> Tensor:
        return normalize(self.theta.embed(Z))

    def _class_means(self) -> Tensor:
        n, d = len(self.labels), self.F.head.d
        return self._means(self.memory, n, d, self._phi, self.theta.data)
