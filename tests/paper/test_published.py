"""The published pages are those that the results give, small, and beside the paper's figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from paper import ablations, headline, measured, progress, published, report, verdicts
from paper.comparisons import FIRST, MAIN
from paper.knobs import EMA_LEVELS
from paper.source import PaperResults, digest
from tests.reports.made import made
from verse.experiments.recipe import read_recipe
from verse.experiments.store import Store
from verse.reports import scores


@pytest.fixture(scope="module")
def found(store: Store) -> PaperResults:
    return PaperResults(store.results())


@pytest.fixture
def pages(root: Path) -> Path:
    folder = root / "docs" / "results"
    if not (folder / "report.json").exists():
        pytest.skip("no report yet: python -m paper.pages")
    return folder


def test_the_pages_are_of_these_results(pages: Path, root: Path) -> None:
    """By content: a changed number is noticed, not only a new run."""
    for file in (pages / "report.json", pages / "first" / "report.json"):
        facts = json.loads(file.read_text(encoding="utf-8"))
        assert facts["digest"] == digest(root / "results"), "run: python -m paper.pages"


@pytest.mark.parametrize("folder", ["", "first"])
def test_the_pages_are_small_and_whole(pages: Path, folder: str) -> None:
    pages = pages / folder
    files = {path.relative_to(pages).as_posix() for path in pages.rglob("*") if path.is_file()}
    files = {name for name in files if not name.startswith("first/")}
    assert sum((pages / name).stat().st_size for name in files) < 3_000_000
    text = {page.name: page.read_text(encoding="utf-8") for page in pages.glob("*.md")}
    named = {
        link
        for page in text.values()
        for link in re.findall(r"\]\(((?:figures|tables)/[^)]+)\)", page)
    }
    assert named == {name for name in files if "/" in name}
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", text["index.md"]))
    assert linked == set(text) - {"index.md"}  # every page is one click away
    assert len(text["index.md"]) < 8000  # a short page
    for name, page in text.items():
        for line in page.splitlines():
            assert not line.startswith("|") or line.count("|") <= 14, f"{name}: {line[:80]}"


@pytest.mark.slow
def test_all_pages_are_made(found: PaperResults, tmp_path: Path) -> None:
    more = report.main_pages(found, tmp_path / "out" / "figures")
    report.write(found, tmp_path / "out", "x", more)
    names = {page.stem for page in (tmp_path / "out").glob("*.md")}
    assert {"index", "claims", "ablations", "tuning", "paper", "length", "virtual"} < names
    index = (tmp_path / "out" / "index.md").read_text()
    assert "figures/overview.png" in index and "### Mean rank by μ_all" in index
    # nothing of this is in this store, and it says so
    assert "is finished yet" in (tmp_path / "out" / "length.md").read_text()
    facts = json.loads((tmp_path / "out" / "report.json").read_text())
    assert facts["digest"] == "x" and len(facts["omega_all"]) == 14
    assert {claim["verdict"] for claim in facts["claims"]} >= {"undecided"}


def test_what_is_not_finished_is_said() -> None:
    runs = [
        made(learner, seed, [0.5] * 4, [], dataset="folder:asl", order="iid")
        for learner in ("verse", "slda")
        for seed in range(2)
    ]
    some = PaperResults(runs)
    text = report.finished(some, scores.records(some))
    assert "4 finished runs on test videos in 1 combination" in text
    assert "**13 of 14 cells are not finished**" in text and text.endswith(
        "Seeds: 2; results with fewer than 3 seeds are shown but not judged."
    )
    assert headline.block(some, PaperResults([], (), FIRST)) == headline.NONE  # two seeds
    nothing = PaperResults([])
    assert "No run of it on test videos is finished yet" in report.finished(nothing, [])
    assert headline.block(nothing, nothing) == headline.NONE


def test_shortened_streams_are_no_cells_of_the_comparison() -> None:
    runs = [
        made(learner, seed, [0.5] * 4, backbone=backbone, length=length)
        for learner in ("verse", "slda")
        for seed in range(3)
        for backbone, length in (("efficientnet-lite0", 0), ("resnet18", 1000))
    ]
    some = PaperResults(runs)
    assert len(some.benches) == 2
    assert [bench.backbone for bench in some.compared] == ["efficientnet-lite0"]
    counted = {v.backbone: v.counted for v in verdicts.verdicts(some)}
    assert counted == {"efficientnet-lite0": True, "resnet18": False}
    titles = sorted(some.title(bench) for bench in some.benches)
    assert titles[0].endswith(", efficientnet-lite0")
    assert titles[1].endswith(", resnet18, 1,000 frames")
    lengths = {r["backbone"]: r["length"] for r in scores.records(some)}
    assert lengths == {"efficientnet-lite0": 0, "resnet18": 1000}


def test_runs_belong_to_one_of_two_comparisons() -> None:
    thinned, whole = made("ncm", 0, [0.5], thin=2).run, made("ncm", 0, [0.5]).run
    assert (FIRST.holds(thinned), MAIN.holds(thinned)) == (True, False)
    assert (FIRST.holds(whole), MAIN.holds(whole)) == (False, True)
    assert (len(MAIN.cells), len(FIRST.cells)) == (14, 12)


def test_the_headline_is_a_figure_and_three_sentences(found: PaperResults) -> None:
    text = headline.block(found, PaperResults([], (), FIRST))
    assert text.startswith("![") and "docs/results/figures/overview.png" in text
    assert "verse is first in" in text and text.count("\n") <= 3
    older = headline.block(PaperResults([]), PaperResults(found.runs, (), FIRST))
    assert "docs/results/first/figures/overview.png" in older and "Older results" in older


def test_a_row_is_repeated_by_the_recipe_of_the_main_table(root: Path) -> None:
    main, parts = (
        {run.id for run in read_recipe(root / "recipes" / name).runs if run.learner == "verse"}
        for name in ("scale-eth80.toml", "parts-eth80.toml")
    )
    assert main & parts
    assert {measured.holders()[each][0] for each in main} == {"recipes/scale-eth80.toml"}


def test_progress_counts_what_recipes_name(root: Path) -> None:
    (first, *_) = read_recipe(root / "recipes" / "scale-asl.toml").runs
    done = replace(made("verse", 0, [0.5]), run=first, id=first.id, seconds=7200.0)
    text = progress.block([done], [], root / "recipes")
    (row,) = (line for line in text.splitlines() if line.startswith("| `scale-asl` |"))
    assert "| 1 of " in row
    assert "Finished runs took 2.0 hours" in text
    for name in progress.RECIPES:
        assert list((root / "recipes").glob(f"{name}.toml")), name


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
