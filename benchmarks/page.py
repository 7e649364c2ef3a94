"""Put the figures of ``verse bench --json`` into docs/performance.md, and draw its plot.

verse bench --rivals --steps 100000 --json > bench.json
python benchmarks/page.py bench.json docs/performance.md docs/images/speed.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def learners(results: dict[str, Any]) -> str:
    """Frames a second and megabytes of every learner on the default split."""
    default = results["default"]
    lines = [
        f"{machine(results)} Decode + G takes {default['decode_and_G_ms']:.1f} ms of every frame.",
        "",
        "| learner | frames/s | step, ms | MB |",
        "|---|--:|--:|--:|",
    ]
    first = default["learner"]
    for name, of in sorted(default["learners"].items(), key=lambda item: item[0] != first):
        shown = f"**{name}** (default)" if name == first else name
        lines.append(
            f"| {shown} | {of['frames_per_second']:.0f} | {of['step_ms']:.2f} | "
            f"{of['megabytes']:.1f} |"
        )
    return "\n".join(lines)


def machine(results: dict[str, Any]) -> str:
    about = results["machine"]
    return (
        f"{about['cores']} cores, {about['threads']} threads, {about['vector_instructions']}, "
        f"torch {about['torch']}."
    )


def figures(results: dict[str, Any]) -> str:
    lines = [machine(results), "", "| figure | of | value (quartiles) |", "|---|---|---|"]
    lines += [f"| {what} | {of} | {value} |" for what, of, value in ratios(results)]
    return "\n".join(lines)


def ratios(results: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    default = results.get("default")
    if default:
        yield (
            "default step, × the step at `head`",
            "default",
            (
                f"**{default['step_speedup_vs_head']:.0f}** ({default['step_ms']:.2f} ms against "
                f"{default['head_step_ms']:.1f} ms)"
            ),
        )
        yield (
            "learn and predict in turn",
            "default",
            (f"{default['learn_predict_per_second']:.0f} a second"),
        )
        yield "a remembered sample", "default", f"{default['sample_bytes']:,} bytes"
    step = results.get("verse_step", {})
    for label, value in step.get("speedup_vs_textbook", {}).items():
        yield (
            "VERSE step, × the textbook step",
            label,
            (f"**{value:.2f}**{spread(step, 'speedup_spread', label)}"),
        )
        yield (
            "limit time / our time",
            label,
            (f"{step['limit_ratio'][label]:.2f}{spread(step, 'limit_spread', label)}"),
        )
        yield (
            "median step",
            label,
            (
                f"{step['verse'][label]['median_ms']:.2f} ms (textbook "
                f"{step['textbook'][label]['median_ms']:.2f} ms, {step['gflop'][label]:.2g} GFLOP)"
            ),
        )
    frame = results.get("frame", {})
    for label, value in frame.get("speedup_vs_textbook", {}).items():
        yield (
            "whole frame, × the textbook pipeline",
            label,
            (f"**{value:.2f}**{spread(frame, 'speedup_spread', label)}"),
        )
        yield "frames per second", label, f"{frame['frames_per_second'][label]:.1f}"
        yield "of which decode + G", label, f"{frame['decode_and_G'][label]['median_ms']:.1f} ms"
    predict = results.get("predict", {})
    for label, value in predict.get("p50_ms", {}).items():
        yield "prediction, median", label, f"{value:.1f} ms"
        yield (
            "its 95th percentile while learning / idle",
            label,
            (f"{predict['p95_while_learning_over_idle'][label]:.2f}"),
        )
        yield "publishing a snapshot", label, f"{predict['publish_ms'][label]:.2f} ms"
    yield from growth(results.get("memory", {}))
    rival = results.get("avalanche", {})
    for label, value in rival.get("replay_speedup", {}).items():
        yield "replay, × Avalanche's online replay", label, f"**{value:.1f}**"
        yield "VERSE, × Avalanche's online replay", label, f"{rival['verse_speedup'][label]:.1f}"
    for label, value in results.get("river", {}).get("replay_speedup", {}).items():
        yield "replay of 17, × River's softmax on 1 sample", label, f"{value:.1f}"


def growth(memory: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for case, value in memory.get("slope_bytes_per_step", {}).get("light", {}).items():
        facts = memory["cases"]["light"][case]
        yield f"resident memory per step, {facts['steps']:,} steps", case, f"{value:.2g} bytes"
        yield (
            "step time, last tenth / first tenth",
            case,
            (f"{memory['last_over_first']['light'][case]:.2f} (median {facts['step_us']:.0f} µs)"),
        )
    for label, value in memory.get("capacity_ratio", {}).items():
        yield "step time, capacity 100,000 / 10", label, f"{value:.2f}"
    for classes, of in memory.get("by_classes", {}).get("light", {}).items():
        yield (
            "step; answer; a new class",
            f"{int(classes):,} classes",
            (
                f"{of['step_us'] / 1e3:.2f}; {of['answer_us'] / 1e3:.2f}; "
                f"{of['new_class_us'] / 1e3:.2f} ms"
            ),
        )


def spread(field: dict[str, Any], key: str, label: str, digits: int = 2) -> str:
    low, high = field[key][label]
    return f" ({low:.{digits}f} to {high:.{digits}f})"


def plot(results: dict[str, Any], path: Path) -> None:
    """Frames a second of every learner, fastest first, the default marked."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    default = results["default"]
    speed = {name: of["frames_per_second"] for name, of in default["learners"].items()}
    names = sorted(speed, key=speed.__getitem__)
    colours = ["#d55e00" if name == default["learner"] else "#0072b2" for name in names]
    figure, axes = plt.subplots(figsize=(6.4, 0.2 * len(names) + 0.9), layout="constrained")
    axes.barh(names, [speed[name] for name in names], color=colours)
    axes.axvline(1e3 / default["decode_and_G_ms"], color="0.4", linestyle=":", linewidth=1)
    axes.tick_params(labelsize=7)
    axes.set_xlabel("frames a second (decode + G + step); dotted: decode + G alone", fontsize=8)
    axes.margins(y=0.01)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    source, page, image = (Path(argument) for argument in sys.argv[1:4])
    results = json.loads(source.read_text())
    text = page.read_text()
    for mark, table in (("learners", learners), ("figures", figures)):
        begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{table(results)}\n{end}{rest.split(end)[1]}"
    page.write_text(text)
    plot(results, image)


if __name__ == "__main__":
    main()
