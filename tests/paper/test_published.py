"""The published pages are those that the results give, small, and beside the paper's figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from paper import ablations, headline, published, report
from paper.knobs import EMA_LEVELS
from paper.source import PaperResults, digest
from verse.experiments.store import Store
from verse.reports import scores


@pytest.fixture(scope="module")
def found(store: Store) -> PaperResults:
    return PaperResults(store.results())


@pytest.fixture
def pages(root: Path) -> Path:
    folder = root / "docs" / "results"
    if not (folder / "report.json").exists():
        pytest.skip("no report yet: python -m paper.report")
    return folder


def test_the_pages_are_of_these_results(pages: Path, root: Path) -> None:
    """By content: a changed number is noticed, not only a new run."""
    facts = json.loads((pages / "report.json").read_text(encoding="utf-8"))
    assert facts["digest"] == digest(root / "results"), "run: python -m paper.report"


def test_the_pages_are_small_and_whole(pages: Path) -> None:
    files = {path.relative_to(pages).as_posix() for path in pages.rglob("*") if path.is_file()}
    assert sum((pages / name).stat().st_size for name in files) < 3_000_000
    text = {page.name: page.read_text(encoding="utf-8") for page in pages.glob("*.md")}
    named = {link for page in text.values()
             for link in re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", page)}  # fmt: skip
    assert named == {name for name in files if "/" in name}
    assert len(text["index.md"]) < 8000  # a short page
    for name, page in text.items():
        for line in page.splitlines():
            assert not line.startswith("|") or line.count("|") <= 14, f"{name}: {line[:80]}"


def test_all_pages_are_made(found: PaperResults, tmp_path: Path) -> None:
    report.write(found, tmp_path / "out", "x")
    names = {page.stem for page in (tmp_path / "out").glob("*.md")}
    assert {"index", "claims", "ablations", "tuning", "paper"} < names
    index = (tmp_path / "out" / "index.md").read_text()
    assert "figures/overview.png" in index and "### Places by μ_all" in index
    facts = json.loads((tmp_path / "out" / "report.json").read_text())
    assert facts["digest"] == "x" and len(facts["omega_all"]) == 14
    assert {claim["verdict"] for claim in facts["claims"]} >= {"undecided"}


def test_the_headline_is_a_figure_and_three_sentences(found: PaperResults) -> None:
    text = headline.block(found)
    assert text.startswith("![") and headline.FIGURE in text
    assert "verse is first in" in text and text.count("\n") <= 3


def test_ablations_are_found_by_what_runs_record(found: PaperResults) -> None:
    turned = {a.knob.name: a for a in ablations.find(found) if a.learner == "verse"}
    assert turned["capacity"].values == [4, 12]
    assert turned["lam"].values == [0.0, 0.3, 1.0]
    assert turned["r"].values == [0.0, 0.05, 0.4]
    assert turned["ema"].values == list(EMA_LEVELS)
    assert set(turned["policy"].values) == {"fifo", "reservoir", "class-balanced"}
    assert list(turned["lam"].cells) == ["iid", "class-instance"]
    assert {e.n for by in turned["lam"].cells.values() for e in by.values()} == {2}


def test_the_papers_figures_stand_beside_ours_on_its_data_sets(found: PaperResults) -> None:
    listed = scores.records(found)
    assert published.beside(listed) is None
    same = [r | {"dataset": "core50"} for r in listed]
    table = published.beside(same)
    assert table is not None
    assert {(r["learner"], r["paper"]) for r in table.records if r["order"] == "iid"} == {
        (name, published.published()["core50", "iid", name])
        for name in ("verse", "tinyer", "gdumb")
    }
