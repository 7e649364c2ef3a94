"""Product quantisation: a vector as a few bytes, each naming the nearest centroid of one part."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from verse.extras import OptionalImport
from verse.kernels.randomness import Random
from verse.types import BadSetting

ITERATIONS = 25  # of k-means; with at most 256 vectors a centroid it has converged by then
VECTORS_PER_CENTROID = 256
CELLS = 1 << 18  # distances held at a time: 1 MB, which stays in the cache
ENGINES = ("torch", "faiss")
FAR = 1e15  # a centroid nobody is near to


def parts_for(d: int) -> int:
    """How many codebooks for vectors of ``d`` values: about one for 16, and a divisor of ``d``.

    512 values in 32 codebooks is REMIND's own choice.

    >>> parts_for(512), parts_for(320), parts_for(6)
    (32, 20, 1)
    """
    return max(m for m in range(1, max(1, d // 16) + 1) if d % m == 0)


class ProductQuantizer:
    """Codebooks [parts, size, d / parts] and what they do to vectors [n, d].

    H. Jégou, M. Douze, C. Schmid, "Product quantization for nearest neighbor search", TPAMI 2011.
    Part m of a vector x is replaced by its nearest centroid::

        code_m(x) = argmin_k ‖x_m − c_mk‖²,   decode: x_m ≈ c_m,code_m

    ``engine="faiss"`` has faiss train and encode; for the same codebooks both engines give the
    same codes (but for vectors as near to two centroids as float32 can tell).

    >>> X = Random(0).normal_tensor((50, 4))
    >>> quantizer = ProductQuantizer.train(X, parts=2, size=50, random=Random(1))
    >>> torch.equal(quantizer.decode(quantizer.encode(X)), X)  # a centroid for every vector
    True
    """

    def __init__(self, codebooks: Tensor, engine: str = "torch") -> None:
        if engine not in ENGINES:
            raise BadSetting(f"engine {engine!r}: use one of {', '.join(ENGINES)}")
        self.codebooks = codebooks
        self.parts, self.size, self.width = codebooks.shape
        self.d = self.parts * self.width
        self._norms = codebooks.square().sum(2).unsqueeze(1)  # [parts, 1, size]
        self._flipped = codebooks.transpose(1, 2)  # [parts, width, size]
        # where the rows of each codebook start when all are one table
        self._starts = torch.arange(self.parts, device=codebooks.device) * self.size
        self._faiss = self._faiss_form() if engine == "faiss" else None

    @classmethod
    def train(
        cls, X: Tensor, *, parts: int, size: int, random: Random, engine: str = "torch"
    ) -> ProductQuantizer:
        """Codebooks by k-means on each part of ``X`` [n, d]; never more centroids than vectors."""
        n, d = X.shape
        if n < 1 or d % parts or not 1 <= size <= 256:
            raise BadSetting(f"{parts} codebooks of {size} (at most 256) do not fit {n} × {d}")
        size = min(size, n)
        X = X[torch.from_numpy(random.draw(n, VECTORS_PER_CENTROID * size)).to(X.device)]
        start = torch.from_numpy(random.draw(X.shape[0], size)).to(X.device)
        if engine == "faiss":
            return cls(_faiss_train(X, parts, size, random.below(1 << 30)), engine)
        X = X.view(-1, parts, d // parts)
        books = [_kmeans(X[:, m].contiguous(), start) for m in range(parts)]
        return cls(torch.stack(books), engine)

    def encode(self, X: Tensor) -> Tensor:
        """Codes [n, parts] (uint8) of vectors [n, d]."""
        if self._faiss is not None:
            codes = self._faiss.compute_codes(np.ascontiguousarray(X.cpu().numpy()))
            return torch.from_numpy(codes).to(X.device)
        pieces = torch.split(X, max(1, CELLS // (self.parts * self.size)))
        return torch.cat([self._encode(piece) for piece in pieces])

    def _encode(self, X: Tensor) -> Tensor:
        x = X.view(-1, self.parts, self.width).transpose(0, 1)  # [parts, n, width]
        # ‖x − c‖² without ‖x‖², which is the same for every c
        gaps = torch.baddbmm(self._norms, x, self._flipped, alpha=-2.0)
        return _argmin(gaps).t().to(torch.uint8).contiguous()

    def decode(self, codes: Tensor) -> Tensor:
        """Vectors [n, d] of codes [n, parts]."""
        rows = (codes.long() + self._starts).view(-1)
        return self.codebooks.view(-1, self.width).index_select(0, rows).view(-1, self.d)

    def _faiss_form(self) -> Any:
        """faiss's quantizer with these codebooks; its own always have 256 entries."""
        faiss = _import_faiss()
        form = faiss.ProductQuantizer(self.d, self.parts, 8)
        books = np.full((self.parts, 256, self.width), FAR, dtype=np.float32)
        books[:, : self.size] = self.codebooks.cpu().numpy()
        faiss.copy_array_to_vector(books.ravel(), form.centroids)
        return form


def _kmeans(x: Tensor, start: Tensor) -> Tensor:
    """Centroids [size, width] of vectors [n, width] after Lloyd's iterations from ``x[start]``."""
    centroids, before = x[start], None
    size = len(start)
    for _ in range(ITERATIONS):
        found = [_nearest(piece, centroids) for piece in torch.split(x, max(1, CELLS // size))]
        gap, owner = (torch.cat(part) for part in zip(*found, strict=True))
        if before is not None and torch.equal(owner, before):
            break
        before = owner.clone()
        empty = (torch.bincount(owner, minlength=size) == 0).nonzero().view(-1)
        if len(empty):  # an idle centroid moves to a vector that is badly served
            worst = gap.topk(len(empty)).indices
            owner[worst] = empty
        count = torch.bincount(owner, minlength=size).unsqueeze(1)
        sums = torch.zeros_like(centroids).index_add_(0, owner, x)
        # moving a vector away may have idled its old centroid, which then stays where it is
        centroids = torch.where(count > 0, sums / count.clamp(min=1), centroids)
    return centroids


def _nearest(x: Tensor, centroids: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distance to the nearest centroid, and which it is, for each row."""
    gaps = torch.addmm(centroids.square().sum(1), x, centroids.t(), alpha=-2.0)
    owner = _argmin(gaps)
    return gaps.gather(1, owner.unsqueeze(1)).squeeze(1) + x.square().sum(1), owner


def _argmin(gaps: Tensor) -> Tensor:
    """The place of the smallest value in the last dimension, the first of equals."""
    if gaps.device.type == "cpu":
        return torch.from_numpy(gaps.numpy().argmin(-1))  # several times faster than torch's
    return gaps.argmin(-1)


def _import_faiss() -> Any:
    with OptionalImport():
        import faiss
    return faiss


def _faiss_train(X: Tensor, parts: int, size: int, seed: int) -> Tensor:
    """The same codebooks by faiss's own k-means, part by part."""
    faiss = _import_faiss()
    x = X.cpu().numpy().reshape(len(X), parts, -1)
    books = []
    for m in range(parts):
        kmeans = faiss.Kmeans(
            x.shape[2],
            size,
            niter=ITERATIONS,
            seed=seed,
            max_points_per_centroid=VECTORS_PER_CENTROID,
            min_points_per_centroid=1,
        )
        kmeans.train(np.ascontiguousarray(x[:, m]))
        books.append(torch.from_numpy(kmeans.centroids.copy()))
    return torch.stack(books).to(X.device)
