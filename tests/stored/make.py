"""Writes samples of everything a classifier leaves on disk, as the version that runs this makes it.

``python tests/stored/make.py tests/stored/VERSION`` with that version on the path. What is stored
here stays readable for ever: ``tests/test_stored.py`` opens all of it.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import verse
from verse import backbones, durable
from verse.durable import Lesson

LEARNED, MORE = 30, 10


def tiny() -> backbones.Backbone:
    """A network of one convolution, its weights exact on every machine."""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
        nn.Linear(4, 2),
    )
    with torch.no_grad():
        for parameter in net.parameters():
            n = parameter.numel()
            parameter.copy_((torch.arange(n) * 37 % 64 - 31).reshape(parameter.shape) / 64)
    return backbones.split(net, at="2", preprocess=backbones.Preprocess(size=8), name="tiny")


# name → (backbone, options of the classifier)
KINDS = {
    "verse-lda": (lambda: backbones.identity((6,)), {"learner": "verse-lda", "seed": 3}),
    "derpp": (
        tiny,
        {"learner": "derpp", "settings": {"lr": 0.02}, "per_class": 5, "memory": "reservoir"},
    ),
    "slda": (lambda: backbones.identity((6,)), {"learner": "slda", "capacity": 7}),
}


def inputs(kind: str, n: int, seed: int) -> list[np.ndarray]:
    """What is shown: features without a network, small pictures with one."""
    rng = np.random.default_rng(seed)
    if kind == "derpp":
        return [rng.integers(0, 256, (9, 9, 3)).astype(np.uint8) for _ in range(n)]
    return [rng.integers(-64, 64, 6).astype(np.float32) / 32 for _ in range(n)]


def label(t: int) -> str | int:
    return ["mug", "cup", 7, "Tasse grün"][t * 7 % 11 % 4]


def lessons(kind: str, n: int, seed: int = 0) -> list[tuple[np.ndarray, str | int]]:
    return [(x, label(t)) for t, x in enumerate(inputs(kind, n, seed))]


def answers(classifier, kind: str) -> dict[str, object]:
    """What it says of five inputs, and what it knows."""
    asked = [classifier.predict(x) for x in inputs(kind, 5, 99)]
    return {
        "classes": classifier.classes,
        "samples": classifier.samples,
        "probabilities": [[[k, round(v, 6)] for k, v in a.probabilities.items()] for a in asked],
    }


def tell_before_and_after(classifier, kind: str) -> dict[str, object]:
    """Its answers as stored, and after ten further samples."""
    before = answers(classifier, kind)
    for x, y in lessons(kind, MORE, 1):
        classifier.learn_one(x, y)
    return {"stored": before, "later": answers(classifier, kind)}


def make(target: Path) -> None:
    torch.set_num_threads(1)
    expected: dict[str, object] = {}
    for kind, (backbone, options) in KINDS.items():
        folder = target / kind
        folder.mkdir(parents=True)
        plain = verse.StreamClassifier(backbone=backbone(), **options)
        for x, y in lessons(kind, LEARNED):
            plain.learn_one(x, y)
        plain.rename("cup", "bowl")
        plain.forget(7)
        plain.save(folder / "checkpoint.verse")
        expected[f"{kind}/checkpoint"] = tell_before_and_after(plain, kind)

        # closed once before the end, so that the log stays small
        work, all_lessons = target / "work", list(enumerate(lessons(kind, LEARNED)))
        with verse.open(work, backbone=backbone(), keep_images=kind == "derpp", **options) as first:
            for t, (x, y) in all_lessons[:-1]:
                teach(first, kind, t, x, y)
        on_disk = verse.open(work, backbone=backbone())
        teach(on_disk, kind, *[(t, x, y) for t, (x, y) in all_lessons][-1])
        on_disk.undo(25)
        on_disk.rename("cup", "bowl")
        on_disk.merge("Tasse grün", "mug")
        if kind == "verse-lda":  # as a killed process leaves it: copied while open, with its log
            shutil.copytree(work, folder / "killed", ignore=shutil.ignore_patterns("lock", "*-shm"))
        durable.backup(work, folder / "backup.zip")
        on_disk.close()
        shutil.copytree(work, folder / "closed", ignore=shutil.ignore_patterns("lock"))
        with verse.open(work, backbone=backbone()) as again:
            taught = [[k, v] for k, v in again.taught.items()]
            facts = {"taught": taught, "undoable": again.undoable}
            expected[f"{kind}/directory"] = facts | tell_before_and_after(again, kind)
        shutil.rmtree(work)
    text = json.dumps(expected, ensure_ascii=False)
    (target / "expected.json").write_text(text, encoding="utf-8")


def teach(classifier, kind: str, t: int, x: np.ndarray, y: str | int) -> None:
    kept = {"thumbnail": b"kept as it is"} | ({"image": _png(x)} if kind == "derpp" else {})
    classifier.learn_lessons([Lesson(classifier.features([x])[0], y, f"key {t}", kept)])


def _png(x: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(x).save(file, "PNG")
    return file.getvalue()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
