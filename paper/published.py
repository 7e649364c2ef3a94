"""The figures that the paper publishes, beside ours where the data set is the same."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any

from verse.reports.scores import format_name
from verse.reports.statistics import interval
from verse.reports.tables import Table, Text

LEARNERS = {
    "Fine-tune": "fine-tune",
    "EWC++": "ewcpp",
    "MAS": "mas",
    "AGEM": "agem",
    "FIFO": "fifo",
    "GDumb": "gdumb",
    "TinyER": "tinyer",
    "DER": "der",
    "DER++": "derpp",
    "CLS-ER": "cls-er",
    "ExStream": "exstream",
    "REMIND": "remind",
    "VERSE": "verse",
    "Offline-mean-accuracy": "offline",
}
RIVALS = [name for name in LEARNERS.values() if name not in ("verse", "offline")]
DATASETS = {"iCub1.0": "icub1", "iCub28": "icub28", "CoRe50": "core50"}
Published = dict[tuple[str, str, str], float]
"""(data set, ordering, learner) → Ω_all; of offline the mean accuracy."""


def published() -> Published:
    """The paper's result table.

    >>> published()["core50", "iid", "verse"]
    1.0202
    """
    text = files("paper").joinpath("omega_all.csv").read_text(encoding="utf-8")
    return {
        (DATASETS[row["dataset"]], row["ordering"], LEARNERS[row["method"]]): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }


def margins() -> tuple[float, float]:
    """The smallest and the largest lead of VERSE over its best rival in the paper's table."""
    facts = published()
    leads = []
    for (dataset, order, learner), value in facts.items():
        if learner == "verse":
            rivals = [
                v for (d, o, n), v in facts.items() if (d, o) == (dataset, order) and n in RIVALS
            ]
            leads.append(value - max(rivals))
    return min(leads), max(leads)


def beside(listed: list[dict[str, Any]]) -> Table | None:
    """Our Ω_all and the paper's, for cells on the paper's data sets; None without any."""
    facts = published()
    rows, records = [], []
    for r in listed:
        paper = facts.get((r["dataset"], r["order"], r["learner"]))
        if paper is None or r["mean"] is None:
            continue
        ours = interval(r["mean"], r["low"], r["high"])
        within = r["low"] <= paper <= r["high"]
        cells = [
            r["learner"],
            r["dataset"],
            r["order"],
            r["backbone"],
            ours,
            f"{paper:.3f}",
            f"{r['mean'] - paper:+.3f}",
            "yes" if within else "no",
        ]
        rows.append([Text(cell) for cell in cells])
        records.append(
            {
                key: r[key]
                for key in ("dataset", "order", "learner", "backbone", "mean", "low", "high", "n")
            }
            | {"paper": paper}
        )
    head = [
        "learner",
        "data set",
        "ordering",
        "backbone",
        "Ω_all here",
        "paper",
        "difference",
        "paper's in our interval",
    ]
    note = "The paper gives means over 10 permutations, without intervals."
    return Table("paper", "Beside the paper's figures", head, rows, note, records) if rows else None


def reference() -> list[Table]:
    """The paper's own table, for reference: one for each data set."""
    facts = published()
    note = (
        "Published figures on the paper's own data sets with ResNet-18: no figure of another data "
        "set can be compared with them, only who leads whom."
    )
    tables = []
    for dataset in DATASETS.values():
        orders = list(dict.fromkeys(order for name, order, _ in facts if name == dataset))
        rows = []
        for learner in LEARNERS.values():
            values = [facts.get((dataset, order, learner)) for order in orders]
            title = "Offline (mean accuracy)" if learner == "offline" else format_name(learner)
            bold = learner == "verse"
            cells = (Text("–" if v is None else f"{v:.3f}", bold) for v in values)
            rows.append([Text(title), *cells])
        tables.append(
            Table(
                f"paper-{dataset}",
                f"Ω_all as the paper reports it: {dataset}",
                ["learner", *orders],
                rows,
                note,
            )
        )
    return tables
