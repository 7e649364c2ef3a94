"""A classifier as an ONNX file answers as the classifier does, wherever it runs."""

from __future__ import annotations

import json
import os
import pickle
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import verse
from verse import StreamClassifier, backbones, learners
from verse.backbones import Preprocess
from verse.cli import main
from verse.types import BadSetting

FEATURES = torch.randn(60, 6, generator=torch.Generator().manual_seed(0)) + torch.eye(6).repeat(
    10, 1
).mul(3)
REFUSED = {"basil", "vcl", "coreset-vcl"}  # answer with distributions of weights


def session(path: Path) -> tuple[onnxruntime.InferenceSession, dict[str, str]]:
    onnx.checker.check_model(onnx.load(path), full_check=True)
    ready = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return ready, ready.get_modelmeta().custom_metadata_map


def probabilities(path: Path, inputs: np.ndarray) -> tuple[list[Any], np.ndarray]:
    ready, metadata = session(path)
    (p,) = ready.run(["probabilities"], {"input": inputs})
    return json.loads(metadata["labels"]), p


def test_the_file_has_ordinary_permissions(tmp_path) -> None:
    before = os.umask(0o027)
    try:
        file = taught("verse").export(tmp_path / "model.onnx")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def taught(learner: str) -> StreamClassifier:
    settings = {"M": 64} if "M" in learners.settings(learner) else {}  # random features: fewer
    classifier = StreamClassifier(
        backbone=backbones.identity(6), learner=learner, settings=settings, seed=1
    )
    for t, z in enumerate(FEATURES[:48]):
        classifier.learn_feature(z, ["mug", 7, "cup"][t % 3])
    classifier.consolidate()
    return classifier


@pytest.mark.parametrize("learner", [n for n in learners.names() if n not in REFUSED])
def test_every_method_that_answers_with_a_network(learner: str, tmp_path: Path) -> None:
    classifier = taught(learner)
    labels, p = probabilities(classifier.export(tmp_path / "m.onnx"), FEATURES[48:].numpy())
    assert labels == ["mug", 7, "cup"]
    for z, row in zip(FEATURES[48:], p, strict=True):
        expected = classifier.predict_feature(z).probabilities
        assert dict(zip(labels, row.tolist(), strict=True)) == pytest.approx(expected, abs=1e-5)


def novelties(path: Path, inputs: np.ndarray) -> tuple[np.ndarray, dict[str, str]]:
    ready, metadata = session(path)
    (novelty,) = ready.run(["novelty"], {"input": inputs})
    return novelty, metadata


@pytest.mark.parametrize("learner", ["verse-joint", "slda", "verse", "tinyer", "icarl"])
@pytest.mark.parametrize("refused", [0.05, 0.3])
def test_the_file_says_what_is_new_as_ask_does(
    learner: str, refused: float, tmp_path: Path
) -> None:
    classifier = taught(learner)
    classifier.refused = refused
    asked = torch.cat((FEATURES[48:], FEATURES[:6] * 9, FEATURES[:6] - 20))
    found, metadata = novelties(classifier.export(tmp_path / "m.onnx"), asked.numpy())
    answers = [classifier.ask_feature(z) for z in asked]
    assert found == pytest.approx([answer.novelty for answer in answers], rel=1e-3, abs=1e-3)
    assert float(metadata["refused"]) == refused
    if learner == "verse-joint":
        assert len({answer.known for answer in answers}) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_few_classes_have_a_novelty_too(count: int, tmp_path: Path) -> None:
    classifier = StreamClassifier(backbone=backbones.identity(6))
    for t, z in enumerate(FEATURES[:8]):
        classifier.learn_feature(z, t % count)
    found, _ = novelties(classifier.export(tmp_path / "m.onnx"), FEATURES[8:].numpy())
    expected = [classifier.ask_feature(z).novelty for z in FEATURES[8:]]
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("learner", sorted(REFUSED))
def test_others_say_why_not(learner: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no network to export"):
        taught(learner).export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_verse_exports_the_weights_it_answers_with(tmp_path: Path) -> None:
    files = []
    for which in ("theta", "phi"):
        classifier = StreamClassifier(
            backbone=backbones.identity(6), learner="verse", settings={"predict_with": which}
        )
        for t, z in enumerate(FEATURES):
            classifier.learn_feature(z, t % 3)
        files.append(probabilities(classifier.export(tmp_path / which), FEATURES.numpy())[1])
        expected = classifier.learner.predict_proba_many(FEATURES)
        assert np.allclose(files[-1], expected, atol=1e-6)
    assert not np.allclose(files[0], files[1], atol=1e-3)


@pytest.mark.parametrize("backbone", backbones.names())
def test_images_through_the_real_networks(backbone: str, tmp_path: Path) -> None:
    classifier = StreamClassifier(backbone=backbone, weights="random")
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, (90 + t, 70, 3), np.uint8) for t in range(6)]
    for t, image in enumerate(images):
        classifier.learn_one(image, f"class {t % 2}")
    path = classifier.export(tmp_path / "m.onnx")
    _, metadata = session(path)
    steps = json.loads(metadata["preprocess"])
    prepare = Preprocess(size=steps["size"], crop=steps["crop"])
    labels, p = probabilities(path, np.stack([prepare(image) for image in images]))
    for image, row in zip(images, p, strict=True):
        expected = classifier.predict_proba_one(image)
        assert dict(zip(labels, row.tolist(), strict=True)) == pytest.approx(expected, abs=2e-4)
    found, _ = novelties(path, np.stack([prepare(image) for image in images]))
    Z = classifier.features(images)
    assert found == pytest.approx(
        [classifier.ask_feature(z).novelty for z in Z], rel=0.02, abs=0.02
    )
    assert metadata["backbone"] == backbone and metadata["samples"] == "6"
    assert metadata["key"] == classifier.backbone.key
    assert metadata["learner"] == classifier.learner_name == "verse-joint"


