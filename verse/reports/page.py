"""A report as files: tables, one page, one JSON document."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from verse.extras import OptionalImport
from verse.paths import write_atomic
from verse.reports import style
from verse.reports.figures import ReportFigure
from verse.reports.tables import Table

with OptionalImport():
    from jinja2 import Environment, PackageLoader, select_autoescape


@dataclass
class Section:
    """A heading with its tables and figures, in the order they are read."""

    title: str
    text: str = ""
    parts: list[Table | ReportFigure] = field(default_factory=list)
    folded: list[Table] = field(default_factory=list)  # at the end, for whoever asks
    fold: str = ""

    @property
    def anchor(self) -> str:
        """For links."""
        return "".join(c if c.isalnum() else "-" for c in self.title.lower())

    def add(self, *parts: Table | ReportFigure | None) -> None:
        """Those that there are."""
        self.parts += [part for part in parts if part is not None]

    @property
    def tables(self) -> list[Table]:
        """All of them."""
        return [part for part in self.parts if isinstance(part, Table)] + self.folded


def write_page(title: str, sections: list[Section], facts: dict[str, Any], out: Path) -> None:
    """Tables as CSV and LaTeX, one page as Markdown and as HTML, and the facts as JSON.

    Figures are in ``out / "figures"`` already. Files of an earlier report that this one does not
    have are removed, other files are not touched.
    """
    files = []
    for section in sections:
        for table in section.tables:
            for ending, text in (("csv", table.csv()), ("tex", table.latex())):
                files.append(f"tables/{table.name}.{ending}")
                _write(out / files[-1], text)
        files += [
            f"figures/{part.name}.{ending}"
            for part in section.parts
            if isinstance(part, ReportFigure)
            for ending in ("png", "svg")
        ]
    for name in set(_earlier(out / "report.json")) - set(files):
        (out / name).unlink(missing_ok=True)
    _write(out / "index.md", markdown(title, sections, facts))
    _write(out / "index.html", _html(title, sections, facts, out / "figures"))
    record = facts | {"files": files}
    _write(out / "report.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def _earlier(file: Path) -> list[str]:
    """The tables and figures of the report that is there."""
    try:
        names = json.loads(file.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    kinds = ("figures/", "tables/")
    return [name for name in names if name.startswith(kinds) and ".." not in name]


def _html(title: str, sections: list[Section], facts: dict[str, Any], folder: Path) -> str:
    """One file that needs no other: pictures are inside."""
    environment = Environment(
        loader=PackageLoader("verse.reports", "templates"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["table"] = lambda part: isinstance(part, Table)

    def inside(picture: ReportFigure) -> dict[str, Any]:
        packed = io.BytesIO()
        with Image.open(folder / f"{picture.name}.png") as image:
            image.convert("RGB").save(packed, "WEBP", lossless=True, method=4)
            width = round(image.width * 96 / style.DPI)  # as large as it was drawn
        data = base64.b64encode(packed.getvalue()).decode()
        return {"data": f"data:image/webp;base64,{data}", "width": width}

    page = environment.get_template("page.html")
    pictures = {part.name for s in sections for part in s.parts if isinstance(part, ReportFigure)}
    return page.render(
        title=title, sections=sections, facts=facts, inside=inside, pictures=pictures
    )


def markdown(title: str, sections: list[Section], facts: dict[str, Any]) -> str:
    """The whole report as one Markdown page."""
    parts = [
        f"# {title}\n\n{_plural(facts['runs'], 'finished run')}, made into tables by "
        "`verse report`. CSV and LaTeX forms are in the folder `tables` beside this page, figures "
        "as SVG in `figures`, and `index.html` holds everything in one file.\n"
    ]
    for section in sections:
        parts.append(f"## {section.title}\n")
        if section.text:
            parts.append(f"{section.text}\n")
        for part in section.parts:
            parts.append(_format_table(part) if isinstance(part, Table) else _format_picture(part))
        if section.folded:
            parts.append(f'<details markdown="1">\n<summary>{section.fold}</summary>\n')
            parts += [_format_table(table) for table in section.folded]
            parts.append("</details>\n")
    return "\n".join(parts)


def _plural(count: int, noun: str) -> str:
    """A number of things.

    >>> _plural(1, "run"), _plural(2, "run")
    ('1 run', '2 runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _format_table(table: Table) -> str:
    note = f"\n{table.note}\n" if table.note else ""
    return f"### {table.title}\n\n{table.markdown()}\n{note}"


def _format_picture(picture: ReportFigure) -> str:
    return f"![{picture.title}](figures/{picture.name}.png)\n\n*{picture.title}. {picture.note}*\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())
