"""The paper's own network: ResNet-18, of which everything from layer4.1 on is trained.

The runs are those of ``recipes/resnet18-paper.toml`` and ``resnet18-asl.toml``.
``python -m paper.pages`` writes docs/results/resnet18.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean

from paper.ablations import on_common_seeds
from paper.clipping import diverged
from paper.reading import runs_of
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.reports import statistics
from verse.reports.cells import Results
from verse.reports.page import Section
from verse.reports.scores import format_range
from verse.reports.statistics import Estimate, difference_cell
from verse.reports.tables import Table, Text

TITLE = "The paper's own network"
TEXT = (
    "ResNet-18 trained from its last block on (`layer4.1`), as in the paper, with memory for 23 "
    "samples of every class. VERSE runs with the paper's own settings, which do not clip gradients "
    "(r = 0.05, as for its longest streams), and with the best of [tuning on this "
    "network](tuning.md#resnet-18-from-layer41-every-trial). A step takes hundreds of times as "
    "long as on the grid of the main comparison, so these are few methods and few seeds. The "
    "settings were chosen on eth80 and are used on asl, too."
)
NONE = "No run of `recipes/resnet18-paper.toml` is finished yet."
RECIPES = {
    "resnet18-paper": "eth80, every view",
    "resnet18-asl": "asl, 1,500 frames",
}
LITERAL = {"alpha": 0.005, "beta": 0.01, "lam": 0.3, "gamma": 0.9, "r": 0.05, "clip": None}
VERSE, PAPERS = "verse (tuned)", "verse (the paper's settings)"
Cells = dict[str, dict[str, Results]]
"""Method → ordering → runs."""


def section(results: Iterable[Result], recipes: Path) -> Section:
    """What VERSE is ahead of and behind, and a table for each data set."""
    known = {r.id: r for r in results}
    found = Section(TITLE, TEXT)
    lines, tables = [], []
    for recipe, title in RECIPES.items():
        cells = collect(known, runs_of(recipes / f"{recipe}.toml"))
        if cells:
            leads = compare(cells)
            lines += [f"- {title}, {order}: {said}" for order, said in sentences(cells, leads)]
            tables.append(tabulate(recipe, title, cells, leads))
    if not tables:
        found.text += f"\n\n{NONE}"
        return found
    found.text += "\n\n" + "\n".join(lines)
    found.add(*tables)
    return found


def name_of(run: Run) -> str:
    """A method's name; of VERSE, which settings it has."""
    if run.learner != "verse":
        return run.learner
    return PAPERS if dict(run.settings) == LITERAL else VERSE


def collect(known: Mapping[str, Result], runs: Iterable[Run]) -> Cells:
    """The finished runs, by method and ordering."""
    cells: Cells = {}
    for run in runs:
        if run.id in known:
            cells.setdefault(name_of(run), {}).setdefault(run.order, []).append(known[run.id])
    return cells


def compare(cells: Cells) -> dict[tuple[str, str], Estimate]:
    """(Method, ordering) → its μ_all minus that of the tuned VERSE, with Holm's correction over
    all of them; without those that diverged."""
    ours = cells.get(VERSE, {})
    pairs = {
        (name, order): (runs, ours[order])
        for name, by in cells.items()
        if name != VERSE
        for order, runs in by.items()
        if order in ours and not any(map(diverged, [*runs, *ours[order]]))
    }
    return statistics.paired_differences(pairs, "mu")


def sentences(cells: Cells, leads: Mapping[tuple[str, str], Estimate]) -> Iterable[tuple[str, str]]:
    """For each ordering: who has the highest mean, and whom VERSE is told apart from."""
    for order in dict.fromkeys(order for by in cells.values() for order in by):
        here = on_common_seeds({name: by[order] for name, by in cells.items() if order in by})
        means = {name: statistics.mu(runs).mean for name, runs in here.items()}
        best = max(means, key=means.__getitem__)
        judged = {name: e for (name, where), e in leads.items() if where == order}
        groups: dict[str, list[str]] = {"ahead of": [], "behind": [], "not told apart from": []}
        for name, e in judged.items():
            word = "ahead of" if e.high < 0 else "behind" if e.low > 0 else "not told apart from"
            groups[word].append(name)
        said = "; ".join(f"{word} {', '.join(names)}" for word, names in groups.items() if names)
        text = f"{best} has the highest mean; the tuned VERSE is {said or 'not judged yet'}."
        if bad := [name for name, by in cells.items() if any(map(diverged, by.get(order, ())))]:
            text += f" Diverged, and so not compared: {', '.join(bad)}."
        yield order, text


def tabulate(
    recipe: str, title: str, cells: Cells, leads: Mapping[tuple[str, str], Estimate]
) -> Table:
    """A row for each method, the best mean first."""
    orders = list(dict.fromkeys(order for by in cells.values() for order in by))
    # by the orderings that all have, so that no method is placed by an easier one
    shared = set(orders).intersection(*cells.values())
    every = {
        name: [r for order, runs in by.items() if order in shared for r in runs]
        for name, by in cells.items()
    }
    rows, records = [], []
    for name in sorted(cells, key=lambda name: -mean([r.mu_all for r in every[name]] or [0.0])):
        row = [Text(name)]
        for order in orders:
            runs = cells[name].get(order)
            if runs is None:
                row += [Text("–")] * 3
                continue
            e, lead = statistics.mu(runs), leads.get((name, order))
            end = statistics.final(runs).mean
            mark = " ✗" if any(map(diverged, runs)) else ""
            row += [Text(f"{e}{mark}"), difference_cell(lead), Text(f"{end:.3f}")]
            records.append(
                {"learner": name, "order": order, "at_the_end": end}
                | e.record
                | ({} if lead is None else {"difference": lead.mean, "p": lead.p})
            )
        row.append(Text(format_range([len(runs) for runs in cells[name].values()])))
        rows.append(row)
    head = ["method"]
    for order in orders:
        head += [f"{order}, μ_all", "minus VERSE (tuned)", "at the end"]
    note = (
        "μ_all with its 95 % interval over seeds and test videos; the paired difference to the "
        "tuned VERSE on common seeds, with Holm's correction over the table (bold: beyond chance); "
        "mean accuracy at the last test. ✗: diverged in at least one run."
    )
    head.append("seeds")
    return Table(recipe, title, head, rows, note, records)
