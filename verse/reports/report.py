"""``verse report``: a user's own runs, their numbers first."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from verse.experiments.result import Result
from verse.experiments.store import Store
from verse.reports import classes, cost, figures, offline, scores, style, tuning
from verse.reports.cells import Bench, SortedResults, orders_of
from verse.reports.page import Section, write_page
from verse.reports.scores import Record
from verse.types import BadState

TITLE = "Streaming learners compared"


def read_results(folder: Path) -> SortedResults:
    """What a report is made from."""
    return SortedResults(results(folder))


def results(folder: Path) -> list[Result]:
    """The runs of a folder, and those in ``tuning`` inside."""
    return Store(folder).results() + trials(folder / "tuning")


def trials(folder: Path) -> list[Result]:
    """The runs of a tuning, which must be on validation videos; none where there is no folder."""
    found = Store(folder).results() if folder.is_dir() else []
    for result in found:
        if result.run.validation is None:
            raise BadState(
                f"{folder} holds {result.run.name}, which is tested on test videos: "
                "move it away, settings are chosen on validation videos only"
            )
    return found


def facts(found: SortedResults, listed: list[Record]) -> dict[str, Any]:
    """What ``verse report --json`` prints: ``omega_all`` is the list of all cells; where nobody
    made a reference, Ω (``mean``, ``low``, ``high``) is null."""
    tested = [len(runs) for key, runs in found.cells.items() if not key.bench.validation]
    tried = [len(runs) for key, runs in found.cells.items() if key.bench.validation]
    return {
        "omega_all": listed,
        "runs": sum(tested),
        "validation_runs": sum(tried),
        "left_out": found.left_out,
    }


def document(found: SortedResults) -> dict[str, Any]:
    """The facts alone, without files."""
    return facts(found, scores.records(found))


def make(found: SortedResults, out: Path, title: str = TITLE) -> dict[str, Any]:
    """Write the whole report; gives its facts."""
    listed = scores.records(found)
    known = facts(found, listed)
    with style.use_style():
        sections = [
            *make_bench_sections(found, listed, out / "figures"),
            *([make_tuning_section(found)] if found.tuning else []),
        ]
    write_page(title, sections, known, out)
    return known


def make_bench_sections(found: SortedResults, listed: list[Record], folder: Path) -> list[Section]:
    """The runs by data set and backbone; with several of them places in all come first."""
    sections = []
    if len({(r["bench"], r["order"]) for r in listed}) > 1:
        sections.append(Section("In short", parts=[scores.ranks(listed)]))
    titles = {bench: found.title(bench) for bench in found.benches}
    often = Counter(titles.values())
    for bench, title in titles.items():
        title = title if often[title] == 1 else f"{title} ({bench.slug})"
        sections.append(bench_section(found, bench, title, listed, folder))
    return sections


def bench_section(
    found: SortedResults, bench: Bench, title: str, listed: list[Record], folder: Path
) -> Section:
    """One data set with one backbone."""
    section = Section(title)
    orders = orders_of(found.main(bench))
    section.add(
        scores.tabulate_scores(found, bench, listed),
        figures.bars(found, bench, folder),
        figures.curves(found, bench, folder),
        scores.omega_table(found, bench, listed),
        offline.tabulate_offline(found, bench),
        figures.intervals(found, bench, folder),
        classes.tabulate_classes(found, bench, orders[-1]),
        classes.draw_confusion(found, bench, folder),
        cost.tabulate_costs(found, bench),
    )
    section.folded = [scores.cell_table(found, bench, order, listed) for order in orders]
    section.fold = "Every learner in each ordering: accuracy, seeds, time and memory"
    return section


def make_tuning_section(found: SortedResults) -> Section:
    """Trials on validation videos."""
    text = "Choices made on validation videos. None of these figures is a result."
    return Section("Tuning", text, [tuning.tabulate_tuning(found, bench) for bench in found.tuning])
