"""The package as a whole: what it costs to import, what it says, and what its wheel holds."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import pkgutil
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import typing
import zipfile
from collections.abc import Iterable, Iterator
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from packaging.requirements import Requirement
from PIL import Image

import verse
from verse.extras import APART, EXTRAS
from verse.network import Head, Plastic
from verse.types import DISTRIBUTION

HEAVY = ("torch", "numpy", "onnxruntime", "rich", "PIL", "fastapi", "matplotlib", "ray")


def fresh(code: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("module", ["verse", "verse.cli", "verse.types"])
def test_import_is_light(module: str) -> None:
    result = fresh(f"import sys, {module}; print(*[m for m in {HEAVY} if m in sys.modules])")
    assert result.stdout.split() == []


def test_help_is_instant() -> None:
    """It imports hardly more than click alone, which is what its time goes to on any machine."""
    code = (
        "import sys\nfrom click.testing import CliRunner\nbefore = set(sys.modules)\n"
        "from verse.cli import main\nassert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "print(*set(sys.modules) - before)"
    )
    more = fresh(code).stdout.split()
    assert not {name.partition(".")[0] for name in more} & set(HEAVY)
    assert len(more) < 60, more


def test_public_names_resolve() -> None:
    for name in verse.__all__:
        assert getattr(verse, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        verse.nothing  # noqa: B018


def test_dir_and_modules_agree(root: Path) -> None:
    there = {m.name for m in pkgutil.iter_modules([str(root / "verse")])} - {"cli"}
    assert there <= set(dir(verse))


def exported() -> Iterator[tuple[str, object]]:
    """Every name that a module of the package lists in ``__all__``."""
    for info in pkgutil.walk_packages(verse.__path__, "verse."):
        if not info.name.endswith("__main__"):
            module = importlib.import_module(info.name)
            for name in vars(module).get("__all__", ()):
                yield f"{info.name}.{name}", getattr(module, name)


def test_every_public_name_is_documented() -> None:
    silent = [
        name
        for name, value in exported()
        if (inspect.isclass(value) or inspect.isroutine(value)) and not inspect.getdoc(value)
    ]
    assert silent == []


def test_every_public_class_shows_how_it_is_used() -> None:
    classes = {value for _, value in exported() if inspect.isclass(value)}
    bases = {base for value in classes for base in value.__mro__[1:]}  # shown by their members
    unshown = {
        f"{value.__module__}.{value.__qualname__}"
        for value in classes - bases
        if value.__module__.startswith("verse.")
        and not issubclass(value, BaseException)
        and not inspect.isabstract(value)
        and not typing.is_typeddict(value)
        and not getattr(value, "_is_protocol", False)
        and ">>>" not in (value.__doc__ or "")
    }
    assert unshown == set()


def listed_parameters(value: type) -> set[str]:
    """The names under "Parameters" in the docstring of a class."""
    section = (inspect.getdoc(value) or "").partition("Parameters\n----------\n")[2]
    names = re.findall(r"^(\w+(?:, \w+)*)$", section, re.M)
    return {name for line in names for name in line.split(", ")}


def test_every_public_class_lists_its_parameters() -> None:
    classes = {value for _, value in exported() if inspect.isclass(value)}
    lacking = {
        f"{value.__module__}.{value.__qualname__}": missing
        for value in classes
        if value.__module__.startswith("verse.")
        and not issubclass(value, BaseException)
        and not inspect.isabstract(value)
        and not typing.is_typeddict(value)
        and not getattr(value, "_is_protocol", False)
        and (missing := set(inspect.signature(value).parameters) - listed_parameters(value))
    }
    assert lacking == {}


def python_examples(page: Path) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, which makes each picture an example names."""
    rows, columns = np.mgrid[0:240, 0:320]
    blob = np.hypot(rows - 120, columns - 160) < 80
    picture = np.stack([np.where(blob, 200, columns * 255 // 320)] * 3, axis=-1)
    for name in ("mug.jpg", "cup.jpg"):
        Image.fromarray(picture.astype(np.uint8)).save(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_of_the_readme_run(root: Path, photos: Path) -> None:
    examples = python_examples(root / "README.md")
    assert examples
    out = io.StringIO()
    names: dict[str, Any] = {"__name__": "readme"}  # a later example goes on with the first
    with contextlib.redirect_stdout(out):
        for example in examples:
            exec(compile(example, "README.md", "exec"), names)
    assert out.getvalue().startswith("mug\n")
    assert names["answer"].nearest == "mug"


def test_the_examples_for_contributors_work(root: Path) -> None:
    names: dict[str, Any] = {"__name__": "contributing"}
    for example in python_examples(root / "CONTRIBUTING.md"):
        exec(compile(example, "CONTRIBUTING.md", "exec"), names)

    F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    learner = names["Cautious"](F, names["Sticky"](10))
    for t in range(60):
        learner.learn_one(torch.eye(2)[t % 2], t % 2)
    assert [learner.predict_one(z) for z in torch.eye(2)] == [0, 1]
    assert learner.memory.all().y.tolist() == [0, 1] * 5

    dataset = names["load"]()
    assert (len(dataset.train), len(dataset.test)) == (20, 20)
    assert dataset.train.read(10).max() == 80


def test_the_links_of_the_readme_exist(root: Path) -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (root / page).read_text(encoding="utf-8")):
            assert target.startswith("https://") or (root / target).exists(), f"{page}: {target}"


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The built wheel."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)],
        cwd=root,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=True,
        capture_output=True,
    )
    return zipfile.ZipFile(next(out.glob("verse_stream-*.whl")))


CORE_ALONE = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import verse
from verse.types import MissingExtra

for info in pkgutil.walk_packages(verse.__path__, "verse."):
    if info.name.startswith(("verse.serve.", "verse.reports.", "verse.compat.")):
        continue
    try:
        importlib.import_module(info.name)
    except MissingExtra:
        pass
"""


def test_the_library_imports_without_any_extra() -> None:
    # torch brings jinja2, so it is never absent
    names = {module for packages in EXTRAS.values() for module in packages} - {"jinja2"}
    fresh(f"EXTRAS = {names}\n{CORE_ALONE}")


def find_needed(lines: Iterable[str], found: set[str]) -> set[str]:
    """The distributions that requirements name, and those that these need, without extras."""
    for wanted in map(Requirement, lines):
        name = wanted.name.lower()
        if name not in found and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            found.add(name)
            find_needed(metadata.requires(name) or (), found)
    return found


def requirements(wheel: zipfile.ZipFile) -> list[str]:
    """What a wheel says that it needs, line by line."""
    file = next(name for name in wheel.namelist() if name.endswith("METADATA"))
    return message_from_bytes(wheel.read(file)).get_all("Requires-Dist", [])


@pytest.mark.slow
def test_the_wheel_works_with_what_it_asks_for_and_nothing_else(
    wheel: zipfile.ZipFile, root: Path, photos: Path
) -> None:
    """An environment with the wheel and links to the packages that it needs, as installed here."""
    folder = photos / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    names = find_needed(requirements(wheel), set())
    assert "torch" in names and "fastapi" not in names
    for name in names:
        found = metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    assert wheel.filename is not None
    python = str(folder / "bin" / "python")
    alone = ["--quiet", "--no-index", "--no-deps", "--no-compile"]
    for words in (["install", *alone, wheel.filename], ["check"]):
        subprocess.run([python, "-m", "pip", *words], check=True, capture_output=True)
    example = "\n".join(python_examples(root / "README.md"))
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-W", "error", "-c", f"{example}\nprint(verse.__file__)"],
        check=True,
        capture_output=True,
        text=True,
        env=clean,
        cwd=photos,
    )
    assert "mug" in done.stdout and str(site) in done.stdout
    info = subprocess.run(
        [str(folder / "bin" / "verse"), "info"],
        check=True,
        capture_output=True,
        text=True,
        env=clean,
    )
    assert "onnxruntime" in info.stdout
    missing = subprocess.run([python, "-c", "import fastapi"], capture_output=True, env=clean)
    assert missing.returncode == 1


def test_the_wheel_holds_the_whole_package_and_nothing_else(
    wheel: zipfile.ZipFile, root: Path
) -> None:
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {
        path.relative_to(root).as_posix()
        for path in (root / "verse").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "verse/py.typed" in inside
    assert inside == wanted


def test_the_sdist_holds_what_a_build_and_the_tests_need(root: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=True,
        capture_output=True,
    )
    with tarfile.open(next(tmp_path.glob("verse_stream-*.tar.gz"))) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("verse", "tests", "benchmarks", "recipes", "docs"):
        wanted = {
            path.relative_to(root).as_posix()
            for path in (root / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert wanted <= inside
    alone = {"pyproject.toml", "README.md", "LICENSE", "constraints.txt", "demo.py", "mkdocs.yml"}
    assert alone <= inside


def test_the_wheel_asks_for_the_core_only(wheel: zipfile.ZipFile) -> None:
    required = {Requirement(line).name for line in requirements(wheel) if "extra ==" not in line}
    assert {"torch", "numpy", "pillow", "safetensors", "onnxruntime"} <= required
    assert not required & {"fastapi", "matplotlib", "ray", "river", "scikit-learn"}
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())


def test_no_hint_installs_the_package_of_a_stranger(root: Path) -> None:
    """``verse`` on the package index is another project: ours has a name of its own."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION != "verse"
    together = ",".join(extra for extra in EXTRAS if extra not in APART)
    assert project["optional-dependencies"]["all"] == [f"{DISTRIBUTION}[{together}]"]
    named = re.compile(r"verse\[\w|pip install (-U |--upgrade )?['\"]?verse(?!-stream)\b")
    pages = [*root.glob("*.md"), *root.glob("*.py"), root / "Makefile", root / "pyproject.toml"]
    for folder in ("verse", "docs", "recipes", "benchmarks"):
        pages += [p for p in (root / folder).rglob("*") if p.suffix in (".py", ".md", ".toml")]
    wrong = [
        f"{page.relative_to(root)}: {line.strip()}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if named.search(line) and 'verse["' not in line
    ]
    assert wrong == []
