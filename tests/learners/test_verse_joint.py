"""The default: VERSE's network beside statistics with one covariance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from verse.backbones.onnx_graph import convert_module
from verse.checks import small_network
from verse.learners import VERSE, VERSEJoint
from verse.learners.shared.grid_features import GridFeatures
from verse.memory import ClassBalanced
from verse.network.plastic import Head, Plastic

CLASSES = 3


def _grid(channels=5):
    return Plastic(torch.nn.Flatten(), Head(4 * channels), z_shape=(channels, 2, 2))


def _stream(F, n=40, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % CLASSES
    centres = torch.randn(CLASSES, *F.z_shape, generator=g)
    return centres[y] + 0.5 * torch.randn(n, *F.z_shape, generator=g), y.tolist()


def _taught(method, F, n=40, **settings):
    learner = method(F, ClassBalanced(12), seed=5, **settings)
    for z, y in zip(*_stream(F, n), strict=True):
        learner.learn_one(z, y)
    return learner


def test_its_network_is_that_of_verse() -> None:
    F = _grid()
    rates = {"alpha": 0.15, "beta": 0.3, "lam": 0.03, "clip": None}
    plain = VERSE(F, ClassBalanced(12), seed=5, **rates)
    for z, y in zip(*_stream(F), strict=True):
        plain.learn_one(10 * z / z.norm(), y)
    joint = _taught(VERSEJoint, F)
    assert torch.allclose(joint.theta.data, plain.theta.data, atol=1e-4)


def test_scores_are_the_distances_plus_the_networks() -> None:
    F = _grid()
    learner = _taught(VERSEJoint, F, weight=0.7, sharpness=30, average=0.4)
    Z = _stream(F, seed=1)[0]
    E = learner.features(Z)
    known, averages = learner.statistics, learner.averages
    assert averages.d == 5 and torch.allclose(averages.means, known.means[:, ::4], atol=1e-5)
    far = 0.6 * known.distances(E) / known.usual_distance
    far += 0.4 * averages.distances(E[:, ::4]) / averages.usual_distance
    scaled = 10 * torch.nn.functional.normalize(Z.flatten(1)).view(Z.shape)
    trust = known.within / 0.65 * 120 / 1020  # 40 samples
    expected = (0.7 * learner.theta.scores(scaled) - 15 * far) * trust
    difference = learner.logits(Z) - expected  # the same for all classes
    assert torch.allclose(difference, difference[:, :1].expand(-1, CLASSES), atol=1e-3)


def test_features_tell_where_as_much_as_they_are_told_to() -> None:
    maps = torch.zeros(2, 1, 7, 7)
    maps[0, 0, :3, :3], maps[1, 0, 4:, 4:] = 1, 1  # the same thing in opposite corners
    for s in (0.0, 0.5, 1.0):
        first, second = GridFeatures((1, 7, 7), s=s)(maps)
        assert float((first - second).norm()) == pytest.approx(s * 2**0.5, abs=1e-6)
    stored = maps.permute(0, 2, 3, 1).contiguous()
    last = GridFeatures((1, 7, 7), s=0.5, channels_last=True)(stored)
    assert torch.equal(last, GridFeatures((1, 7, 7), s=0.5)(maps))


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("kind", ["grid", "conv", "linear"])
def test_what_is_exported_answers_the_same(kind, n) -> None:
    ort = pytest.importorskip("onnxruntime")
    F = _grid() if kind == "grid" else small_network(kind)
    learner = _taught(VERSEJoint, F, n)
    Z = _stream(F, seed=1)[0]
    scores = learner.logits(learner.F.stored(Z))
    assert torch.allclose(learner.network()(Z), scores, rtol=1e-3, atol=1e-3)
    session = ort.InferenceSession(convert_module(learner.network(), Z[:1]))
    (found,) = session.run(None, {"input": Z.numpy()})
    assert np.allclose(found, scores.numpy(), rtol=1e-3, atol=1e-3)


def test_larger_maps_are_averaged_to_the_grid() -> None:
    F = small_network()  # a convolution on 4 × 3 × 3 maps
    learner = _taught(VERSEJoint, F)
    assert learner.F.head.d == 16
    assert not list(learner.F.body.parameters())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_plain_vectors_of_any_scale(scale) -> None:
    F = small_network("linear")
    learner = VERSEJoint(F, ClassBalanced(12))
    Z, y = _stream(F, 60)
    for z, label in zip(Z, y, strict=True):
        learner.learn_one(z * scale, label)
    plain = VERSEJoint(F, ClassBalanced(12))
    for z, label in zip(Z, y, strict=True):
        plain.learn_one(z, label)
    probabilities = learner.predict_proba_many(Z * scale)
    assert torch.allclose(probabilities, plain.predict_proba_many(Z), atol=1e-3)


def test_one_class_of_many_samples_does_not_stir_the_others() -> None:
    F = _grid()
    learner = _taught(VERSEJoint, F, 60)
    Z, y = _stream(F, 60)
    for _ in range(300):
        learner.learn_one(Z[0], y[0])
    right = sum(a == b for a, b in zip(learner.predict_many(Z), y, strict=True))
    assert right >= 0.9 * len(y)


def test_probabilities_are_soft_after_one_sample_each() -> None:
    F = _grid(80)
    g = torch.Generator().manual_seed(0)
    learner = VERSEJoint(F, ClassBalanced(12))
    for y in range(4):
        learner.learn_one(torch.randn(F.z_shape, generator=g), y)
    confidence = learner.predict_proba_many(torch.randn(50, *F.z_shape, generator=g)).max(1).values
    assert confidence.mean() < 0.6  # what it is asked has nothing to do with what it was shown