def test_forgotten_classes_have_no_column(tmp_path: Path) -> None:
    classifier = taught("verse")
    classifier.forget(7)
    classifier.rename("cup", "glass")
    labels, p = probabilities(classifier.export(tmp_path / "m.onnx"), FEATURES[:1].numpy())
    assert labels == ["mug", "glass"] and p.shape == (1, 2)
    expected = classifier.predict_feature(FEATURES[0]).probabilities
    assert dict(zip(labels, p[0].tolist(), strict=True)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("learner", learners.names())
def test_nothing_learned_is_told(learner: str, tmp_path: Path) -> None:
    classifier = StreamClassifier(backbone=backbones.identity(6), learner=learner)
    with pytest.raises(BadSetting, match="nothing was learned"):
        classifier.export(tmp_path / "m.onnx")
    classifier.learn_feature(FEATURES[0], "mug")
    classifier.forget("mug")
    with pytest.raises(BadSetting, match="nothing was learned"):
        classifier.export(tmp_path / "m.onnx")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"cannot write .*: No such file"):
        taught("verse").export(tmp_path / "no" / "m.onnx")


def plastic_network() -> backbones.Backbone:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.Conv2d(4, 40, 3),
        nn.BatchNorm2d(40),
        nn.ReLU(),
        nn.Conv2d(40, 40, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(160, 5),
    )
    return backbones.split(net, at="2", preprocess=Preprocess(size=8))


def test_while_learning_goes_on_every_file_is_one_moment(tmp_path: Path) -> None:
    """Every export equals the state after exactly the number of samples it names."""
    classifier = StreamClassifier(backbone=plastic_network(), learner="tinyer")
    Z = classifier.features(
        [np.random.default_rng(t).integers(0, 256, (8, 8, 3), np.uint8) for t in range(8)]
    )
    probe = np.full((1, 8, 8, 3), 99, np.uint8)
    z = classifier.features([probe[0]])[0]
    classifier.learn_feature(Z[0], 0)
    seen: dict[int, list[float]] = {}
    faults: list[BaseException] = []
    done = threading.Event()

    def learn() -> None:
        t = 0
        try:
            while not done.is_set():
                t += 1
                classifier.learn_feature(Z[t % 8], t % 2)
                answer = classifier.predict_feature(z)
                seen[answer.step] = list(answer.probabilities.values())
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        files = [classifier.export(tmp_path / f"{i}.onnx") for i in range(6)]
    finally:
        done.set()
        thread.join()
    assert faults == []
    for file in files:
        _, metadata = session(file)
        samples = int(metadata["samples"])
        if samples in seen:
            p = probabilities(file, probe)[1]
            assert p[0].tolist() == pytest.approx(seen[samples], abs=1e-5)
    assert len({session(file)[1]["samples"] for file in files}) > 1


def test_a_classifier_can_be_pickled_and_goes_on_alike() -> None:
    classifier = StreamClassifier(backbone=plastic_network())
    images = [np.random.default_rng(t).integers(0, 256, (9, 9, 3), np.uint8) for t in range(6)]
    classifier.learn_many(images[:4], [0, 1, 0, 1])
    twin = pickle.loads(pickle.dumps(classifier))
    for each in (classifier, twin):
        each.learn_many(images[4:], [1, 2])
    assert twin.predict_proba_one(images[0]) == classifier.predict_proba_one(images[0])


def test_from_the_shell(tmp_path: Path) -> None:
    with verse.open(tmp_path / "shelf", weights="random") as classifier:
        classifier.learn_one(np.zeros((30, 30, 3), np.uint8), "black")
        classifier.learn_one(np.full((30, 30, 3), 255, np.uint8), "white")
    arguments = ["export", str(tmp_path / "shelf"), str(tmp_path / "m.onnx"), "--json"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["labels"] == ["black", "white"] and told["samples"] == 2
    assert session(tmp_path / "m.onnx")[1]["labels"] == '["black", "white"]'
    assert CliRunner().invoke(main, ["export", str(tmp_path / "no"), "x.onnx"]).exit_code == 2
