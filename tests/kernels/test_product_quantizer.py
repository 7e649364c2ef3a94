"""Product quantisation: codes are nearest centroids, with and without faiss."""

from __future__ import annotations

import sys

import pytest
import torch

from verse.kernels.product_quantizer import ProductQuantizer, parts_for
from verse.kernels.randomness import Random
from verse.types import BadSetting, MissingExtra


def _data(n: int = 3000, d: int = 32) -> torch.Tensor:
    return Random(0).normal_tensor((n, d)).relu()


@pytest.fixture(scope="module")
def quantizer() -> ProductQuantizer:
    return ProductQuantizer.train(_data(), parts=4, size=64, random=Random(1))


def test_code_names_the_nearest_centroid_of_every_part(quantizer: ProductQuantizer) -> None:
    X = _data(200)
    codes = quantizer.encode(X)
    assert codes.shape == (200, 4) and codes.dtype == torch.uint8
    for m in range(4):
        gaps = torch.cdist(X[:, 8 * m : 8 * m + 8].double(), quantizer.codebooks[m].double())
        mine = gaps.gather(1, codes[:, m : m + 1].long()).squeeze(1)
        assert torch.allclose(mine, gaps.min(1).values, rtol=1e-5)


def test_codes_round_trip(quantizer: ProductQuantizer) -> None:
    """A decoded vector has the same codes, and decoding is reading the codebooks."""
    codes = quantizer.encode(_data(500))
    decoded = quantizer.decode(codes)
    assert torch.equal(quantizer.encode(decoded), codes)
    by_hand = torch.cat([quantizer.codebooks[m][codes[:, m].long()] for m in range(4)], 1)
    assert torch.equal(decoded, by_hand)


def test_chunks_change_no_code(quantizer: ProductQuantizer, monkeypatch) -> None:
    X = _data(300)
    whole = quantizer.encode(X)
    monkeypatch.setattr("verse.kernels.product_quantizer.CELLS", 4 * 64 * 7)
    assert torch.equal(quantizer.encode(X), whole)


def test_training_is_a_fixed_point_of_lloyd() -> None:
    """Few vectors, converged: every centroid is the mean of the vectors it serves."""
    X = _data(400, 8)
    quantizer = ProductQuantizer.train(X, parts=2, size=8, random=Random(1))
    codes = quantizer.encode(X)
    for m in range(2):
        for k in range(8):
            served = X[codes[:, m] == k][:, 4 * m : 4 * m + 4]
            assert len(served)
            assert torch.allclose(served.mean(0), quantizer.codebooks[m, k], atol=2e-2)


def test_training_beats_random_centroids() -> None:
    X = _data()
    trained = ProductQuantizer.train(X, parts=4, size=64, random=Random(1))
    drawn = ProductQuantizer(torch.stack([X[:64, 8 * m : 8 * m + 8] for m in range(4)]))

    def error(quantizer: ProductQuantizer) -> float:
        return float((quantizer.decode(quantizer.encode(X)) - X).square().mean())

    assert error(trained) < 0.75 * error(drawn)


def test_identical_vectors_leave_no_centroid_undefined() -> None:
    X = torch.ones(50, 4)
    quantizer = ProductQuantizer.train(X, parts=2, size=16, random=Random(0))
    assert bool(torch.isfinite(quantizer.codebooks).all())
    assert torch.equal(quantizer.decode(quantizer.encode(X)), X)


def test_fewer_vectors_than_centroids() -> None:
    X = _data(5, 4)
    quantizer = ProductQuantizer.train(X, parts=2, size=256, random=Random(0))
    assert quantizer.size == 5
    assert torch.equal(quantizer.decode(quantizer.encode(X)), X)


def test_same_seed_same_codebooks() -> None:
    a, b = (
        ProductQuantizer.train(_data(), parts=4, size=16, random=Random(3)).codebooks
        for _ in range(2)
    )
    assert torch.equal(a, b)


def test_faiss_gives_the_same_codes(quantizer: ProductQuantizer) -> None:
    pytest.importorskip("faiss")
    X = Random(5).normal_tensor((20_000, 32)).relu()
    assert torch.equal(
        ProductQuantizer(quantizer.codebooks, "faiss").encode(X), quantizer.encode(X)
    )


def test_faiss_trains_as_well_as_torch(quantizer: ProductQuantizer) -> None:
    pytest.importorskip("faiss")
    X = _data()
    other = ProductQuantizer.train(X, parts=4, size=64, random=Random(1), engine="faiss")
    errors = [float((q.decode(q.encode(X)) - X).square().mean()) for q in (quantizer, other)]
    assert errors[0] == pytest.approx(errors[1], rel=0.05)


def test_without_faiss_the_error_says_what_to_install(
    quantizer: ProductQuantizer, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)  # as if it were not installed
    with pytest.raises(MissingExtra, match="faiss"):
        ProductQuantizer(quantizer.codebooks, "faiss")


def test_codebooks_follow_the_channels() -> None:
    assert [parts_for(d) for d in (512, 320, 1280, 16, 4, 1, 17, 33)] == [32, 20, 80, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("parts", "size"), [(3, 16), (4, 0), (4, 257)])
def test_bad_sizes(parts: int, size: int) -> None:
    with pytest.raises(BadSetting):
        ProductQuantizer.train(_data(), parts=parts, size=size, random=Random(0))


def test_bad_engine(quantizer: ProductQuantizer) -> None:
    with pytest.raises(BadSetting, match="torch, faiss"):
        ProductQuantizer(quantizer.codebooks, "cuda")
