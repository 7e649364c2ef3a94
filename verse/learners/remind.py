"""REMIND: replay of features that are stored as a few bytes each."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.crops import random_resized_crops
from verse.kernels.losses import soft_cross_entropy
from verse.kernels.maps import Maps
from verse.kernels.product_quantizer import ENGINES, ProductQuantizer, parts_for
from verse.learners.base import Learner, require, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.class_balanced import ClassBalanced
from verse.memory.reservoir import Reservoir
from verse.memory.storage import Field
from verse.network.plastic import Plastic
from verse.network.vector import Vector
from verse.settings import Clip, DrawsOrNone, Momentum, WeightDecay, about
from verse.types import BadSetting, Batch

MOST_VECTORS = 256 * 256  # that k-means looks at


class REMIND(Learner):
    """Replay of compressed features, with random crops and mixup.

    T. Hayes et al., "REMIND your neural network to prevent catastrophic forgetting", ECCV 2020.
    With q = decode ∘ encode of a product quantiser, λ ~ Beta(a, a), and two draws A, B of C codes
    each, cropped and resized at random as the new one is::

        D = {(q(z_t), y_t)} ∪ {(λ z_A + (1 − λ) z_B, λ y_A + (1 − λ) y_B)}
        v ← 0.9 v + ∇ CE(D; θ) + w θ,   θ ← θ − lr · 0.01^(100 ⌊n_y / 100⌋ / 1300) v

    where n_y counts the samples of y_t's class; then the codes enter memory, where a random item
    of the largest class makes room. Answers see q(z) too.

    The quantiser is trained by ``fit`` on other data, or on the first ``base`` samples of the
    stream. Those are kept as they are until then, outside the memory's budget, and are learned
    and replayed without quantisation.

    >>> from verse.network.plastic import Head
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = REMIND(F, ClassBalanced(10), base=8, lr=0.1)
    >>> for t in range(40):
    ...     learner.learn_one(torch.eye(2)[t // 4 % 2], t // 4 % 2)
    >>> learner.predict_one(torch.eye(2)[0]), learner.memory.item_bytes
    (0, 9)
    """

    name: ClassVar[str] = "remind"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        buffer="≫ 10 %",
        fidelity="adapted",
        adaptation="no base training of the network, only of the codec, on the first samples or "
        "by fit; batch normalisation as F says (the authors': train mode); clipped gradients; "
        "C = 16 and lr = 0.01 as for every method (the authors': 50 and 0.1).",
    )
    STATE: ClassVar[tuple[str, ...]] = ("velocity", "seen", "codebooks", "raw")

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        base: Annotated[int, about("first samples, which train the quantiser", least=1)] = 100,
        parts: Annotated[int | None, about("codebooks; none: one for 16 channels", least=1)] = None,
        codebook_size: Annotated[int, about("entries of a codebook", least=1, most=256)] = 256,
        codec: Annotated[str, about("which library trains and encodes", one_of=ENGINES)] = "torch",
        lr: Annotated[float, about("learning rate at the first sample of a class", above=0)] = 0.01,
        lr_step: Annotated[int, about("samples of a class per learning-rate step", least=1)] = 100,
        lr_span: Annotated[
            int, about("samples of a class to the lowest learning rate", least=1)
        ] = 1300,
        lr_last: Annotated[
            float, about("lowest learning rate, relative to lr", above=0, most=1)
        ] = 0.01,
        C: DrawsOrNone = 16,
        momentum: Momentum = 0.9,
        weight_decay: WeightDecay = 1e-5,
        mixup: Annotated[float, about("α of mixup's Beta(α, α); 0: no mixup", least=0)] = 0.1,
        smallest_crop: Annotated[
            float, about("smallest area of a crop, relative", above=0, most=1)
        ] = 2 / 7,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(REMIND, locals())
        self.maps = Maps(F.z_shape, channels_last=F.channels_last)
        channels = self.maps.channels
        self.parts = parts
        self.code_length = parts_for(channels) if parts is None else parts
        require(
            self.code_length >= 1 and channels % self.code_length == 0,
            f"parts must divide the {channels} channels of a feature, {parts} does not",
        )
        codes = ClassBalanced.like(memory)
        stored = Field((self.maps.positions, self.code_length), torch.uint8)
        super().__init__(F, codes, {"z": stored}, seed=seed)
        self.base, self.codebook_size, self.codec, self.C = base, codebook_size, codec, C
        self.lr, self.lr_step, self.lr_span, self.lr_last = lr, lr_step, lr_span, lr_last
        self.momentum, self.weight_decay, self.clip = momentum, weight_decay, clip
        self.mixup, self.smallest_crop = mixup, smallest_crop
        self.memory: Memory = codes
        self.velocity = Vector(self.theta.layout, self.device)
        self.seen: list[int] = []  # samples of each class
        self.codebooks: Tensor | None = None
        self.raw = Reservoir(base, seed=seed)  # the base set, until the codec is trained
        self.raw.allocate(self.device, z=self.F.stored_shape)
        self._quantizer: ProductQuantizer | None = None

    def new_output(self, output: int) -> None:
        self.seen.append(0)

    def drop_output(self, output: int, into: int | None) -> None:
        if into is not None:
            self.seen[into] += self.seen[output]
        del self.seen[output]

    # ---- the codec --------------------------------------------------------------------------

    @property
    def quantizer(self) -> ProductQuantizer | None:
        """The trained codec; it follows from the codebooks, which are the state."""
        if self.codebooks is None:
            return None
        if self._quantizer is None or self._quantizer.codebooks is not self.codebooks:
            self._quantizer = ProductQuantizer(self.codebooks, self.codec)
        return self._quantizer

    def encode(self, Z: Tensor) -> Tensor:
        """Codes [n, positions, parts] of features as they are stored."""
        assert self.quantizer is not None
        codes = self.quantizer.encode(self.maps.of(Z).reshape(-1, self.maps.channels))
        return codes.view(Z.shape[0], -1, self.code_length)

    def decode(self, codes: Tensor) -> Tensor:
        """Maps [n, h, w, channels] of codes."""
        assert self.quantizer is not None
        vectors = self.quantizer.decode(codes.view(-1, self.code_length))
        return vectors.view(-1, *self.maps.shape)

    def _train(self, Z: Tensor) -> Tensor:
        """Codebooks for stored features, by k-means on the vectors at all their positions."""
        vectors = self.maps.of(Z).reshape(-1, self.maps.channels)
        return ProductQuantizer.train(
            vectors,
            parts=self.code_length,
            size=self.codebook_size,
            random=self.random,
            engine=self.codec,
        ).codebooks

    def _adopt(self, codebooks: Tensor) -> None:
        """Use these codebooks from now on; the base set becomes codes."""
        self.codebooks = codebooks
        kept = self.raw.all()
        if len(kept):
            for codes, y in zip(self.encode(kept.z), kept.y.tolist(), strict=True):
                self.memory.add(codes, y)
        self.raw.length = 0
        self.raw.allocate(self.device, z=self.F.stored_shape)

    @torch.no_grad()
    def fit(self, Z: Tensor, y: Tensor) -> None:
        """Train the codec on features [n, \\*z_shape] of any data; labels are not looked at."""
        if self.codebooks is not None:
            raise BadSetting("the codec is trained already; codes in memory depend on it")
        few = torch.from_numpy(self.random.draw(len(Z), MOST_VECTORS // self.maps.positions))
        self._adopt(self._train(self.F.stored(Z[few])))

    # ---- learning ---------------------------------------------------------------------------

    def rate(self, y: int) -> float:
        """The learning rate for the next sample of an output."""
        steps = self.lr_step * (self.seen[y] // self.lr_step)
        rate: float = self.lr * self.lr_last ** (min(steps, self.lr_span) / self.lr_span)
        return rate

    def _draw(self) -> Batch:
        """C items from memory as maps."""
        if self.codebooks is None:
            old = self.raw.sample(self.C)
            return Batch(self.maps.of(old.z), old.y)
        old = self.memory.sample(self.C)
        return Batch(self.decode(old.z), old.y)

    def step(self, z: Tensor, y: int) -> None:
        codes = None if self.codebooks is None else self.encode(z)
        new = self.maps.of(z) if codes is None else self.decode(codes)
        A, B = self._draw(), self._draw()
        k = len(A)
        share = float(self.random.numpy.beta(self.mixup, self.mixup)) if self.mixup else 1.0

        maps = torch.cat((new, A.z, B.z))
        if self.maps.positions > 1:
            maps = random_resized_crops(maps, smallest=self.smallest_crop, random=self.random)
        mixed = torch.cat((maps[:1], maps[1 + k :].lerp(maps[1 : 1 + k], share)))
        target = torch.zeros(1 + k, len(self.labels), device=self.device)
        target[0, y] = 1
        target[1:].scatter_add_(1, A.y.unsqueeze(1), target.new_full((k, 1), share))
        target[1:].scatter_add_(1, B.y.unsqueeze(1), target.new_full((k, 1), 1 - share))

        _, g = self.theta.gradient(self.maps.back(mixed), soft_cross_entropy(target))
        scale = self.clip_scale(g, self.clip)
        complete = codes is None and len(self.raw) + 1 >= self.base
        codebooks = self._train(torch.cat((self.raw.all().z, z))) if complete else None

        v = self.velocity.data
        v.mul_(self.momentum).add_(g, alpha=scale).add_(self.theta.data, alpha=self.weight_decay)
        self.theta.data.add_(v, alpha=-self.rate(y))
        self.theta.sync()
        self.seen[y] += 1
        if codes is not None:
            self.memory.add(codes[0], y)
        else:
            self.raw.add(z[0], y)
        if codebooks is not None:
            self._adopt(codebooks)

    def logits(self, Z: Tensor) -> Tensor:
        seen = Z if self.codebooks is None else self.maps.back(self.decode(self.encode(Z)))
        return self.theta.scores(seen)

    def network(self) -> torch.nn.Module:
        if self.codebooks is None:
            return super().network()
        raise BadSetting("remind answers with a codec, which is no network to export")
