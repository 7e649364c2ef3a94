"""From a store to tables, figures and a page; ablations found by settings; tuning kept apart."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

from tests.reports.conftest import ALLOW
from tests.reports.made import made
from verse.experiments.recipe import parse
from verse.experiments.store import Store
from verse.reports import classes, report, scores, tuning
from verse.reports.cells import SortedResults, rank_learners
from verse.reports.tables import Table, Text
from verse.types import BadState


@pytest.fixture(scope="module")
def found(store: Store) -> SortedResults:
    return SortedResults(store.results())


def test_cells_have_all_seeds_once_and_no_validation(found: SortedResults, store: Store) -> None:
    listed = scores.records(found)
    assert {r["n"] for r in listed} == {3}
    assert len(listed) == 7 * 2
    assert {"dataset", "order", "learner", "backbone", "mean", "low", "high", "n"} <= set(listed[0])
    by_hand = [
        r.omega_all
        for r in store.results()
        if (r.run.learner, r.run.order, r.run.validation) == ("verse-no-virtual", "iid", None)
    ]
    (mine,) = (r for r in listed if (r["learner"], r["order"]) == ("verse-no-virtual", "iid"))
    assert mine["mean"] == pytest.approx(sum(v for v in by_hand if v is not None) / 3)
    facts = report.document(found)
    assert (facts["validation_runs"], facts["runs"] + 10) == (10, len(store.ids()))


def test_first_only_beyond_chance_and_never_a_fine_tuner(found: SortedResults) -> None:
    (bench,) = found.benches
    cells = found.main(bench)
    for order in ("iid", "class-instance"):
        place = scores.find_standing(cells, order)
        assert "gdumb" not in place
        best = rank_learners(cells, order)[0]
        tied = [name for name, where in place.items() if where == "tied"]
        assert (place[best] == "tied") == bool(tied)
        assert list(place.values()).count("first") <= 1
    listed = scores.records(found)
    text = scores.tabulate_scores(found, bench, listed).markdown()
    assert "| `gdumb`ᶠ |" in text
    assert text.count("**") == 2 * 2  # one bold figure in each ordering


def test_the_report_is_complete(store: Store, tmp_path: Path) -> None:
    report.make(SortedResults(store.results()), tmp_path, "My photos")
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    kinds = {name.partition("-verse_toy")[0] for name in names}
    assert kinds == {"alpha", "mu", "omega", "confusion"}
    for name in names:
        with Image.open(tmp_path / "figures" / f"{name}.png") as image:
            assert image.width > 500
        assert "<svg" in (tmp_path / "figures" / f"{name}.svg").read_text()[:500]
    for table in (tmp_path / "tables").glob("*.tex"):
        text = table.read_text()
        assert text.count(r"\begin{") == text.count(r"\end{") == 2
    markdown = (tmp_path / "index.md").read_text()
    assert markdown.startswith("# My photos\n")
    own, other = markdown.index("μ_all on verse_toy"), markdown.index("## Tuning")
    assert own < other  # a user's numbers come first
    assert "paper" not in markdown.replace("paper's Ω", "").lower()  # and no claims of others
    for title in ("By class", "What is taken for what", "What Ω divides by", "Cost"):
        assert title in markdown
    text = (tmp_path / "index.html").read_text()
    assert "<title>My photos</title>" in text
    links = Links()
    links.feed(text)
    assert links.anchors <= links.ids
    assert links.files and all((tmp_path / name).is_file() for name in links.files)
    assert len(links.inside) == len(names)  # the page alone shows all figures
    # the same store gives the same bytes
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    report.make(SortedResults(store.results()), tmp_path, "My photos")
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_a_smaller_report_leaves_nothing_of_a_larger_one(store: Store, tmp_path: Path) -> None:
    few = [r for r in store.results() if r.run.learner == "ncm"]
    report.make(
        SortedResults([r for r in store.results() if r.run.learner in ("ncm", "slda")]), tmp_path
    )
    mine = tmp_path / "figures" / "mine.png"
    mine.write_bytes(b"")
    old = tmp_path / "tables" / "old.csv"
    old.write_text("")
    record = tmp_path / "report.json"
    facts = json.loads(record.read_text())
    record.write_text(json.dumps(facts | {"files": [*facts["files"], "tables/old.csv"]}))
    report.make(SortedResults(few), tmp_path)
    assert mine.exists() and not old.exists()


def test_classes_and_what_they_are_taken_for() -> None:
    result = made("ncm", 0, [0.5, 1.0])
    last = replace(
        result.events[-1],
        by_class=[[0, 50, 100], [1, 100, 100]],
        confusion=[[0, 0, 50], [0, 1, 40], [0, -1, 10], [1, 1, 100]],
    )
    result = replace(result, events=(result.events[0], last))
    assert classes.accuracies([result, result]) == {"cup": 0.5, "mug": 1.0}
    assert classes.mistakes([result]) == {"cup": "mug"}
    found = SortedResults([result])
    table = classes.tabulate_classes(found, found.benches[0], "class-instance")
    assert table is not None
    assert [cell.text for cell in table.rows[0]] == ["cup", "0.500", "mug"]


class Links(HTMLParser):
    """What a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.anchors: set[str] = set()
        self.files: set[str] = set()
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if name == "src" and value and value.startswith("data:image/webp;base64,"):
                self.inside.append(value)
            elif name in ("href", "src") and value:
                (self.anchors if value.startswith("#") else self.files).add(value.lstrip("#"))


