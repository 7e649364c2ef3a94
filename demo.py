"""``make demo``: three learners watch the same videos, one frame at a time, each frame once.

Renders the tabletop videos, streams them in class-instance order (one class after the other, as a
child would be shown things) through VERSE, plain replay and fine-tuning, and writes demo/ with the
accuracy over time, a sample of frames with their answers, and a page that explains both.
"""

from __future__ import annotations

import html
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from verse.cli.live import Live, plain_warnings
from verse.cli.output import console, print_table
from verse.evaluate import predict
from verse.experiments import Prepared, Result, Run, build_learner, execute, in_order, prepare
from verse.learners import Learner
from verse.reports.curve import plot

FOLDER = Path("demo")
LEARNERS = {"verse": "VERSE", "tinyer": "replay", "fine-tune": "fine-tuning"}
ABOUT = {
    "verse": "looks ahead with the new frame, then corrects itself with what it remembers",
    "tinyer": "learns every new frame together with a few remembered ones",
    "fine-tune": "learns every new frame and nothing else, so it forgets",
}
# Every second frame and a memory of ten frames a class keep the demo within a few minutes.
BASE = Run("tabletop", thin=2, capacity="10/class", offline=False)


def main() -> None:
    """Run everything and say where the page is."""
    began = time.perf_counter()
    FOLDER.mkdir(exist_ok=True)
    screen = console()
    runs = {name: replace(BASE, learner=name) for name in LEARNERS}
    with plain_warnings():
        screen.print("[bold]Videos and their features[/] (rendered once, then kept)")
        with Live("") as live:
            ready = prepare(runs["verse"], watch=live)
        results: dict[str, Result] = {}
        learners: dict[str, Learner] = {}
        for name, run in runs.items():
            screen.print(f"\n[bold]{LEARNERS[name]}[/] {ABOUT[name]}")
            length = len(in_order(run, ready)[0])
            learners[name] = build_learner(run, ready, length)
            with Live(LEARNERS[name], length) as live:
                results[name] = execute(run, prepared=ready, learner=learners[name], watch=live)
            results[name].save(FOLDER / f"{name}.json")
    rows = [
        {
            "learner": LEARNERS[name],
            "mean accuracy": f"{result.mu_all:.3f}",
            "at the end": f"{result.alpha[-1]:.3f}",
            "steps a second": f"{result.steps_per_second:.0f}",
            "memory": f"{result.memory_bytes / 1e6:.1f} MB",
        }
        for name, result in results.items()
    ]
    screen.print()
    print_table(rows)
    curves = {LEARNERS[name]: result for name, result in results.items()}
    plot(FOLDER / "alpha.png", curves, "tabletop: accuracy on all classes shown so far")
    frames(FOLDER / "frames.png", ready, learners["verse"])
    page(FOLDER / "index.html", rows, ready)
    screen.print(
        f"\n{time.perf_counter() - began:.0f} s. Open [bold]{FOLDER / 'index.html'}[/] to see it."
    )


def frames(path: Path, ready: Prepared, learner: Learner, columns: int = 6, rows: int = 4) -> None:
    """Test frames, two of each class, with what VERSE answers; wrong answers in red."""
    classes, test = ready.dataset.classes, ready.dataset.test
    random = np.random.default_rng(0)
    each = columns * rows // len(classes)
    chosen = np.concatenate(
        [random.choice(np.flatnonzero(test.labels == k), each, False) for k in range(len(classes))]
    )
    answers = predict(learner, ready.test.take(chosen))
    figure = Figure(figsize=(1.75 * columns, 2.05 * rows), dpi=110, layout="constrained")
    for place, (i, answer) in enumerate(zip(chosen, answers, strict=True), 1):
        axes = figure.add_subplot(rows, columns, place)
        axes.imshow(test.read(int(i)))
        axes.set_axis_off()
        true = classes[test.labels[i]]
        right = answer == test.labels[i]
        axes.set_title(
            true if right else f"{classes[answer]} (a {true})",
            color="#1a7f37" if right else "#c62828",
            fontsize=10,
        )
    figure.savefig(path)


def page(path: Path, rows: list[dict[str, str]], ready: Prepared) -> None:
    """One page to open in a browser."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row.values()) + "</tr>"
        for row in rows
    )
    about = "".join(f"<li><b>{LEARNERS[name]}</b> {text}.</li>" for name, text in ABOUT.items())
    data = ready.dataset
    path.write_text(
        f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>verse: a demonstration</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff }}
table {{ border-collapse: collapse }} td, th {{ padding: .3rem 1rem .3rem 0; text-align: left;
  border-bottom: 1px solid #ddd }} img {{ max-width: 100% }}
</style>
<h1>Learning from video, one frame at a time</h1>
<p>{len(data.classes)} kinds of things on tables are shown one after the other, video by video:
{len(data.train):,} frames, each seen once. After every new kind the learner is tested on all kinds
shown so far, with things and places it has never seen ({len(data.test):,} frames).
All three start from the same pretrained network.</p>
<ul>{about}</ul>
<table><tr>{head}</tr>{body}</table>
<p><img src="alpha.png" alt="Accuracy of the three learners over the stream"></p>
<h2>What VERSE answers at the end</h2>
<p>Test frames; green: right, red: its answer, and in brackets what it is.</p>
<p><img src="frames.png" alt="Test frames with the answers of VERSE"></p>
<p>Measure it yourself: <code>verse run tabletop --learner verse</code></p>
</html>
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
