"""The headline table of the README: each cell's best method, VERSE, and what it must beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verse.reports import omega
from verse.reports.cells import Sorted, is_verse
from verse.reports.tables import Table, Text

CONTROLS = ("verse-no-virtual", "verse-new-sample")  # they explain; shown without a variant
RIVALS = {"tinyer-c48": "TinyER, C = 48", "slda": "SLDA"}


def table(found: Sorted, commands: Mapping[str, str]) -> Table:
    """One row for each data set and ordering; ``commands`` are by the identity of a run.

    Ω_all with its interval; of Offline the mean accuracy that Ω divides by.
    """
    benches = {bench.slug: bench for bench in found.compared}
    listed = [r for r in omega.records(found) if r["mean"] is not None and r["bench"] in benches]
    names = list(dict.fromkeys(r["learner"] for r in listed if is_verse(r["learner"])))
    variants = [name for name in names if name not in ("verse", *CONTROLS)] or names[1:]
    columns = {"verse": "VERSE", **{name: name for name in variants}, **RIVALS}
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for record in listed:
        cells.setdefault((record["bench"], record["order"]), {})[record["learner"]] = record
    backbone = next((bench.backbone for bench in found.compared), "–")
    rows = []
    for (slug, order), by in cells.items():
        best = next((r for r in by.values() if r["best"]), None)
        if best is None or "verse" not in by:  # nobody to compare it with
            continue
        bench = benches[slug]
        runs = found.main(bench)["verse"][order]
        command = next((commands[r.run.id] for r in runs if r.run.id in commands), "")
        leader = omega.figure(best)
        rows.append([
            Text(bench.dataset), Text(order), Text(f"{best['learner']} {leader.text}"),
            *(omega.figure(by.get(name)) for name in columns),
            Text(omega.counted([by[n]["n"] for n in (best["learner"], *columns) if n in by])),
            Text(f"{best['offline']:.3f}"), Text(f"`{command} --only order={order}`"
                                                 if command else "–"),
        ])  # fmt: skip
    head = ["data set", "ordering", "best streaming method", *columns.values(),
            "seeds", "Offline's accuracy", "command"]  # fmt: skip
    return Table("headline", "Ω_all in short", head, rows,
                 f"Backbone: {backbone}. {omega.RULE}")  # fmt: skip
