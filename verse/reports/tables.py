"""A table once, and its forms: Markdown, CSV, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_TEX = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "±": r"$\pm$",
    "Ω": r"$\Omega$",
    "μ": r"$\mu$",
    "α": r"$\alpha$",
    "λ": r"$\lambda$",
    "γ": r"$\gamma$",
    "≈": r"$\approx$",
    "≫": r"$\gg$",
    "≤": r"$\leq$",
    "ζ": r"$\zeta$",
    "θ": r"$\theta$",
    "Φ": r"$\Phi$",
    "−": "$-$",
    "–": "--",
    "✓": r"\checkmark",
    "✗": r"$\times$",
    "ᶠ": r"$^{f}$",
    "…": r"\ldots",
    "β": r"$\beta$",
    "≥": r"$\geq$",
    "→": r"$\to$",
    "·": r"$\cdot$",
    "<": "$<$",
    ">": "$>$",
    "{": r"\{",
    "}": r"\}",
    "†": r"$^{\dagger}$",
}

WIDE = 7  # columns that fit on a page of LaTeX
_NAME = re.compile(r"^[a-z][\w.-]*(?<!ᶠ)")


class Text(NamedTuple):
    """What stands in a cell."""

    text: str
    bold: bool = False
    link: str = ""
    """The name of the figure that shows it."""


@dataclass(frozen=True)
class Table:
    """A table for people (``head``, ``rows``) with the numbers behind it (``records``).

    >>> table = Table("t", "Title", ["learner", "Ω"], [[Text("verse"), Text("0.98", bold=True)]])
    >>> print(table.markdown())
    | learner | Ω |
    |:--|--:|
    | `verse` | **0.98** |
    """

    name: str
    title: str
    head: list[str]
    rows: list[list[Text]]
    note: str = ""
    records: list[dict[str, Any]] = field(default_factory=list)
    prose: bool = False
    """Cells hold sentences: let them wrap, from the left."""

    def markdown(self) -> str:
        """As a Markdown table."""
        side = ":--|" if self.prose else "--:|"
        lines = [_line(self.head), "|:--|" + side * (len(self.head) - 1)]
        for row in self.rows:
            cells = [f"**{cell.text}**" if cell.bold else cell.text for cell in row]
            if self.head[0] == "learner":  # a name, which must not be broken at its hyphens
                cells[0] = _NAME.sub(r"`\g<0>`", cells[0])
            lines.append(_line(cells))
        return "\n".join(lines)

    def csv(self) -> str:
        """The numbers; the text where there are no records."""
        out = io.StringIO()
        if self.records:
            names = list(dict.fromkeys(name for record in self.records for name in record))
            writer = csv.DictWriter(out, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: _plain(v) for k, v in record.items()} for record in self.records)
        else:
            plain = csv.writer(out, lineterminator="\n")
            plain.writerow(self.head)
            plain.writerows([[cell.text for cell in row] for row in self.rows])
        return out.getvalue()

    def latex(self) -> str:
        """As a ``table`` with booktabs rules; one that is wide is made as small as a line is long.

        It needs the packages amssymb, booktabs and graphicx.
        """
        wide = not self.prose and len(self.head) > WIDE
        body = [
            " & ".join(rf"\textbf{{{tex(c.text)}}}" if c.bold else tex(c.text) for c in row)
            for row in self.rows
        ]
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{tex(self.title)}. {tex(self.note)}}}",
            rf"\label{{tab:{self.name}}}",
            *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
            rf"\begin{{tabular}}{{{self._columns()}}}",
            r"\toprule",
            " & ".join(tex(cell) for cell in self.head) + r" \\",
            r"\midrule",
            *(row + r" \\" for row in body),
            r"\bottomrule",
            r"\end{tabular}" + ("}" if wide else ""),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def _columns(self) -> str:
        if not self.prose:
            return "l" + "r" * (len(self.head) - 1)
        return rf"p{{{0.9 / len(self.head):.2f}\linewidth}}" * len(self.head)


def _plain(value: Any) -> Any:
    """What a program reads in one field: several values as JSON."""
    return json.dumps(value) if isinstance(value, dict | list) else value


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def format_signed(value: float, digits: int = 3) -> str:
    """A difference as people write it.

    >>> format_signed(-0.01), format_signed(0.2, 1)
    ('−0.010', '+0.2')
    """
    return f"{value:+.{digits}f}".replace("-", "−")


def tex(text: str) -> str:
    """Text as LaTeX reads it.

    >>> tex("Ω_all at 4 %")
    '$\\\\Omega$\\\\_all at 4 \\\\%'
    """
    return "".join(_TEX.get(character, character) for character in text)
