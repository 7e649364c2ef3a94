"""Put the figures of ``verse bench --json`` into docs/performance.md.

verse bench --rivals --steps 100000 --json > bench.json
python benchmarks/page.py bench.json docs/performance.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def spread(field: dict[str, Any], key: str, label: str, digits: int = 2) -> str:
    low, high = field[key][label]
    return f" ({low:.{digits}f} to {high:.{digits}f})"


def table(results: dict[str, Any]) -> str:
    machine = results["machine"]
    lines = [
        f"{machine['cores']} cores, {machine['threads']} threads, "
        f"{machine['vector_instructions']}, torch {machine['torch']}.",
        "",
        "| figure | of | value (quartiles) |",
        "|---|---|---|",
    ]

    def row(figure: str, of: str, value: str) -> None:
        lines.append(f"| {figure} | {of} | {value} |")

    step = results.get("verse_step", {})
    for label, value in step.get("speedup_vs_textbook", {}).items():
        row("VERSE step, × the textbook step", label,
            f"**{value:.2f}**{spread(step, 'speedup_spread', label)}")  # fmt: skip
        row("limit time / our time", label,
            f"{step['limit_ratio'][label]:.2f}{spread(step, 'limit_spread', label)}")  # fmt: skip
        row("median step", label,
            f"{step['verse'][label]['median_ms']:.2f} ms (textbook "
            f"{step['textbook'][label]['median_ms']:.2f} ms, "
            f"{step['gflop'][label]:.2g} GFLOP)")  # fmt: skip
    frame = results.get("frame", {})
    for label, value in frame.get("speedup_vs_textbook", {}).items():
        row("whole frame, × the textbook pipeline", label,
            f"**{value:.2f}**{spread(frame, 'speedup_spread', label)}")  # fmt: skip
        row("frames per second", label, f"{frame['frames_per_second'][label]:.1f}")
        row("of which decode + G", label, f"{frame['decode_and_G'][label]['median_ms']:.1f} ms")
    predict = results.get("predict", {})
    for label, value in predict.get("p50_ms", {}).items():
        row("prediction, median", label, f"{value:.1f} ms")
        row("its 95th percentile while learning / idle", label,
            f"{predict['p95_while_learning_over_idle'][label]:.2f}")  # fmt: skip
        row("publishing a snapshot", label, f"{predict['publish_ms'][label]:.2f} ms")
    memory = results.get("memory", {})
    for case, value in memory.get("slope_bytes_per_step", {}).get("light", {}).items():
        facts = memory["cases"]["light"][case]
        row(f"resident memory per step, {facts['steps']:,} steps", case, f"{value:.2g} bytes")
        row("step time, last tenth / first tenth", case,
            f"{memory['last_over_first']['light'][case]:.2f} "
            f"(median {facts['step_us']:.0f} µs)")  # fmt: skip
    for label, value in memory.get("capacity_ratio", {}).items():
        row("step time, capacity 100,000 / 10", label, f"{value:.2f}")
    rival = results.get("avalanche", {})
    for label, value in rival.get("replay_speedup", {}).items():
        row("replay, × Avalanche's online replay", label, f"**{value:.1f}**")
        row("VERSE, × Avalanche's online replay", label, f"{rival['verse_speedup'][label]:.1f}")
    for label, value in results.get("river", {}).get("replay_speedup", {}).items():
        row("replay of 17, × River's softmax on 1 sample", label, f"{value:.1f}")
    return "\n".join(lines)


def main() -> None:
    source, page = Path(sys.argv[1]), Path(sys.argv[2])
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    results = json.loads(source.read_text())
    page.write_text(f"{before}{BEGIN}\n{table(results)}\n{END}{after}")


if __name__ == "__main__":
    main()
