"""The whole report in a folder: tables, figures, one page, one JSON document."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verse import learners
from verse.checkpoint import write_atomic
from verse.reports import ablations, cost, figures, omega, paper, style, traits, tuning
from verse.reports.cells import Sorted
from verse.reports.figures import Picture
from verse.reports.tables import Table
from verse.types import MissingExtra

try:
    from jinja2 import Environment, PackageLoader, select_autoescape
except ModuleNotFoundError as error:
    raise MissingExtra("jinja2", "report") from error


@dataclass
class Section:
    """A heading with its tables and figures."""

    title: str
    text: str = ""
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """For links."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())


def document(found: Sorted) -> dict[str, Any]:
    """What ``verse report --json`` prints: ``omega_all`` is the list of cells."""
    return {
        "omega_all": omega.records(found),
        "verdicts": omega.verdicts(found),
        "ablations": [record for a in ablations.find(found) for record in a.table().records],
        "runs": sum(len(runs) for key, runs in found.cells.items() if not key.bench.validation),
        "validation_runs": sum(
            len(runs) for key, runs in found.cells.items() if key.bench.validation
        ),
        "left_out": found.left_out,
    }


def write(found: Sorted, out: Path) -> dict[str, Any]:
    """Build everything; gives the JSON document."""
    facts = document(found)
    with style.drawn():
        sections = _sections(found, facts, out / "figures")
    for section in sections:
        for table in section.tables:
            folder = out / "tables"
            folder.mkdir(parents=True, exist_ok=True)
            for ending, text in (("csv", table.csv()), ("tex", table.latex())):
                _write(folder / f"{table.name}.{ending}", text)
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "index.md", _markdown(sections))
    _write(out / "index.html", _html(sections, facts))
    _write(out / "report.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return facts


def _sections(found: Sorted, facts: dict[str, Any], folder: Path) -> list[Section]:
    listed = facts["omega_all"]
    sections = []
    if listed:
        first = Section("Results", tables=[omega.overview(listed)])
        if facts["verdicts"]:
            first.tables.append(omega.verdict_table(facts["verdicts"]))
        sections.append(first)
    for bench in found.benches:
        section = Section(bench.title)
        section.tables.append(omega.table(found, bench, listed))
        for draw in (figures.intervals, figures.curves, figures.bars, figures.maml):
            picture = draw(found, bench, folder)
            if picture is not None:
                section.pictures.append(picture)
        section.tables.append(cost.table(found, bench))
        for more in (ablations.budgets(found, bench), ablations.variants(found, bench)):
            if more is not None:
                section.tables.append(more)
        sections.append(section)
    turned = ablations.find(found)
    if turned:
        section = Section("Ablations", "One choice is turned, everything else stays.")
        for each in turned:
            section.tables.append(each.table())
            section.pictures.append(figures.ablation(each, folder))
        sections.append(section)
    beside = paper.beside(listed)
    sections.append(Section(
        "The paper's figures",
        "" if beside else "No finished run is on one of the paper's data sets, so none of its "
        "figures stands beside one of ours.",
        [table for table in (beside, paper.reference()) if table is not None],
    ))  # fmt: skip
    sections.append(Section("Assumptions", tables=[traits.assumptions(learners.names())]))
    if found.tuning:
        text = "Choices made on validation videos. None of these figures is a result."
        tables = [tuning.table(found, bench) for bench in found.tuning]
        sections.append(Section("Tuning", text, tables))
    return sections


def _html(sections: list[Section], facts: dict[str, Any]) -> str:
    environment = Environment(
        loader=PackageLoader("verse.reports", "templates"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(sections=sections, facts=facts)


def _markdown(sections: list[Section]) -> str:
    parts = ["# Results\n\nMade by `verse report` from finished runs; do not edit.\n"]
    for section in sections:
        parts.append(f"## {section.title}\n")
        if section.text:
            parts.append(f"{section.text}\n")
        parts += [_shown(table) for table in section.tables]
        parts += [f"![{p.title}](figures/{p.name}.png)\n\n*{p.title}. {p.note}*\n"
                  for p in section.pictures]  # fmt: skip
    return "\n".join(parts)


def _shown(table: Table) -> str:
    note = f"\n{table.note}\n" if table.note else ""
    return f"### {table.title}\n\n{table.markdown()}\n{note}"


def _write(path: Path, text: str) -> None:
    write_atomic(path, text.encode())
