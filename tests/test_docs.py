"""The documentation: it builds strictly, says what the code says, and its examples run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
import torch

import verse
from paper import measured, pages
from paper.blocks import content
from tests.docs_pages import reading
from verse import learners
from verse.experiments.line import encode
from verse.experiments.store import Store

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXECUTED = [
    DOCS / "quickstart-device.md",
    DOCS / "quickstart-research.md",
    DOCS / "quickstart-adapters.md",
    *sorted((DOCS / "tutorials").glob("*.md")),
]
PLAIN = {"tutorials/index.md"}  # nothing to run


# ---- examples -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rendered frames and features, shared by the pages."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def desk(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in, with the recipes beside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERSE_CACHE", str(cache))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if Path(getattr(sys.modules[name], "__file__", None) or "").parent == tmp_path:
            del sys.modules[name]
    torch.set_num_threads(1)  # commands set their own


@pytest.mark.slow
@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, desk: Path) -> None:
    library = page.stem.removeprefix("own-backbone-")
    if library != page.stem and importlib.util.find_spec(library) is None:
        pytest.skip(f"no {library} here: tests/backbones/doors/test_real_libraries.py runs it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with reading(page, port) as reader:
        reader.read()
    assert reader.ran or page.relative_to(DOCS).as_posix() in PLAIN


# ---- what follows from the code -------------------------------------------------------------


def script(name: str) -> ModuleType:
    """A script of docs/, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))  # scripts import what they share
        patch.setitem(sys.modules, name, module)  # dataclasses look for their module there
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """What writes the pages that follow from the code."""
    return script("generate")


def test_generated_pages_are_up_to_date(generate: ModuleType) -> None:
    old = [
        page
        for page, text in generate.pages().items()
        if not (DOCS / page).exists() or (DOCS / page).read_text(encoding="utf-8") != text
    ]
    assert old == [], "run: python docs/generate.py"


def test_tables_follow_from_the_results() -> None:
    """They are those that were written (from these results: tests/paper/test_published.py), and
    those of few results would be written so today."""
    written = json.loads(pages.WRITTEN.read_text(encoding="utf-8"))
    old = []
    for name, checksum in written.items():
        file, marker = name.split()
        text = content((ROOT / file).read_text(encoding="utf-8"), marker)
        old += [name] if pages.checksum(text) != checksum else []
    for page, marker, make in pages.TABLES:
        if marker not in ("headline", "progress"):  # they read all results
            text = content(page.read_text(encoding="utf-8"), marker)
            old += [marker] if text != make() else []
    assert len(written) == len(pages.TABLES) + len(learners.names())
    assert old == [], "run: python -m paper.pages"


def test_a_learner_s_results_come_with_the_command_that_repeats_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kept in (measured.cells, measured.holders):
        kept.cache_clear()
    monkeypatch.setattr(measured, "ROOT", tmp_path / "empty")
    assert measured.block("verse") == "No finished run yet.\n" == measured.block("offline")
    monkeypatch.setattr(measured, "ROOT", tmp_path)
    measured.cells.cache_clear()
    runs = {r.run.learner: r for r in Store(ROOT / "results" / "sanity").results()}
    for learner, folder in (("mas", "results"), ("tinyer", "results/sanity")):
        Store(tmp_path / folder).add(encode(runs[learner]))
    assert re.search(
        r"\| class-instance \| 4% \| defaults \| 0\.\d+ \(.*\) \| 1 \|", measured.block("mas")
    )
    assert "verse run folder:eth80 --learner mas --order class-instance" in measured.block("mas")
    assert "| 1 | 1 |" in measured.block("offline"), "the bound of these runs"
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    measured.holders.cache_clear()
    # which recipe holds a run changes with the settings that are chosen there
    again = r"verse compare recipes/[\w-]+\.toml --only learner=mas --results again\n"
    assert re.search(again, measured.block("mas"))
    own = "verse compare recipes/sanity.toml --only learner=tinyer --results again\n"
    assert own in measured.block("tinyer")
    for kept in (measured.cells, measured.holders):
        kept.cache_clear()


@pytest.mark.parametrize("name", learners.names())
def test_every_learner_has_a_page_with_its_settings(name: str) -> None:
    text = (DOCS / "learners" / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    missing = [key for key in learners.settings(name) if key != "seed" and f"`{key}`" not in text]
    assert missing == []


def test_every_learner_page_has_a_learner() -> None:
    pages = {page.stem for page in (DOCS / "learners").glob("*.md")}
    assert pages == {*learners.names(), "index"}


# ---- the site -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` does."""
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("no mkdocs-material: pip install 'verse-stream[docs]'")
    out = tmp_path_factory.mktemp("site") / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return out


class Fetched(HTMLParser):
    """What a browser loads without being asked to: images, styles, scripts, frames."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.urls: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("img", "script", "iframe", "source", "video"):
            self.urls.add(values.get("src") or "")
        if tag == "link" and values.get("rel") != "canonical":
            self.urls.add(values.get("href") or "")


@pytest.mark.slow
def test_the_site_builds_strictly_and_fetches_nothing(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        for url in Fetched(page.read_text(encoding="utf-8")).urls:
            assert "//" not in url, f"{page.name} loads {url}"


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path, generate: ModuleType) -> None:
    documented = inventory(site / "objects.inv")
    missing = {
        name
        for name in public(generate)
        if not {name, f"{name}.{name.rpartition('.')[2]}"} & documented
    }
    assert missing == set()


def inventory(file: Path) -> set[str]:
    """The names that the built reference has an anchor for."""
    lines = file.read_bytes().split(b"\n", 4)
    return {line.split(" ")[0] for line in zlib.decompress(lines[4]).decode().splitlines()}


def public(generate: ModuleType) -> Iterator[str]:
    """Public names: what ``__all__`` lists, or the functions and classes of a module itself."""
    yield from (f"verse.{name}" for name in verse.__all__ if name != "__version__")
    for name in filter(generate.exists, verse._MODULES):
        module = generate.module(name)
        values = vars(module)
        yield from (f"verse.{name}.{key}" for key in values.get("__all__", ()))
        if "__all__" not in values:
            for key, value in values.items():
                own = getattr(value, "__module__", None) == module.__name__
                if own and callable(value) and not key.startswith("_"):
                    yield f"verse.{name}.{key}"


def test_pages_speak_of_commands_and_recipes_that_exist() -> None:
    for page in (*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"\brecipes/[\w/.-]+\.toml", text):
            assert (ROOT / path).exists(), f"{page.name} names {path}"
        for target in re.findall(r"^make (\w+)(?: +#.*)?$", text, re.M):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), target


def test_the_page_icon_is_the_services_own() -> None:
    assert (DOCS / "images" / "icon.svg").read_bytes() == (
        ROOT / "verse" / "serve" / "page" / "icon.svg"
    ).read_bytes()


def test_pictures_are_small() -> None:
    for picture in (DOCS / "images").glob("*.png"):
        assert picture.stat().st_size < 600_000, f"{picture.name} is too large for a page"
