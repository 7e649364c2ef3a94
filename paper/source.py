"""Where the published figures come from: the project's results, with tuning and losses."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from paper import losses
from paper.comparisons import FIRST, MAIN, Comparison
from paper.losses import Curve
from paper.reading import results_in
from verse.experiments.result import Result
from verse.reports import report
from verse.reports.cells import Bench, SortedResults, bench_of, format_settings, most_common

ROOT = Path(__file__).parent.parent
ABLATIONS = "ablations"  # below results
ASIDE = ("tabletop", "joined")  # rendered, and made of other sets


class PaperResults(SortedResults):
    """All cells of a comparison, which of them count, and curves of losses."""

    def __init__(
        self,
        results: Iterable[Result],
        curves: Iterable[Curve] = (),
        comparison: Comparison = MAIN,
    ) -> None:
        super().__init__(results)
        self.losses = list(curves)
        self.comparison = comparison

    @cached_property
    def compared(self) -> list[Bench]:
        """Those of the comparison proper: filmed data, the backbone of most runs.

        Rendered and joined data, if there are others, other backbones and shortened streams are
        reported but not counted.
        """
        whole = [b for b in self.benches if not self.length(b)]
        filmed = [b for b in whole if b.dataset not in ASIDE] or whole
        runs = [
            k.bench.backbone for k, found in self.cells.items() if k.bench in filmed for _ in found
        ]
        main = most_common(runs)
        return [b for b in filmed if b.backbone == main]

    @cached_property
    def losses_of_verse(self) -> dict[tuple[Bench, str], list[Curve]]:
        """Its curves by data set and by the settings that were named."""
        groups: dict[tuple[Bench, str], list[Curve]] = defaultdict(list)
        for curve in self.losses:
            run = curve.result.run
            if run.learner == "verse" and {"loss_v", "loss"} <= set(curve.losses):
                named = format_settings(run.settings) or "default settings"
                groups[bench_of(curve.result), named].append(curve)
        return dict(groups)


def read(folder: Path = ROOT / "results") -> tuple[PaperResults, PaperResults]:
    """The main comparison and the first one, each with its trials on validation videos."""
    curves = losses.read(folder / "losses")
    found = []
    for comparison in (MAIN, FIRST):
        store = folder / comparison.store
        trials = report.trials(store / "tuning")
        found.append(
            PaperResults(
                [*results_in(store), *trials],
                [c for c in curves if comparison.holds(c.result.run)],
                comparison,
            )
        )
    return found[0], found[1]


def changed(folder: Path = ROOT / "results") -> list[Result]:
    """The runs in which one thing was changed on purpose. They have a folder of their own: in the
    main tables a learner's settings are those that most of its runs have."""
    return list(results_in(folder / ABLATIONS))


def with_changed(runs: Iterable[Result], folder: Path = ROOT / "results") -> list[Result]:
    """These and those in which one thing was changed; a run of both folders is there once."""
    return list({r.id: r for r in (*changed(folder), *runs)}.values())


def digest(folder: Path = ROOT / "results") -> str:
    """Of all files that pages are made from: another one means that the pages are old."""
    files = {*folder.glob("**/*.jsonl"), *(folder.parent / "recipes").glob("**/*.toml")}
    names = {file.relative_to(folder.parent).as_posix(): file for file in files}
    whole = hashlib.sha256()
    for name in sorted(name for name in names if "/." not in name):  # partial runs are hidden
        whole.update(f"{name}\0{hashlib.sha256(names[name].read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