def test_settings_are_chosen_on_validation_videos_only(
    store: Store, table_recipe: str, tuning_recipe: str
) -> None:
    runs = parse(tuning_recipe, "toy", ALLOW).runs
    results = {r.run.id: r for r in store.results({run.id for run in runs})}
    choices = {c.learner: c for c in tuning.choose_settings(runs, results)}
    assert (choices["tinyer"].trials, choices["tinyer"].runs) == (4, 2)
    means: dict[str, list[float]] = {}
    for run in runs:
        if run.learner == "tinyer":
            means.setdefault(str(dict(run.settings)), []).append(results[run.id].mu_all)
    assert choices["tinyer"].mu == pytest.approx(max(sum(m) / 2 for m in means.values()))
    again = tomllib.loads(tuning.fragment(list(choices.values())))
    recipe = f"{tuning_recipe}\n{tuning.fragment(list(choices.values()))}"
    assert set(again["tuned"]) == {"tinyer"}
    assert parse(recipe, "again", ALLOW).runs  # what is printed is what a recipe takes
    with pytest.raises(BadState, match="validation videos"):
        tuning.choose_settings(parse(table_recipe, "toy", ALLOW).runs, {})


def test_of_equal_trials_the_table_shows_the_one_that_was_taken() -> None:
    trials = [
        made("tinyer", 0, [0.5], settings={"lr": lr}, validation="last:1")
        for lr in (0.001, 0.01, 0.03)
    ]
    for taken in (0.01, 0.03):
        found = SortedResults([*trials, made("tinyer", 0, [0.5], settings={"lr": taken})])
        (row,) = tuning.tabulate_tuning(found, found.tuning[0]).rows
        assert row[2].text == f"class-instance: lr = {taken} (as good: 2 others)"


def test_forms_of_a_table() -> None:
    table = Table("t", "100 % of Ω_all", ["learner", "x|y"], [[Text("a_b"), Text("1", bold=True)]])
    assert r"x\|y" in table.markdown()
    assert r"a\_b & \textbf{1} \\" in table.latex()
    assert table.csv() == "learner,x|y\na_b,1\n"
    wide = Table("w", "W", [*"abcdefgh"], [[Text("1†")] * 8], records=[{"of": {"lr": 0.1}}])
    assert wide.latex().count(r"\resizebox") == 1 and r"1$^{\dagger}$" in wide.latex()
    assert next(csv.DictReader(io.StringIO(wide.csv()))) == {"of": '{"lr": 0.1}'}
