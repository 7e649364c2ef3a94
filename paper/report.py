"""Writes docs/results from results/: ``python -m paper.pages``; a test says when it is due.

A short page, and one click away a page for each data set, the paper's claims, ablations, tuning,
the virtual step, the length of streams, the paper's own network and the paper's own figures; the
first comparison the same way in a folder of its own. Figures are PNG, tables also CSV.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from paper import (
    ablation_figures,
    ablations,
    again,
    assumptions,
    budgets,
    causes,
    claim,
    claims,
    clipping,
    depth,
    figures,
    growing,
    length,
    own_network,
    published,
    room,
    tuning_table,
    verdicts,
    virtual,
)
from paper.source import ROOT, PaperResults, changed, digest, with_changed
from verse import learners
from verse.cli.output import plural
from verse.experiments.result import Result
from verse.reports import figures as own_figures
from verse.reports import offline, scores, style
from verse.reports.cells import Bench, SortedResults, orders_of
from verse.reports.figures import ReportFigure
from verse.reports.page import Section
from verse.reports.report import facts, make_tuning_section
from verse.reports.scores import Record
from verse.reports.statistics import ENOUGH
from verse.reports.tables import Table

OUT = ROOT / "docs" / "results"
Pages = dict[str, list[Section]]


def write_all(main: PaperResults, first: PaperResults, out: Path = OUT) -> None:
    """Both comparisons."""
    shutil.rmtree(out, ignore_errors=True)
    source = digest()
    write(first, out / first.comparison.folder, source)
    write(main, out, source, main_pages(main, out / "figures"), changed())


def main_pages(main: PaperResults, folder: Path, recipes: Path = ROOT / "recipes") -> Pages:
    """Those that only the main comparison has; they say what of them is not finished."""
    every = with_changed(main.runs)
    with style.use_style():
        return {
            "length": [
                length.section(tested(every), recipes, folder),
                depth.section(tested(every), recipes, folder),
            ],
            "virtual": [
                *virtual.sections(tested(every), recipes, folder),
                clipping.section(tested(every), every, recipes),
            ],
            "causes": [
                *causes.sections(tested(every), recipes),
                growing.section(tested(every), recipes),
            ],
            "tuning": [
                *tuning_table.sections(every, recipes),
                room.section(every, recipes),
            ],
            "resnet18": [own_network.section(tested(every), recipes)],
        }


def tested(results: list[Result]) -> list[Result]:
    """Those on test videos."""
    return [r for r in results if r.run.validation is None]


def write(
    found: PaperResults,
    out: Path = OUT,
    source: str = "",
    more: Pages | None = None,
    ablated: Iterable[Result] = (),
) -> None:
    """All pages of one comparison, from what was found, and from runs with one thing changed."""
    folder = out / "figures"
    listed = [r for r in scores.records(found) if r["bench"] in {b.slug for b in found.benches}]
    groups = [
        (verdicts.verdicts(found), verdicts.BEST),
        (verdicts.of_paper(found), verdicts.OF_PAPER),
        (verdicts.of_paper(found, conforming=True), verdicts.CISLL),
    ]
    turned = ablations.find(SortedResults([*found.runs, *ablated]))
    claimed = claims.evaluate(found, groups[1][0], groups[2][0], turned)
    counted = [r for r in listed if r["bench"] in {b.slug for b in found.compared}]
    pages: Pages = {}
    first: list[Table | ReportFigure] = []
    with style.use_style():
        if listed:
            pages |= {bench.slug: _bench(found, bench, listed, folder) for bench in found.benches}
            pages["claims"] = _claims(found, groups, claimed, folder)
            first = [figures.overview(found, counted, folder), scores.ranks(counted)]
            if (standing := verdicts.standing(groups[0][0])) is not None:
                first.append(standing)
        if turned:
            pages["ablations"] = _ablations(turned, folder)
        if found.tuning:
            pages["tuning"] = [make_tuning_section(found)]
        pages["paper"] = _paper(listed)
    pages |= more or {}
    back, plan = "[Results](index.md)", found.comparison
    benches = {bench.slug: bench for bench in found.benches}
    for name, sections in pages.items():
        how = again.command(plan, name, benches.get(name))
        text = f"# {sections[0].title}\n\n{back}. {how}".rstrip()
        _save(out, name, f"{text}\n", sections)
    known = facts(found, listed)
    text = _index(found, counted, groups, hours([*found.runs, *ablated]), pages)
    _save(out, "index", text, [Section("", parts=first)])
    record = known | {
        "verdicts": {name: [vars(v) for v in mine] for mine, name in groups},
        "claims": [c.record() for c in claimed],
        "ablations": [record for each in turned for record in each.table().records],
        "digest": source,
    }
    # one record a line: a small file whose changes can be read
    lines = [f"{json.dumps(key)}: {_lines(value)}" for key, value in record.items()]
    (out / "report.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    for path in folder.glob("*.svg"):
        path.unlink()


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _index(
    found: PaperResults,
    counted: list[Record],
    groups: list[tuple[list[verdicts.Verdict], str]],
    spent: float,
    pages: Pages,
) -> str:
    plan = found.comparison
    links = "\n".join(f"- [{sections[0].title}]({name}.md)" for name, sections in pages.items())
    judged, against = groups[1]
    said = f" {verdicts.counts(judged, against)}" if any(v.counted for v in judged) else ""
    cost = (
        f"All runs, with tuning and ablations, took {spent:.0f} hours of one core by the clock; "
        "features are extracted once before (5 to 14 minutes for each of the long sets)."
    )
    how = again.command(plan, "index")
    return (
        f"# {plan.title}\n\n{plan.about}\n\n{finished(found, counted)}{said}\n\n{cost} {how}\n\n"
        f"{links}\n"
    )


def hours(results: Iterable[Result]) -> float:
    """The time of all runs, each counted once; of one core, since a run uses one."""
    return sum({r.id: r.seconds for r in results}.values()) / 3600


def finished(found: PaperResults, counted: list[Record]) -> str:
    """How much there is, and how much is missing: nobody should take a part for the whole."""
    plan = found.comparison
    cells = {(r["dataset"], r["order"]) for r in counted}
    if not cells:
        return (
            f"**No run of it on test videos is finished yet** (`verse compare {plan.recipe}`), so "
            "there is nothing to compare."
        )
    runs = plural(sum(r["n"] for r in counted), "finished run")
    said = (
        f"{runs} on test videos in {plural(len(cells), 'combination')} of data set and ordering "
        "(cells), from `results/`. Learners are ranked by mean accuracy over the stream, μ_all."
    )
    if missing := plan.missing(cells):
        said += f" **{missing} of {len(plan.cells)} cells are not finished** (`{plan.recipe}`)."
    seeds = scores.format_range([r["n"] for r in counted])
    return (
        f"{said} Seeds: {seeds}; results with fewer than {ENOUGH} seeds are shown but not judged."
    )


def _bench(found: PaperResults, bench: Bench, listed: list[Record], folder: Path) -> list[Section]:
    """One data set with one backbone."""
    section = Section(found.title(bench))
    section.add(
        scores.tabulate_scores(found, bench, listed),
        own_figures.bars(found, bench, folder) if bench.dataset == "joined" else None,
        own_figures.curves(found, bench, folder),
        scores.omega_table(found, bench, listed),
        offline.tabulate_offline(found, bench),
        ablation_figures.maml(found, bench, folder),
        budgets.budgets(found, bench),
        budgets.variants(found, bench),
    )
    rest = Section(
        "Each ordering",
        parts=[
            scores.cell_table(found, bench, order, listed) for order in orders_of(found.main(bench))
        ],
    )
    return [section, rest]


def _claims(
    found: PaperResults,
    groups: list[tuple[list[verdicts.Verdict], str]],
    claimed: list[claim.Claim],
    folder: Path,
) -> list[Section]:
    first = Section("Claims of the paper", found.comparison.about)
    first.add(claim.table(claimed))
    text = (
        f"{verdicts.summary(groups[1:])} Methods that keep to class-incremental streaming learning "
        f"are {verdicts.CISLL_MEANS}."
    )
    leads = Section("VERSE in every cell", text)
    leads.add(figures.leads(groups[1][0], folder))
    for number, (mine, against) in enumerate(groups):
        if mine:
            leads.add(verdicts.table(f"verdicts-{number}", mine, against))
    rest = Section("The comparisons", parts=[claim.evidence_table(claimed)])
    rest.add(*figures.losses(found, folder))
    return [first, leads, rest]


def _ablations(turned: list[ablations.Ablation], folder: Path) -> list[Section]:
    section = Section("Ablations", "One setting is changed; all others stay as tuned.")
    for each in turned:
        section.add(each.table(), ablation_figures.ablation(each, folder))
    return [section]


def _paper(listed: list[Record]) -> list[Section]:
    section = Section("The paper's figures")
    beside = published.beside(listed)
    if beside is None:
        section.text = (
            "No finished run is on one of the paper's data sets, so none of its "
            "figures stands beside one of ours."
        )
    section.add(beside, *published.reference())
    return [section, Section("Assumptions", parts=[assumptions.assumptions(learners.names())])]


def _save(out: Path, name: str, text: str, sections: list[Section]) -> None:
    """One Markdown page, and its tables as CSV."""
    parts = [text]
    for number, section in enumerate(sections):
        if number:
            parts.append(f"## {section.title}\n")
        if section.text:
            parts.append(f"{section.text}\n")
        for part in section.parts:
            parts.append(_table(part, out) if isinstance(part, Table) else _picture(part))
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text("\n".join(parts), encoding="utf-8")


def _table(table: Table, out: Path) -> str:
    (out / "tables").mkdir(parents=True, exist_ok=True)
    (out / "tables" / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
    note = f"\n{table.note} " if table.note else "\n"
    return f"### {table.title}\n\n{table.markdown()}\n{note}[CSV](tables/{table.name}.csv)\n"


def _picture(picture: ReportFigure) -> str:
    return f"![{picture.title}](figures/{picture.name}.png)\n\n*{picture.title}. {picture.note}*\n"
