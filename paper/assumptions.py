"""The table of assumptions: what each method needs, as its authors publish it."""

from __future__ import annotations

from collections.abc import Sequence

from verse import learners
from verse.reports.tables import Table, Text

_KINDS = {"batch": "B", "online": "O", "streaming": "S"}


def assumptions(names: Sequence[str]) -> Table:
    """One row per learner."""
    head = ["learner", "kind", "batch", "tunes", "one pass", "CIL", "subset"]
    head += ["train", "infer", "buffer", "breaks CISLL", "ours"]
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
        "Kind: B (batch), O (online), S (streaming). Tunes: needs a fine-tuning phase. CIL: "
        "class-incremental, needs no task labels. Subset: replays a few samples in each step, not "
        "its whole memory. Train, infer: passes over the data in training and before a prediction; "
        "ζ(1): one, ζ(n): n. Breaks CISLL: does not fit class-incremental streaming lifelong "
        "learning. Ours: whether the implementation here is faithful or adapted; each learner's "
        "page names the deviation."
    )
    return Table("assumptions", "What each method assumes", head, rows, note, records)


def _sign(value: bool | None) -> str:
    return "n/a" if value is None else "✓" if value else "✗"
