"""Where the published figures come from: the project's results, with tuning and losses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from paper import losses
from paper.losses import Curve
from verse.experiments.result import Result
from verse.experiments.store import Store
from verse.reports import report
from verse.reports.cells import Bench, Sorted, bench_of, format_settings, usual

ROOT = Path(__file__).parent.parent
RENDERED = ("tabletop",)


class PaperResults(Sorted):
    """All cells, which of them count in the comparison, and curves of losses."""

    def __init__(self, results: Iterable[Result], curves: Iterable[Curve] = ()) -> None:
        super().__init__(results)
        self.losses = list(curves)

    @cached_property
    def compared(self) -> list[Bench]:
        """Those of the comparison proper: filmed data, the backbone of most runs.

        Rendered data, if there are others, and other backbones, whose settings are those chosen
        with the main one, are reported but not counted.
        """
        filmed = [b for b in self.benches if b.dataset not in RENDERED] or self.benches
        runs = [k.bench.backbone for k, found in self.cells.items() if k.bench in filmed
                for _ in found]  # fmt: skip
        main = usual(runs)
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


def read(folder: Path = ROOT / "results") -> PaperResults:
    """Finished runs with the trials on validation videos, and the losses of some."""
    return PaperResults(report.results(folder), losses.read(folder / "losses"))


def digest(folder: Path = ROOT / "results") -> str:
    """Of all that pages are made from: another one means that they are old."""
    return " ".join(Store(place).digest() for place in (folder, folder / "tuning"))
