"""Writes everything that follows from finished runs: docs/results, and tables of other pages.

``python -m paper.pages`` reads results/ and recipes/, writes docs/results anew and replaces what
stands between the markers of the README, recipes/README.md, docs/protocol.md and the learners'
pages; tests compare the pages with the results.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from paper import headline, measured, progress, report
from paper.blocks import filled, table
from paper.comparisons import FIRST
from paper.reading import results_in
from paper.source import PaperResults, read, with_changed
from verse import learners, streams
from verse.experiments.result import Result

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = DOCS.parent / "results"
# Checksums of all blocks: a test compares them with the pages, since making the blocks takes long.
WRITTEN = DOCS / "results" / "blocks.json"


def data_name(result: Result) -> str:
    return result.run.dataset.removeprefix("folder:")


def protocol() -> str:
    """VERSE on the three real sets, one row per ordering."""
    results = sorted(
        results_in(RESULTS / "protocol"),
        key=lambda r: (r.run.dataset, streams.names().index(r.run.order)),
    )
    head = [
        "data",
        "ordering",
        "frames",
        "memory",
        "μ_all",
        "final",
        "Offline, mean",
        "Ω_all",
        "gate",
    ]
    rows = [
        [
            data_name(r),
            r.run.order,
            f"{r.frames:,}",
            str(r.capacity),
            f"{r.mu_all:.3f}",
            f"{r.alpha[-1]:.3f}",
            f"{statistics.mean(r.offline_alpha or [math.nan]):.3f}",
            f"{r.omega_all:.3f}" if r.omega_all is not None else "–",
            "passed" if all(bound.sound for bound in r.offline) else "**failed**",
        ]
        for r in results
    ]
    return table(head, rows)


def decisions() -> str:
    """What the paper leaves open about VERSE: mean over seeds, and the range."""
    groups: dict[tuple[str, str, str, str, str], list[Result]] = defaultdict(list)
    for r in results_in(RESULTS / "decisions"):
        settings = r.settings
        clip = "–" if "clip" not in settings else str(settings["clip"]).replace("None", "none")
        predictor = "Φ" if settings.get("predict_with") == "phi" else "θ"
        at = r.run.at or "head"
        groups[(r.run.learner, at, r.run.batchnorm, clip, predictor)].append(r)
    order = {"fc": 0, "head": 1, "blocks.last": 2}
    rows = []
    for key in sorted(
        groups, key=lambda k: (k[0] != "verse", order[k[1]] != 1, order[k[1]], k[2:])
    ):
        found = groups[key]
        mu, final = [r.mu_all for r in found], [r.alpha[-1] for r in found]
        rows.append(
            [
                *key,
                *(f"{statistics.mean(v):.3f} ({min(v):.3f}–{max(v):.3f})" for v in (mu, final)),
                str(sum(r.refused for r in found)),
                str(len(found)),
            ]
        )
    head = [
        "learner",
        "F from",
        "normalisation",
        "clip",
        "answers by",
        "μ_all",
        "final",
        "refused",
        "seeds",
    ]
    return table(head, rows)


def depth() -> str:
    """Where F begins: accuracy on validation videos against what a step and a sample cost."""
    groups: dict[str, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for r in sorted(results_in(RESULTS / "split-depth"), key=lambda r: r.run.seed):
        groups[r.run.at or "head"][data_name(r)].append(r)
    names = sorted({name for by in groups.values() for name in by})
    rows = []
    for at in ("fc", "head", "blocks.last"):
        every = [r for found in groups[at].values() for r in found]
        mus = ([r.mu_all for r in groups[at][name]] for name in names)
        rows.append(
            [
                f"`{at}`",
                *(f"{statistics.mean(v):.3f} ({', '.join(f'{x:.3f}' for x in v)})" for v in mus),
                f"{statistics.median(r.steps_per_second for r in every):.1f}",
                f"{every[0].memory_bytes / every[0].capacity / 1000:.0f} kB",
            ]
        )
    head = ["F begins at", *(f"μ_all, {name}" for name in names), "steps a second", "a sample"]
    return table(head, rows)


def seeds_table(folder: str) -> str:
    """Means over seeds, a row per backbone and learner; Ω only where Offline was trained."""
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for r in results_in(RESULTS / folder):
        groups[(r.run.backbone, r.run.learner)].append(r)
    rows = []
    for (backbone, learner), found in sorted(groups.items()):
        mu = [r.mu_all for r in found]
        omega = [r.omega_all for r in found if r.omega_all is not None]
        bound = [statistics.mean(r.offline_alpha) for r in found if r.offline_alpha]
        rows.append(
            [
                backbone,
                learner,
                f"{statistics.mean(mu):.3f} ({min(mu):.3f}–{max(mu):.3f})",
                f"{statistics.mean(r.alpha[-1] for r in found):.3f}",
                f"{statistics.mean(omega):.3f}" if omega else "–",
                f"{statistics.mean(bound):.3f}" if bound else "–",
                str(sum(r.refused for r in found)),
                str(len(found)),
            ]
        )
    range_ = "μ_all (lowest–highest)"
    head = ["backbone", "learner", range_, "final", "Ω_all", "Offline, mean", "refused", "seeds"]
    return table(head, rows)


def sanity() -> str:
    """Lower and upper bounds in their place: class-instance on eth80 at default settings."""
    return seeds_table("sanity")


def stability() -> str:
    """VERSE with both backbones over several seeds."""
    return seeds_table("stability")


RATES = ("0.003", "0.01", "0.03", "0.1", "0.3")


def rates() -> str:
    """μ_all on validation videos by rate; of three trials at a rate that with the setting taken."""
    found: dict[tuple[str, str], dict[str, Result]] = defaultdict(dict)
    larger = results_in(RESULTS / "rates")
    kept = {(r.run.learner, data_name(r)): _without_rate(r) for r in larger}
    for r in [*larger, *results_in(RESULTS / FIRST.store / "tuning")]:
        place = (r.run.learner, data_name(r))
        if place in kept and r.run.at != "grid" and _without_rate(r) == kept[place]:
            found[place][_rate(r)] = r
    rows = [
        [*place, *(f"{by[rate].mu_all:.3f}" if rate in by else "–" for rate in RATES)]
        for place, by in sorted(found.items(), key=_verse_first)
    ]
    return table(["learner", "data", *RATES], rows)


def _verse_first(item: tuple[tuple[str, str], object]) -> tuple[bool, tuple[str, str]]:
    return item[0][0] != "verse", item[0]


def _rate(result: Result) -> str:
    settings = dict(result.run.settings)
    return f"{settings.get('beta', settings.get('lr')):g}"


def _without_rate(result: Result) -> dict[str, object]:
    return {k: v for k, v in result.run.settings.items() if k not in ("beta", "lr")}


@cache
def _read() -> tuple[PaperResults, PaperResults]:
    """Both comparisons, read once."""
    return read(RESULTS)


def _headline() -> str:
    return headline.block(*_read())


def _progress() -> str:
    # as they lie on the disk: tables show a run that two recipes have only once
    every = with_changed(results_in(RESULTS), RESULTS)
    return progress.block(every, results_in(RESULTS / "tuning"), DOCS.parent / "recipes")


TABLES = (
    (DOCS.parent / "README.md", "headline", _headline),
    (DOCS.parent / "recipes" / "README.md", "progress", _progress),
    (DOCS / "protocol.md", "protocol", protocol),
    (DOCS / "learners" / "verse.md", "decisions", decisions),
    (DOCS / "protocol.md", "sanity", sanity),
    (DOCS / "learners" / "verse.md", "stability", stability),
    (DOCS / "performance.md", "depth", depth),
    (DOCS / "experiments.md", "rates", rates),
)


def blocks() -> Iterator[tuple[Path, str, str]]:
    """(page, marker, text) of everything that follows from results."""
    yield from ((page, marker, make()) for page, marker, make in TABLES)
    for name in learners.names():
        yield DOCS / "learners" / f"{name}.md", "measured", measured.block(name)


def main() -> None:
    """Write docs/results, then every table into its page."""
    report.write_all(*_read())
    print(f"wrote {report.OUT.relative_to(DOCS.parent)}")
    written = {}
    for page, marker, text in blocks():
        name = f"{page.relative_to(DOCS.parent).as_posix()} {marker}"
        written[name] = checksum(text)
        before = page.read_text(encoding="utf-8")
        after = filled(before, marker, text)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {name}")
    WRITTEN.write_text(json.dumps(written, indent=0) + "\n", encoding="utf-8")


def checksum(text: str) -> str:
    """Of a block."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
