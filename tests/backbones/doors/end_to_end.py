"""One story for every kind of backbone: teach, save, go on in a fresh process, export, serve."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import verse
from verse.classifier import StreamClassifier
from verse.serve.access import LOOPBACK, Access
from verse.serve.app import create_app
from verse.serve.session import Session
from verse.types import BadState

COLOURS = {"red": (220, 40, 30), "green": (30, 200, 60), "blue": (20, 60, 210)}

GO_ON = """
import json, sys
from tests.backbones.doors.end_to_end import digest, lessons
from verse.classifier import StreamClassifier

classifier = StreamClassifier.load(sys.argv[1], threads=1)
for image, label in lessons(4, 7):
    classifier.learn_one(image, label)
told = {"state": digest(classifier), "name": classifier.backbone.name}
print(json.dumps(told | {"engine": classifier.backbone.G.engine}))
"""


def picture(label: str, seed: int) -> np.ndarray:
    """A noisy stripe of a colour on grey."""
    noise = np.random.default_rng(seed).integers(-25, 25, (48, 64, 3))
    pixels = np.full((48, 64, 3), 120)
    pixels[:, 8 + seed % 5 : 44] = COLOURS[label]
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


def lessons(start: int, stop: int) -> list[tuple[np.ndarray, str]]:
    return [(picture(label, seed), label) for seed in range(start, stop) for label in COLOURS]


def digest(classifier: StreamClassifier) -> str:
    """Every bit of what was learned."""
    found = hashlib.sha256()
    for name, tensor in sorted(classifier.learner.state().items()):
        found.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def check(backbone: str, folder: Path, root: Path, weights: str | None = None) -> None:
    """The whole story; ``weights`` go with the name."""
    classifier = StreamClassifier(backbone=backbone, weights=weights, threads=1)
    for image, label in lessons(0, 4):
        classifier.learn_one(image, label)
    classifier.save(folder / "half.safetensors")
    for image, label in lessons(4, 7):
        classifier.learn_one(image, label)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", GO_ON, str(folder / "half.safetensors")],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {
        "state": digest(classifier),
        "name": classifier.backbone.name,
        "engine": classifier.backbone.G.engine,
    }
    tests = [picture(label, 90) for label in COLOURS]
    assert classifier.predict_many(tests) == list(COLOURS)
    _export(classifier, tests, folder / "model.onnx")
    _serve(classifier, folder / "shelf", weights)


def _export(classifier: StreamClassifier, tests: list[np.ndarray], path: Path) -> None:
    session = onnxruntime.InferenceSession(classifier.export(path))
    inputs = np.stack([classifier.backbone.G.preprocess(image) for image in tests])
    (p,) = session.run(["probabilities"], {"input": inputs})
    labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
    for row, image in zip(p, tests, strict=True):
        expected = classifier.predict_proba_one(image)
        assert dict(zip(labels, row.tolist(), strict=True)) == pytest.approx(expected, abs=1e-3)


def _serve(classifier: StreamClassifier, folder: Path, weights: str | None) -> None:
    with verse.open(folder, backbone=classifier.backbone.name, weights=weights, threads=1) as shelf:
        for image, label in lessons(0, 4):
            shelf.learn_one(image, label)
    with pytest.raises(BadState, match=classifier.backbone.name.partition(":")[0]):
        verse.open(folder, backbone="efficientnet-lite0", weights="random")
    session = Session(verse.open(folder, threads=1), limit=8)  # remembers where G came from
    try:
        access = Access(hosts=LOOPBACK)
        with TestClient(create_app(session, access=access), base_url="http://localhost") as client:
            file = io.BytesIO()
            Image.fromarray(picture("blue", 91)).save(file, "PNG")
            picture_file = {"image": ("a.png", file.getvalue(), "image/png")}
            answer = client.post("/v1/predict", files=picture_file)
            assert answer.status_code == 200, answer.text
            assert answer.json()["label"] == "blue"
            status = client.get("/v1/status").json()
            assert status["backbone"] == classifier.backbone.name
    finally:
        session.close()
