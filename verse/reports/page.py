"""The whole report in a folder: tables, figures, one page, one JSON document."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from verse import learners
from verse.checkpoint import write_atomic
from verse.reports import (
    ablation_figures,
    ablations,
    claims,
    cost,
    figures,
    gate,
    omega,
    paper,
    style,
    traits,
    tuning,
    verdicts,
)
from verse.reports.cells import Bench, Sorted, orders_of
from verse.reports.figures import Picture
from verse.reports.tables import Table
from verse.types import MissingExtra

try:
    from jinja2 import Environment, PackageLoader, select_autoescape
except ModuleNotFoundError as error:
    raise MissingExtra("jinja2", "report") from error


@dataclass
class Section:
    """A heading with its tables and figures, in the order they are read."""

    title: str
    text: str = ""
    parts: list[Table | Picture] = field(default_factory=list)
    folded: list[Table] = field(default_factory=list)  # at the end, for whoever asks
    fold: str = ""

    @property
    def anchor(self) -> str:
        """For links."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())

    def add(self, *parts: Table | Picture | None) -> None:
        """Those that there are."""
        self.parts += [part for part in parts if part is not None]

    @property
    def tables(self) -> list[Table]:
        """All of them."""
        return [part for part in self.parts if isinstance(part, Table)] + self.folded


def document(found: Sorted) -> dict[str, Any]:
    """What ``verse report --json`` prints: ``omega_all`` is the list of cells."""
    facts, _ = _facts(found, omega.records(found), ablations.find(found))
    return facts


def _facts(
    found: Sorted, listed: list[dict[str, Any]], turned: list[ablations.Ablation]
) -> tuple[dict[str, Any], list[claims.Claim]]:
    """For JSON, and the claims with what pages show of them."""
    judged = verdicts.verdicts(found)
    of_paper = verdicts.of_paper(found)
    claimed = claims.evaluate(found, judged, of_paper, turned)
    tested = [len(runs) for key, runs in found.cells.items() if not key.bench.validation]
    tried = [len(runs) for key, runs in found.cells.items() if key.bench.validation]
    facts = {
        "omega_all": [record for record in listed if record["mean"] is not None],
        "without_offline": [record for record in listed if record["mean"] is None],
        "verdicts": judged,
        "verdicts_paper": of_paper,
        "claims": [claim.record() for claim in claimed],
        "ablations": [record for each in turned for record in each.table().records],
        "runs": sum(tested),
        "validation_runs": sum(tried),
        "left_out": found.left_out,
        "digest": digest(found.ids),
    }
    return facts, claimed


def digest(ids: list[str]) -> str:
    """Of the runs that a report is made from, so that a later look tells whether it is old.

    >>> digest(["b", "a"]) == digest(["a", "b"])
    True
    """
    return hashlib.sha256(" ".join(sorted(ids)).encode()).hexdigest()[:16]


