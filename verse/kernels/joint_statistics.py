"""Class means and one covariance of all values, with a classifier that follows every sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from verse.kernels.background import Background
from verse.kernels.running_inverse import RunningInverse
from verse.stateful import PerClass

DRIFT = 0.1  # how far ρ may be from what the samples say while solving again costs little
FIRST, MOST = 512, 512  # of ``RunningInverse``: a factorisation takes as long as 300 samples
MOST_CLASSES = 64  # that stand for all in the background, so that its cost stays bounded
BLOCK = 16  # samples that W takes in at once, so that what is of size d² is read once for them


class JointStatistics(PerClass):
    """Exact statistics of a stream, in any order, and distances to the classes by them.

    With δ = e − μ_y, n the samples of class y before this one and N those of all classes::

        S ← S + n / (n + 1) δ δᵀ,   μ_y ← μ_y + δ / (n + 1)
        Σ = (1 − ε) S / N + ε v I,   v = tr(S) / (N d),   ε = ε₀ + (½ − ε₀) d / (d + 4 N)

    One variance v for all values is what the covariance is shrunk to: by half while there are few
    samples, by ε₀ in the long run. ε₀ is no matter of how many samples there are: it is for
    what the samples do not show, as other sides, light or places.

    Σ is (1 − ε) / N times A of ``RunningInverse``; v and ε are those of the last factorisation,
    with N as it will be in the middle of the time to the next. W = M A⁻¹ takes in ``BLOCK``
    samples at once, O(d²) a sample. An answer in between adds those that came since, also O(d²)
    a sample, and changes nothing: learning and answering in turn has the bits of learning alone.
    Further answers cost O(d · classes).

    Parameters
    ----------
    d
        Values of a sample.
    device
        Where to compute.
    shrinkage
        ε₀.

    >>> statistics = JointStatistics(2, torch.device("cpu"))
    >>> for y, value in enumerate((0.0, 4.0)):
    ...     statistics.add_class(y + 1, torch.zeros(3))
    ...     for nudge in (-1.0, 1.0):
    ...         statistics.add(torch.tensor([value + nudge, value]), y)
    >>> statistics.means.tolist()
    [[0.0, 0.0], [4.0, 4.0]]
    >>> statistics.distances(torch.tensor([[1.0, 0.0]])).argmin().item()
    0
    """

    def __init__(self, d: int, device: torch.device, *, shrinkage: float = 0.1) -> None:
        self.d, self.shrinkage = d, shrinkage
        # of few values a matrix is soon cheaper than the samples themselves
        first = min(FIRST, max(64, 2 * d // 5))
        self.inverse = RunningInverse(d, device, first=first, most=MOST)
        self.counts = torch.zeros(0, dtype=torch.int64)
        self.samples, self.trace, self.spread = 0, 0.0, 0.0  # N, tr(S), the same around the centre
        # everything is counted from the first sample: what all samples share costs no precision
        self.origin = torch.zeros(d, device=device)
        self.centre = torch.zeros(d, device=device)  # mean of all samples
        # rows for classes to come are there already, so that a new class copies nothing
        self._means = self._weights = torch.zeros(0, d, device=device)
        self._sizes = torch.zeros(0, device=device)
        self._tail: list[tuple[int, float]] = []  # samples not yet in W: class, how its mean moved
        self._now: tuple[Tensor, Tensor, Tensor] | None = None  # W, sizes, rows of G with them
        self._background: Background | None = None  # until the next change

    @property
    def means(self) -> Tensor:
        """M [classes, d]."""
        return self._means[: len(self.counts)] + self.origin

    @property
    def weights(self) -> Tensor:
        """W = M A⁻¹ [classes, d], of means counted from ``origin``."""
        return self._with_tail()[0] if self._tail else self._weights[: len(self.counts)]

    @property
    def sizes(self) -> Tensor:
        """μ A⁻¹ μ [classes], of means counted from ``origin``."""
        return self._with_tail()[1] if self._tail else self._sizes[: len(self.counts)]

    @property
    def share(self) -> float:
        """ε now."""
        return self.shrinkage + (0.5 - self.shrinkage) * self.d / (self.d + 4 * self.samples)

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.state().values())

    # ---- learning ---------------------------------------------------------------------------

    def largest(self, e: Tensor, y: int) -> Tensor:
        """What bounds every entry of S once ``e`` [d] is in: finite, or ``add`` must not be
        called."""
        gap = (e - self.origin).sub_(self._means[y])
        return torch.dot(gap, gap) + self.trace

    def add(self, e: Tensor, y: int) -> None:
        """One sample [d] of class ``y``."""
        self._background = None
        if not self.samples:
            self.origin = e.clone()
        e = e - self.origin
        N, n, mean = self.samples, int(self.counts[y]), self._means[y]
        if not n:
            self._settle()
        off, gap = e - self.centre, e - mean
        self.spread += float(torch.dot(off, off)) * N / (N + 1)
        self.centre = torch.add(self.centre, off, alpha=1 / (N + 1))
        mean.add_(gap, alpha=1 / (n + 1))
        self.counts[y] += 1
        self.samples += 1
        if n:  # S grows by u uᵀ, and the mean moves by u / √(n (n + 1))
            u = gap.mul_((n / (n + 1)) ** 0.5)
            self.trace += float(torch.dot(u, u))
            self.inverse.keep(u)
            self._tail.append((y, (n * (n + 1)) ** -0.5))
            self._now = None
        else:
            self._weights[y] = self.inverse.solve(e)
            self._sizes[y] = torch.dot(self._weights[y], e)
        early = self.inverse.first and abs(self._ridge() / self.inverse.ridge - 1) > DRIFT
        if early or self.inverse.full:
            self._solve()
        elif len(self._tail) == BLOCK:
            self._settle()

    def _with_tail(self) -> tuple[Tensor, Tensor, Tensor]:
        """W, its sizes and rows of G with the samples that came since the last block."""
        if self._now is None:
            self._now = self._take_in(*self.inverse.recent())
        return self._now

    def _take_in(self, solved: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same, of what ``inverse`` has found for these samples."""
        K, device = len(self.counts), self._means.device
        M, W = self._means[:K], self._weights[:K].clone()
        classes = torch.tensor([y for y, _ in self._tail], device=device)
        moved = torch.tensor([[by] for _, by in self._tail], device=device)
        W.index_add_(0, classes, solved * moved)
        W.addmm_(M @ rows.t(), rows, alpha=-1)
        return W, (M * W).sum(1), rows

    def _settle(self) -> None:
        """The samples since the last block become one."""
        if self._tail:
            W, sizes, rows = self._take_in(*self.inverse.tail())
            self.inverse.settle(rows)
            self._weights[: len(W)], self._sizes[: len(W)] = W, sizes
            self._begin_block()

    def _begin_block(self) -> None:
        self._tail, self._now, self._background = [], None, None

    def _solve(self) -> None:
        """W for v and ε of now."""
        if self.inverse.first and not self.inverse.full:
            self.inverse.set_ridge(self._ridge(ahead=self.samples // 16))
        else:
            room = min(MOST, self.samples // 4)
            self.inverse.sum_up(self._ridge(ahead=room // 2), room)
        self._multiply()

    def _multiply(self) -> None:
        self._begin_block()
        M, W = self._means[: len(self.counts)], self.weights
        W.copy_(self.inverse.solve(M))
        torch.sum(M * W, 1, out=self.sizes)

    def solve(self, E: Tensor) -> Tensor:
        """A⁻¹e for each row, with all samples."""
        found = self.inverse.solve(E)
        if self._tail:
            rows = self._with_tail()[2]
            found -= (E @ rows.t()) @ rows
        return found

    @property
    def _guess(self) -> float:
        """tr(Σ) before any class has a second sample: half of how samples differ at all."""
        return 0.5 * self.spread / max(1, self.samples)

    @property
    def within(self) -> float:
        """The share of the variance that is within classes, 0 to 1; the guess is half."""
        if not self.spread > 0:
            return 0.5
        freedom, guess = self.samples - len(self.counts), self._guess
        variance = (self.trace + 2 * guess) / (freedom + 2)
        return min(1.0, variance * (self.samples - 1) / self.spread)

    def _ridge(self, ahead: int = 0) -> float:
        """N v ε / (1 − ε), with two samples' worth of the guess in v. Samples that hardly differ
        tell nothing of the variance: it is a fiftieth of all that there is at least. ``ahead``
        samples from now, if they are as those before."""
        N, freedom = max(1, self.samples + ahead), self.samples - len(self.counts)
        within = max((self.trace + 2 * self._guess) / (freedom + 2), self._guess / 25)
        return N * (within / self.d or 1.0) * self.share / (1 - self.share)

    # ---- answering --------------------------------------------------------------------------

    def evidence(self, E: Tensor) -> Tensor:
        """−½ d² / m [n, classes] but for a constant of each row: the scores of linear discriminant
        analysis in units of what is to be expected.

        m is the mean squared distance of a *new* sample to the mean of its class. It follows from
        the statistics: tr(A⁻¹S) are those of the samples themselves, and each would be further away
        had it not been among them (as in generalised cross-validation).
        """
        E, m = E - self.origin, self._expected
        return torch.addmm(self.sizes, E, self.weights.t(), beta=-0.5 / m, alpha=1 / m)

    def classifier(self) -> tuple[Tensor, Tensor]:
        """(weight [classes, d], bias [classes]) of ``evidence``."""
        m = self._expected
        weight = self.weights / m
        return weight, self.sizes * (-0.5 / m) - weight @ self.origin

    @property
    def _expected(self) -> float:
        """m, by A⁻¹ instead of Σ⁻¹."""
        N, K, trace = max(1, self.samples), len(self.counts), self.inverse.trace
        if self._tail:
            trace -= float(self._with_tail()[2].square().sum())
        own = max(0.0, self.d - self.inverse.ridge * trace)  # tr(A⁻¹S)
        left_out = own / (1 - min(0.98, own / max(1, N - K)))
        guessed = 2 * self._guess / self.d * trace
        return (1 + K / N) * (left_out + guessed) / (N - K + 2) or 1.0

    @property
    def usual_distance(self) -> float:
        """What ``distances`` of a new sample to its own class are in the mean: m."""
        return self._expected * self.scale

    def distances(self, E: Tensor) -> Tensor:
        """Squared Mahalanobis distances (e − μ)ᵀ Σ⁻¹ (e − μ) [n, classes] of [n, d] to the means.

        Their argmin is the answer of linear discriminant analysis; they also tell how far a sample
        is from everything known.
        """
        return self._distances(*self._products(E))

    def distances_and_background(self, E: Tensor) -> tuple[Tensor, Tensor]:
        """``distances``, and those [n] to all classes together as one Gaussian."""
        own, along = self._products(E)
        some = along[:, self.standing]
        return self._distances(own, along), self.background.distances(own, some)

    def _products(self, E: Tensor) -> tuple[Tensor, Tensor]:
        """eᵀΣ⁻¹e [n] and e Σ⁻¹Mᵀ [n, classes], counted from the origin."""
        E = E - self.origin
        own = (self.solve(E) * E).sum(1).mul_(self.scale)
        return own, (E @ self.weights.t()).mul_(self.scale)

    def _distances(self, own: Tensor, along: Tensor) -> Tensor:
        squared = torch.add(self.sizes * self.scale, along, alpha=-2).add_(own[:, None])
        return squared.clamp_(min=0)

    @property
    def background(self) -> Background:
        """All classes together; with many, some of them stand for all."""
        if self._background is None:
            some = self.standing
            means, whitened = self._means[: len(self.counts)], self.weights * self.scale
            self._background = Background.of(means[some], whitened[some])
        return self._background

    @property
    def standing(self) -> slice:
        """Those that do."""
        return slice(None, None, max(1, -(-len(self.counts) // MOST_CLASSES)))

    def distance_to_centre(self, E: Tensor) -> Tensor:
        """The same [n] to the mean of all samples; a sample of a class that is not known is often
        as near to it as to the nearest class."""
        gap = E - self.origin - self.centre
        return (self.solve(gap) * gap).sum(1).clamp_(min=0).mul_(self.scale)

    @property
    def scale(self) -> float:
        """Σ⁻¹ = scale · A⁻¹."""
        return max(1, self.samples) / (1 - self.share)

    # ---- classes ----------------------------------------------------------------------------

    def add_class(self, classes: int, row: Tensor) -> None:
        if classes > len(self._means):
            room = max(16, 2 * len(self._means))
            self._means = _longer(self._means, room)
            self._weights = _longer(self._weights, room)
            self._sizes = _longer(self._sizes, room)
        for rows in (self._means, self._weights, self._sizes):
            rows[classes - 1] = 0  # a class that was dropped or taken back may have been here
        self._now = self._background = None
        self.counts = torch.cat((self.counts, self.counts.new_zeros(1)))

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        if into is None:
            # the covariance stays: S divided by the samples left is the same
            left = self.samples - int(self.counts[output])
            share = left / max(1, self.samples)
            self.inverse.shrink(share)
            self.samples, self.trace, self.spread = left, self.trace * share, self.spread * share
        else:
            self._join(output, into)
        others = torch.arange(len(self.counts)) != output
        self.counts, kept = (
            self.counts[others],
            self._means[: len(others)][others.to(self._means.device)],
        )
        n = self.counts.to(kept)
        self.centre = n @ kept / n.sum().clamp(min=1)
        if into is None:  # the origin may be a sample that is forgotten now: count from the mean
            origin = self.origin if self.samples else torch.zeros_like(self.origin)
            self.origin, kept = origin + self.centre, kept - self.centre
            self.centre = torch.zeros_like(self.centre)
        self._means = torch.zeros_like(self._means)
        self._means[: len(kept)] = kept
        self.inverse.sum_up(self._ridge(), self.samples // 8)
        self._multiply()
        return 0

    def _join(self, output: int, into: int) -> None:
        """Around their common mean both classes deviate by what their means differ."""
        n, m = int(self.counts[output]), int(self.counts[into])
        gap = self._means[output] - self._means[into]
        u = gap * (n * m / (n + m)) ** 0.5
        self.trace += float(torch.dot(u, u))
        self.inverse.keep(u)
        self._means[into] += gap * (n / (n + m))
        self.counts[into] += n

    # ---- merging ----------------------------------------------------------------------------

    def absorb(self, other: JointStatistics, outputs: Sequence[int]) -> None:
        """Add the statistics of other samples; ``outputs`` are this one's classes for theirs.

        Two groups of n and m samples whose means differ by g have around their common mean::

            S = S₁ + S₂ + n m / (n + m) g gᵀ

        So the sum is exact but for rounding: that of one who saw all samples.
        """
        if not other.samples:
            return
        if not self.samples:
            self.origin = other.origin.clone()
        shift = other.origin.double() - self.origin.double()
        N, M = self.samples, other.samples
        off = other.centre.double() + shift - self.centre.double()
        self.spread += other.spread + float(off.square().sum()) * N * M / (N + M)
        self.centre = (self.centre.double() + off * (M / (N + M))).float()
        apart: list[Tensor] = []
        for theirs, mine in enumerate(outputs):
            n, m = int(self.counts[mine]), int(other.counts[theirs])
            mean = self._means[mine].double()
            gap = other._means[theirs].double() + shift - mean
            if n and m:
                apart.append(gap * (n * m / (n + m)) ** 0.5)
            if m:
                self._means[mine] = (mean + gap * (m / (n + m))).float()
                self.counts[mine] += m
        self.samples = N + M
        further = torch.stack(apart) if apart else shift.new_zeros(0, self.d)
        self.trace += other.trace + float(further.square().sum())
        self.inverse.absorb(other.inverse, further, self._ridge(), self.samples // 8)
        self._multiply()

    # ---- state ------------------------------------------------------------------------------

    def mark(self) -> Any:
        return self.counts

    def undo(self, mark: Any) -> None:
        self.counts, self._now, self._background = mark, None, None

    def follow(self, other: JointStatistics) -> None:
        self.inverse.follow(other.inverse)
        self.counts = other.counts.clone()
        self.samples, self.trace, self.spread = other.samples, other.trace, other.spread
        self._means, self._weights = other._means.clone(), other._weights.clone()
        self._sizes = other._sizes.clone()
        self._tail, self._now = list(other._tail), other._now
        self._background = other._background
        self.origin, self.centre = other.origin, other.centre  # never written to

    def state(self) -> dict[str, Tensor]:
        sums = torch.tensor([self.trace, self.spread], dtype=torch.float64)
        own = {"counts": self.counts, "sums": sums, "origin": self.origin, "centre": self.centre}
        K = len(self.counts)
        own |= {"means": self._means[:K], "weights": self._weights[:K], "sizes": self._sizes[:K]}
        own |= {"tail": torch.tensor(self._tail, dtype=torch.float64).view(-1, 2)}
        return own | {f"inverse.{name}": value for name, value in self.inverse.state().items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        device, n = self._means.device, len(state["counts"])
        shapes = {"means": (n, self.d), "weights": (n, self.d), "sizes": (n,)}
        for name, shape in (shapes | {"origin": (self.d,), "centre": (self.d,)}).items():
            if state[name].shape != shape:
                raise ValueError(f"{name} are not those of {n} classes")
        if bool((state["counts"] < 1).any()):
            raise ValueError("a class has no samples")
        self.counts = state["counts"].clone()
        self.samples = int(self.counts.sum())
        self.trace, self.spread = state["sums"].tolist()
        self.origin = state["origin"].to(device).clone()
        self.centre = state["centre"].to(device).clone()
        room = max(16, len(self.counts))
        self._means = _longer(state["means"].to(device), room)
        self._weights = _longer(state["weights"].to(device), room)
        self._sizes = _longer(state["sizes"].to(device), room)
        prefix = "inverse."
        self.inverse.load_state(
            {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        )
        self._begin_block()
        self._tail = [(int(y), by) for y, by in state["tail"].tolist()]
        if len(self._tail) != self.inverse.pending - self.inverse.settled:
            raise ValueError("the samples since the last block are not those of the inverse")
        if any(not 0 <= y < n for y, _ in self._tail):
            raise ValueError("a sample since the last block is of no class")


def _longer(rows: Tensor, room: int) -> Tensor:
    """A copy with ``room`` rows, the further ones zero."""
    longer = rows.new_zeros(room, *rows.shape[1:])
    longer[: len(rows)] = rows
    return longer
