"""The inverse of a matrix that grows by one vector at a time."""

from __future__ import annotations

import torch
from torch import Tensor

FIRST = 64  # vectors kept as they are before the first matrix is made of them
FEWEST, MOST = 16, 256  # vectors between two factorisations
ROOM = 512  # the largest number of pending vectors that a saved state may have room for


class RunningInverse:
    """A⁻¹ for A = S + ρ I with S = Σ u uᵀ, at O(d²) a vector u.

    Between two factorisations nothing of size d² is written: with Λ the inverse at the last one::

        A⁻¹ = Λ − GᵀG,   and u adds the row g = A⁻¹u / √(1 + uᵀA⁻¹u) to G

    (J. Sherman, W. Morrison, Annals of Mathematical Statistics 1950). ``add`` does so for one
    vector. Several at once read Λ only once: ``keep`` them, then ``settle`` the rows of ``tail``,
    which are L⁻¹U A⁻¹ with L Lᵀ = I + U A⁻¹Uᵀ. The ``first`` vectors need no matrix at all:
    Λ = I / ρ and G = L⁻¹U / √ρ with L Lᵀ = ρ I + U Uᵀ, and ρ may change with each of them.
    A factorisation is in float32, which is enough while ρ is not much less than a ten-thousandth
    of the largest eigenvalue.

    Λ follows from S and ρ, which are saved, and from nothing else: a resumed stream has the same
    bits as one that never stopped. Tensors of size d² are replaced, never written to, and rows are
    only appended to U and G, so that copies share them.

    Parameters
    ----------
    d
        Length of a vector.
    device
        Where to compute.
    first
        Vectors kept as they are before the first matrix is made of them.
    most
        The most vectors between two factorisations.

    >>> A = RunningInverse(2, torch.device("cpu"))
    >>> A.keep(torch.tensor([3.0, 0.0]))
    >>> A.set_ridge(1.0)
    >>> [round(v, 4) for v in A.solve(torch.ones(2)).tolist()]
    [0.1, 1.0]
    """

    def __init__(
        self, d: int, device: torch.device, *, first: int = FIRST, most: int = MOST
    ) -> None:
        self.d, self.device, self.most = d, device, most
        self._begin(torch.zeros(0, d, device=device), 1.0, first)

    def _begin(self, scatter: Tensor, ridge: float, room: int) -> None:
        self.scatter, self.ridge = scatter, ridge  # S without the pending vectors; ρ
        self.vectors = torch.zeros(room, self.d, device=self.device)  # U, not yet in S
        self.rows = torch.zeros(room, self.d, device=self.device)  # G
        self.pending = self.settled = 0  # how many are in U, and in G
        self._rows_squared = 0.0  # Σ |g|²
        self._base: tuple[Tensor, float] | None = None
        self._shared = False  # are U and G those of another one?
        self._forget_recent()

    def _forget_recent(self) -> None:
        """``recent`` begins anew after the last settled vector."""
        none = torch.zeros(0, self.d, device=self.device)
        self._recent = none, none

    @property
    def first(self) -> bool:
        """Is there no matrix yet?"""
        return not len(self.scatter)

    @property
    def full(self) -> bool:
        """Is it time to ``sum_up``?"""
        return self.pending == len(self.vectors)

    def keep(self, u: Tensor) -> None:
        """S ← S + u uᵀ; A⁻¹ stays that of before until ``settle``, ``set_ridge`` or ``sum_up``."""
        if self._shared:
            self.vectors, self.rows = self.vectors.clone(), self.rows.clone()
            self._shared = False
        self.vectors[self.pending] = u
        self.pending += 1

    def set_ridge(self, ridge: float) -> None:
        """Another ρ, while there is no matrix."""
        U, self.rows = self.vectors[: self.pending], torch.zeros_like(self.rows)
        gram = (U @ U.t()).double()
        gram.diagonal().add_(ridge)
        L = torch.linalg.cholesky(gram).mul_(ridge**0.5).float()
        G = torch.linalg.solve_triangular(L, U, upper=False)
        self.rows[: self.pending] = G
        self.ridge, self._rows_squared = ridge, float(torch.linalg.vector_norm(G)) ** 2
        self.settled = self.pending
        self._forget_recent()

    def add(self, u: Tensor) -> tuple[Tensor, float]:
        """S ← S + u uᵀ; returns (the new row of G, 1 / √(1 + uᵀA⁻¹u))."""
        g = self.solve(u)
        scale = (1 + max(0.0, float(torch.dot(u, g)))) ** -0.5
        self.keep(u)
        g = torch.mul(g, scale, out=self.rows[self.pending - 1])
        self._rows_squared += float(torch.dot(g, g))
        self.settled = self.pending
        self._forget_recent()
        return g, scale

    def tail(self) -> tuple[Tensor, Tensor]:
        """(U A⁻¹, the rows of G) for the vectors U kept since the last ``settle``. Changes nothing:
        the same vectors have the same rows whenever and however often they are asked for."""
        U = self.vectors[self.settled : self.pending]
        solved = self.solve(U)
        inner = (U @ solved.t()).double()
        inner.diagonal().add_(1)
        L = torch.linalg.cholesky(inner).float()
        return solved, torch.linalg.solve_triangular(L, solved, upper=False)

    def recent(self) -> tuple[Tensor, Tensor]:
        """The same but for rounding, found vector by vector and kept: one more vector costs one
        product with Λ. Here, too, it does not matter when or how often one asks."""
        solved, rows = self._recent
        for u in self.vectors[self.settled + len(rows) : self.pending]:
            found = self.solve(u)
            g = found - (rows @ u) @ rows
            g = g * (1 + max(0.0, float(torch.dot(u, g)))) ** -0.5
            solved, rows = torch.cat((solved, found[None])), torch.cat((rows, g[None]))
        self._recent = solved, rows
        return self._recent

    def settle(self, rows: Tensor) -> None:
        """A⁻¹ with all vectors; ``rows`` are those of ``tail``."""
        self.rows[self.settled : self.pending] = rows
        self._rows_squared += float(rows.square().sum())
        self.settled = self.pending
        self._forget_recent()

    def shrink(self, share: float) -> None:
        """S ← share · S; ``set_ridge`` or ``sum_up`` must follow."""
        self.scatter = self.scatter * share
        self.vectors = self.vectors * share**0.5

    def sum_up(self, ridge: float, room: int) -> None:
        """The pending vectors become part of S, with another ρ; ``room`` is for the next ones."""
        U = self.vectors[: self.pending]
        S = U.t() @ U if self.first else torch.addmm(self.scatter, U.t(), U)
        self._begin(S, ridge, self._fitting(room))

    def absorb(self, other: RunningInverse, further: Tensor, ridge: float, room: int) -> None:
        """S ← S + that of another one + Σ u uᵀ of further vectors [n, d], with another ρ."""
        S = self.total() + other.total() + further.double().t() @ further.double()
        self._begin(S.float(), ridge, self._fitting(room))

    def _fitting(self, room: int) -> int:
        return min(self.most, max(FEWEST, room))

    def total(self) -> Tensor:
        """S [d, d] with the pending vectors, in float64."""
        U = self.vectors[: self.pending].double()
        return U.t() @ U if self.first else torch.addmm(self.scatter.double(), U.t(), U)

    def _factorise(self) -> tuple[Tensor, float]:
        """(Λ [d, d], its trace), made when first asked for."""
        if self._base is None:
            A = self.scatter.clone()
            A.diagonal().add_(self.ridge)
            inverse = torch.cholesky_inverse(torch.linalg.cholesky(A))
            self._base = inverse, float(inverse.trace())
        return self._base

    def solve(self, E: Tensor) -> Tensor:
        """A⁻¹e for each row of [n, d], or of one [d]."""
        G = self.rows[: self.settled]
        found = E / self.ridge if self.first else E @ self._factorise()[0]
        return found - (E @ G.t()) @ G if self.settled else found

    @property
    def trace(self) -> float:
        """tr(A⁻¹)."""
        of_base = self.d / self.ridge if self.first else self._factorise()[1]
        return of_base - self._rows_squared

    def follow(self, other: RunningInverse) -> None:
        """Become another one; what is large is shared."""
        self.scatter, self.ridge, self._base = other.scatter, other.ridge, other._base
        self._rows_squared = other._rows_squared
        self.vectors, self.rows, self._shared = other.vectors, other.rows, True
        self.pending, self.settled = other.pending, other.settled
        self._recent = other._recent

    def state(self) -> dict[str, Tensor]:
        return {
            "scatter": self.scatter,
            "numbers": torch.tensor([self.ridge, self._rows_squared], dtype=torch.float64),
            "room": torch.tensor(len(self.vectors)),
            "vectors": self.vectors[: self.pending],
            "rows": self.rows[: self.settled],
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        shapes = ((0, self.d), (self.d, self.d))  # before and after the first factorisation
        if not 0 < int(state["room"]) <= ROOM or state["scatter"].shape not in shapes:
            raise ValueError("the running inverse is damaged")
        scatter = state["scatter"].to(self.device).clone()
        ridge, squared = state["numbers"].tolist()
        if not ridge > 0:
            raise ValueError("the running inverse has no ridge")
        self._begin(scatter, ridge, int(state["room"]))
        self._rows_squared = squared
        n, m = len(state["vectors"]), len(state["rows"])
        if m > n:
            raise ValueError("the running inverse has rows of vectors that it does not have")
        self.pending, self.settled = n, m
        self.vectors[:n], self.rows[:m] = state["vectors"], state["rows"]
