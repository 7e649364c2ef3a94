"""The table of assumptions: what each method needs, as its authors publish it."""

from __future__ import annotations

from collections.abc import Sequence

from verse import learners
from verse.reports.tables import Table, Text

_KINDS = {"batch": "B", "online": "O", "streaming": "S"}


def assumptions(names: Sequence[str]) -> Table:
    """One row per learner."""
    head = [
        "learner",
        "kind",
        "batch size",
        "fine-tunes",
        "single pass",
        "class-incremental",
        "subset replay",
        "training",
        "inference",
        "buffer",
        "violates CISLL",
        "ours is",
    ]
    rows, records = [], []
    for name in names:
        t = learners.get(name).traits
        cells = [
            name,
            _KINDS.get(t.kind, t.kind),
            t.batch_size,
            _sign(t.fine_tuning),
            _sign(t.single_pass),
            _sign(t.class_incremental),
            _sign(t.subset_replay),
            t.training_time,
            t.inference_time,
            t.buffer,
            _sign(t.violates_cisll),
            t.fidelity,
        ]
        rows.append([Text(cell) for cell in cells])
        records.append({"learner": name} | t.as_dict())
    note = (
        "Kind: B (batch), O (online), S (streaming). ζ(n): how often the network visits the data. "
        "CISLL: class-incremental streaming lifelong learning. The last column says whether the "
        "implementation here is faithful or adapted; each learner's page names the deviation."
    )
    return Table("assumptions", "What each method assumes", head, rows, note, records)


def _sign(value: bool | None) -> str:
    return "n/a" if value is None else "✓" if value else "✗"
