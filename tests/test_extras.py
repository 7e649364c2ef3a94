"""Without its packages every optional part says which extra brings them."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verse.extras import APART, EXTRAS, need
from verse.types import VerseError

MODULES = {module: extra for extra, packages in EXTRAS.items() for module in packages}

# Every way into an optional part, and the extra that it names.
WAYS = {
    "import verse.serve": "serve",
    "from verse.serve import client": "serve",
    "from verse.reports import page": "report",
    "from verse.reports import style": "report",
    "from verse.reports import curve": "report",
    "from verse.compat.river import RiverClassifier": "compat",
    "from verse.compat.sklearn import SklearnClassifier": "compat",
    "from verse.video import shots; list(shots('a.mp4'))": "video",
    "from verse.datasets.films import count_frames; count_frames(Path('a.mp4'))": "video",
    "from verse.trackers import tracker; tracker('tensorboard:x')": "tensorboard",
    "from verse.watch.mqtt import MQTT; MQTT('mqtt://host/topic')": "mqtt",
    "from verse.kernels.projection import solver; solver()": "qp",
    "import torch; from verse.kernels.product_quantizer import ProductQuantizer as PQ; "
    "PQ(torch.ones(1, 1, 1), 'faiss')": "faiss",
    "from verse.experiments.ray_engine import RayEngine; RayEngine()": "ray",
    "from verse.backbones import build; build('timm:resnet18')": "timm",
    "from verse.backbones import build; build('hf:some/model')": "transformers",
    "from verse.backbones import build; build('efficientnet-lite1')": "lite1",
    "from verse.backbones import build; build('efficientnet-lite2')": "lite2",
}

COMMANDS = {
    ("serve", "shelf"): "serve",
    ("report",): "report",
    ("predict", "shelf", "a.mp4"): "video",
    ("teach", "shelf2", "a.mp4", "--label", "x"): "video",
}

SCRIPT = """
import json, sys, warnings
from pathlib import Path

for name in ABSENT:
    sys.modules[name] = None  # as if it were not installed
warnings.simplefilter("ignore")
told = {}
for way in WAYS:
    try:
        exec(way, {"Path": Path})
        told[way] = "worked"
    except Exception as error:
        told[way] = f"{type(error).__name__}: {error}"

import verse
from click.testing import CliRunner
from verse.backbones import identity
from verse.cli import main

with verse.open("shelf", weights="random") as classifier:
    pass
for command in COMMANDS:
    result = CliRunner().invoke(main, command)
    told[" ".join(command)] = f"{result.exit_code}: {result.output}"
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    absent = set(MODULES) - {"jinja2"}  # torch brings it
    absent |= {"starlette"}
    code = f"ABSENT = {absent}\nWAYS = {list(WAYS)}\nCOMMANDS = {list(COMMANDS)}\n{SCRIPT}"
    folder = tmp_path_factory.mktemp("core")
    (folder / "a.mp4").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return answers


@pytest.mark.parametrize("way", WAYS)
def test_the_library_names_the_extra(told: dict[str, str], way: str) -> None:
    assert told[way].startswith("MissingExtra: ")
    assert f"pip install 'verse-stream[{WAYS[way]}]'" in told[way]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_command_line_names_the_extra(told: dict[str, str], command: tuple[str, ...]) -> None:
    answer = " ".join(told[" ".join(command)].split())
    assert answer.startswith("2: ")
    assert f"pip install 'verse-stream[{COMMANDS[command]}]'" in answer


def test_every_optional_import_is_guarded(root: Path) -> None:
    """An import of an optional package is inside ``OptionalImport`` (or ``try``), or behind one."""
    bare = []
    for path in sorted((root / "verse").rglob("*.py")):
        behind = path.is_relative_to(root / "verse" / "serve") or path.name == "serve.py"
        behind |= path.parent.name == "rivals"  # scripts that other environments run
        tree = ast.parse(path.read_text())
        blocks = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Try)
            or (isinstance(node, ast.With) and "OptionalImport()" in ast.unparse(node.items[0]))
        ]
        guarded = {m for block in blocks for n in ast.walk(block) for m in imported(n)}
        bare += [
            f"{path.relative_to(root)}:{node.lineno} {module}"
            for node in ast.walk(tree)
            for module in imported(node)
            if module in MODULES and module not in guarded and not behind
        ]
    assert bare == []


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


def test_it_is_an_import_error_and_one_of_ours(monkeypatch) -> None:
    """So that ``except ImportError`` and ``except VerseError`` both catch what ``need`` raises."""
    monkeypatch.setitem(EXTRAS["video"], "no_such_module", "no-such-package")
    for kind in (ImportError, VerseError):
        with pytest.raises(kind, match=r"no-such-package: pip install 'verse-stream\[video\]'"):
            need("video")


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - set(APART)))
def test_all_extras_are_here_where_tests_run(extra: str) -> None:
    """But for those that need an environment of their own (``test_real_libraries.py``)."""
    need(extra)
