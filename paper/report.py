"""Writes docs/results: ``python -m paper.report`` from results/; a test says when it is due.

A short page, and one click away a page for each data set, the paper's claims, ablations, tuning and
the paper's own figures. Figures are PNG, tables also CSV.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from paper import (
    ablation_figures,
    ablations,
    assumptions,
    budgets,
    claim,
    claims,
    figures,
    published,
    verdicts,
)
from paper.source import ROOT, PaperResults, digest, read
from verse import learners
from verse.reports import figures as own_figures
from verse.reports import offline, scores, style
from verse.reports.cells import Bench, orders_of
from verse.reports.figures import ReportFigure
from verse.reports.page import Section, plural
from verse.reports.report import facts, make_tuning_section
from verse.reports.scores import Record
from verse.reports.tables import Table

OUT = ROOT / "docs" / "results"
REGIME = (
    "What is said here is said of these runs: their streams are shorter and their memory smaller "
    "than the paper's, on other data and mostly with another network. That a claim is not "
    "reproduced here does not refute it. [How learners are measured](../protocol.md) says what "
    "each figure means, [comparing methods](../experiments.md) how to make them again."
)


def write(found: PaperResults, out: Path = OUT, source: str = "") -> None:
    """All pages, from what was found."""
    shutil.rmtree(out, ignore_errors=True)
    folder = out / "figures"
    listed = scores.records(found)
    groups = [
        (verdicts.verdicts(found), verdicts.BEST),
        (verdicts.of_paper(found), verdicts.OF_PAPER),
        (verdicts.of_paper(found, conforming=True), verdicts.CISLL),
    ]
    turned = ablations.find(found)
    claimed = claims.evaluate(found, groups[1][0], groups[2][0], turned)
    with style.use_style():
        pages = {bench.slug: _bench(found, bench, listed, folder) for bench in found.benches}
        pages["claims"] = _claims(found, groups, claimed, folder)
        if turned:
            pages["ablations"] = _ablations(turned, folder)
        if found.tuning:
            pages["tuning"] = [make_tuning_section(found)]
        pages["paper"] = _paper(listed)
        first = figures.overview(found, listed, folder)
    for name, sections in pages.items():
        _save(out, name, f"# {sections[0].title}\n\n[Results](index.md)\n", sections)
    runs = facts(found, listed)
    text = _index(listed, groups, runs["runs"], pages)
    ranks = scores.ranks([r for r in listed if r["bench"] in {b.slug for b in found.compared}])
    _save(out, "index", text, [Section("Results", parts=[first, ranks])])
    record = runs | {
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
    listed: list[Record],
    groups: list[tuple[list[verdicts.Verdict], str]],
    runs: int,
    pages: dict[str, list[Section]],
) -> str:
    links = "\n".join(f"- [{sections[0].title}]({name}.md)" for name, sections in pages.items())
    cells = len({(r["bench"], r["order"]) for r in listed})
    return (
        f"# Results\n\n{plural(runs, 'finished run')} on test videos in {cells} combinations of "
        "data set, network and ordering, from `results/`. Learners are ranked by mean accuracy "
        f"over the stream, μ_all.\n\n{verdicts.summary(groups)}\n\n{REGIME}\n\n{links}\n"
    )


def _bench(found: PaperResults, bench: Bench, listed: list[Record], folder: Path) -> list[Section]:
    """One data set with one backbone."""
    section = Section(bench.title)
    section.add(scores.table(found, bench, listed), own_figures.curves(found, bench, folder),
                scores.omega_table(found, bench, listed), offline.table(found, bench),
                ablation_figures.maml(found, bench, folder),
                budgets.budgets(found, bench), budgets.variants(found, bench))  # fmt: skip
    rest = Section("Each ordering", parts=[scores.cell_table(found, bench, order, listed)
                                           for order in orders_of(found.main(bench))])  # fmt: skip
    return [section, rest]


def _claims(
    found: PaperResults,
    groups: list[tuple[list[verdicts.Verdict], str]],
    claimed: list[claim.Claim],
    folder: Path,
) -> list[Section]:
    first = Section("Claims of the paper", REGIME)
    first.add(claim.table(claimed))
    leads = Section("VERSE in every cell", verdicts.summary(groups))
    leads.add(figures.leads(groups[1][0], folder))
    for number, (mine, against) in enumerate(groups):
        if mine:
            leads.add(verdicts.table(f"verdicts-{number}", mine, against))
    rest = Section("The comparisons", parts=[claim.evidence_table(claimed)])
    rest.add(*figures.losses(found, folder))
    return [first, leads, rest]


def _ablations(turned: list[ablations.Ablation], folder: Path) -> list[Section]:
    section = Section("Ablations", "One choice is turned, everything else stays.")
    for each in turned:
        section.add(each.table(), ablation_figures.ablation(each, folder))
    return [section]


def _paper(listed: list[Record]) -> list[Section]:
    section = Section("The paper's figures")
    beside = published.beside(listed)
    if beside is None:
        section.text = ("No finished run is on one of the paper's data sets, so none of its "
                        "figures stands beside one of ours.")  # fmt: skip
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
    return (f"![{picture.title}](figures/{picture.name}.png)\n\n"
            f"*{picture.title}. {picture.note}*\n")  # fmt: skip


if __name__ == "__main__":
    write(read(), source=digest())
    print(f"wrote {OUT.relative_to(ROOT)}")