def write(found: Sorted, out: Path) -> dict[str, Any]:
    """Build everything; gives the JSON document. Files of an earlier report that this one does not
    have are removed, other files are not touched.
    """
    listed, turned = omega.records(found), ablations.find(found)
    facts, claimed = _facts(found, listed, turned)
    with style.drawn():
        sections = _sections(found, listed, turned, facts, claimed, out / "figures")
    files = []
    for section in sections:
        for table in section.tables:
            for ending, text in (("csv", table.csv()), ("tex", table.latex())):
                files.append(f"tables/{table.name}.{ending}")
                _write(out / files[-1], text)
        files += [f"figures/{part.name}.{ending}" for part in section.parts
                  if isinstance(part, Picture) for ending in ("png", "svg")]  # fmt: skip
    for name in set(_earlier(out / "report.json")) - set(files):
        (out / name).unlink(missing_ok=True)
    _write(out / "index.md", _markdown(sections, facts, out))
    _write(out / "index.html", _html(sections, facts, out / "figures"))
    record = facts | {"files": files}
    _write(out / "report.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return facts


def _earlier(file: Path) -> list[str]:
    """The tables and figures of the report that is there."""
    try:
        names = json.loads(file.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    kinds = ("figures/", "tables/")
    return [name for name in names if name.startswith(kinds) and ".." not in name]


def _sections(
    found: Sorted,
    listed: list[dict[str, Any]],
    turned: list[ablations.Ablation],
    facts: dict[str, Any],
    claimed: list[claims.Claim],
    folder: Path,
) -> list[Section]:
    sections = []
    if listed:
        first = Section("In short")
        if facts["verdicts"]:
            first.text = verdicts.summary(facts["verdicts"], facts["verdicts_paper"])
            first.add(figures.leads(facts["verdicts"], folder))
        first.add(omega.overview(listed))
        if facts["verdicts"]:
            first.add(verdicts.table(facts["verdicts"]))
        if facts["verdicts_paper"]:
            first.add(verdicts.paper_table(facts["verdicts_paper"]))
        sections.append(first)
        section = Section("Claims of the paper", parts=[claims.table(claimed)],
                          folded=[claims.evidence_table(claimed)],
                          fold="The comparisons behind them")  # fmt: skip
        section.add(*figures.losses(found, folder))
        sections.append(section)
    titles = Counter(bench.title for bench in found.benches)
    for bench in found.benches:
        title = bench.title if titles[bench.title] == 1 else f"{bench.title} ({bench.slug})"
        sections.append(_bench(found, bench, title, listed, folder))
    if turned:
        section = Section("Ablations", "One choice is turned, everything else stays.")
        for each in turned:
            section.add(each.table(), ablation_figures.ablation(each, folder))
        sections.append(section)
    beside = paper.beside(listed)
    section = Section("The paper's figures")
    if not beside:
        section.text = ("No finished run is on one of the paper's data sets, so none of its "
                        "figures stands beside one of ours.")  # fmt: skip
    section.add(beside, paper.reference())
    sections.append(section)
    sections.append(Section("Assumptions", parts=[traits.assumptions(learners.names())]))
    if found.tuning:
        text = "Choices made on validation videos. None of these figures is a result."
        trials = [tuning.table(found, bench) for bench in found.tuning]
        sections.append(Section("Tuning", text, [*trials]))
    return sections


def _bench(
    found: Sorted, bench: Bench, title: str, listed: list[dict[str, Any]], folder: Path
) -> Section:
    """One data set with one backbone."""
    section = Section(title)
    section.add(omega.table(found, bench, listed), gate.table(found, bench))
    for draw in (figures.intervals, figures.curves, figures.bars, ablation_figures.maml):
        section.add(draw(found, bench, folder))
    section.add(
        cost.table(found, bench),
        ablations.budgets(found, bench),
        ablations.variants(found, bench),
    )
    section.folded = [omega.cell_table(found, bench, order, listed)
                      for order in orders_of(found.main(bench))]  # fmt: skip
    section.fold = "Every learner in each ordering: accuracy, seeds, time and memory"
    return section


def _html(sections: list[Section], facts: dict[str, Any], folder: Path) -> str:
    """One file that needs no other: pictures are inside."""
    environment = Environment(
        loader=PackageLoader("verse.reports", "templates"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["table"] = lambda part: isinstance(part, Table)

    def inside(picture: Picture) -> dict[str, Any]:
        packed = io.BytesIO()
        with Image.open(folder / f"{picture.name}.png") as image:
            image.convert("RGB").save(packed, "WEBP", lossless=True, method=4)
            width = round(image.width * 96 / style.DPI)  # as large as it was drawn
        data = base64.b64encode(packed.getvalue()).decode()
        return {"data": f"data:image/webp;base64,{data}", "width": width}

    page = environment.get_template("page.html")
    pictures = {part.name for s in sections for part in s.parts if isinstance(part, Picture)}
    return page.render(sections=sections, facts=facts, inside=inside, pictures=pictures)


def _markdown(sections: list[Section], facts: dict[str, Any], out: Path) -> str:
    explained = (
        "[How learners are measured](../protocol.md) says what each figure means, "
        "[comparing methods](../experiments.md) how to make them again. "
    )
    beside_docs = all((out.parent / name).exists() for name in ("protocol.md", "experiments.md"))
    parts = [
        "# Results\n\n"
        f"{facts['runs']} finished runs, made into tables by `verse report`; do not edit. "
        f"{explained if beside_docs else ''}CSV and LaTeX forms are in the folder `tables` beside "
        "this page, figures as SVG in `figures`, and `index.html` holds everything in one file.\n"
    ]
    for section in sections:
        parts.append(f"## {section.title}\n")
        if section.text:
            parts.append(f"{section.text}\n")
        for part in section.parts:
            parts.append(_shown(part) if isinstance(part, Table) else _pictured(part))
        if section.folded:
            parts.append(f'<details markdown="1">\n<summary>{section.fold}</summary>\n')
            parts += [_shown(table) for table in section.folded]
            parts.append("</details>\n")
    return "\n".join(parts)


def _shown(table: Table) -> str:
    note = f"\n{table.note}\n" if table.note else ""
    return f"### {table.title}\n\n{table.markdown()}\n{note}"


def _pictured(picture: Picture) -> str:
    return (f"![{picture.title}](figures/{picture.name}.png)\n\n"
            f"*{picture.title}. {picture.note}*\n")  # fmt: skip


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())
