"""The drawing of docs/architecture.md is the way that the code takes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import verse
from tests.test_docs import script
from tests.walks import PACKAGE, Walk

# One interface that several modules offer: registries (names, describe, get, build, load),
# commands, routes, measurements, programs. Every other public name is defined once.
INTERFACES = {
    *("names", "describe", "get", "build", "load"),
    *("command", "router", "measure", "main"),
}
MOST = {"FRAME": 32, "RUN": 64, "LESSON": 62}  # files; fewer are welcome, more need a reason


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    return script("drawing")


@pytest.fixture
def walk() -> Iterator[Walk]:
    with Walk() as started:
        yield started


def noise(seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 255, (64, 64, 3), dtype=np.uint8)


def compare(drawing: ModuleType, way: str, files: set[str]) -> None:
    """Every file drawn is run through; so is every folder run through drawn, on some way."""
    drawn = {file for file, _ in drawing.WAYS[getattr(drawing, way)]}
    assert drawn <= files, f"not on the way: {drawn - files}"
    assert len(files) <= MOST[way], sorted(files)


def test_a_frame_goes_as_drawn(drawing: ModuleType, walk: Walk) -> None:
    classifier = verse.StreamClassifier(seed=0)
    for t in range(4):
        classifier.learn_one(noise(t), "ab"[t % 2])
    compare(drawing, "FRAME", walk.files_of(lambda: classifier.learn_one(noise(), "a")))


def test_a_run_goes_as_drawn(
    drawing: ModuleType, walk: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verse.experiments import Run, execute

    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "cache"))
    for label in "ab":
        for video in ("1", "2"):
            folder = tmp_path / "photos" / label / video
            folder.mkdir(parents=True)
            for t in range(3):
                Image.fromarray(noise(t)).save(folder / f"{t}.png")
    run = Run(f"folder:{tmp_path / 'photos'}", holdout="last:1", offline=False)
    compare(drawing, "RUN", walk.files_of(lambda: execute(run)))


def test_a_lesson_goes_as_drawn(drawing: ModuleType, walk: Walk, tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    import io

    from fastapi.testclient import TestClient

    from verse.serve.app import create_app
    from verse.serve.session import Session

    file = io.BytesIO()
    Image.fromarray(noise()).save(file, "PNG")
    session = Session(verse.open(tmp_path / "taught", seed=0), limit=8)
    app = create_app(session, decoders=1, decode_seconds=30.0)

    def teach(label: str) -> None:
        form = {"files": {"image": ("a.png", file.getvalue())}, "data": {"label": label}}
        assert client.post("/v1/learn", **form).status_code == 200

    with TestClient(app, base_url="http://127.0.0.1:8700") as client:
        for label in "abab":
            teach(label)
        files = walk.files_of(lambda: teach("a"))
    session.close()
    compare(drawing, "LESSON", files)


def test_every_folder_says_what_may_go_in() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    for file in sorted(PACKAGE.rglob("__init__.py")):
        folder = file.parent.relative_to(PACKAGE).as_posix()
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        said = re.sub(r"\s+", " ", text)
        assert re.search(r"Belongs [^:]+: .+\. Does not belong here: ", said), f"verse/{folder}"
        if folder != "." and "/" not in folder:
            assert f"`{folder}/`" in page, f"docs/architecture.md lacks verse/{folder}"
    for file in PACKAGE.glob("[a-z]*.py"):
        assert f"`{file.name}`" in page, f"docs/architecture.md lacks verse/{file.name}"


def test_a_public_name_means_one_thing() -> None:
    where: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                where.setdefault(node.name, []).append(file.relative_to(PACKAGE).as_posix())
    twice = {name for name, files in where.items() if len(files) > 1 and name[0] != "_"}
    assert twice == INTERFACES, {name: where.get(name) for name in twice ^ INTERFACES}
