"""``make demo``: four learners watch the same videos, one frame at a time, each frame once.

Renders short tabletop videos, streams them in class-instance order (one class after the other, as a
child would be shown things) through the default learner, VERSE, plain replay and fine-tuning, and
writes demo/ with a page that shows what came out, and a classifier to serve.
"""

from __future__ import annotations

import base64
import html
import io
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

from verse.cli.directory import open_directory
from verse.cli.live import Live
from verse.cli.output import console, plain_warnings, print_table
from verse.configuration import DEFAULT_LEARNER
from verse.evaluate import predict
from verse.experiments import Prepared, Result, Run, build_run_learner, execute, in_order, prepare
from verse.learners import Learner
from verse.reports.curve import plot
from verse.types import VerseError

FOLDER = Path("demo")
MODEL = FOLDER / "model"
LEARNERS = {
    DEFAULT_LEARNER: DEFAULT_LEARNER,
    "verse": "VERSE",
    "tinyer": "replay",
    "fine-tune": "fine-tuning",
}
ABOUT = {
    DEFAULT_LEARNER: "is what you get when you name no learner",
    "verse": "looks ahead with the new frame, then corrects itself with what it remembers",
    "tinyer": "learns every new frame together with a few remembered ones",
    "fine-tune": "learns every new frame and nothing else, so it forgets",
}
# Short videos and a memory of ten frames a class keep it within two minutes on a busy machine.
BASE = Run("tabletop", options={"frames": 6}, capacity="10/class", offline=False)
TAUGHT = 5  # frames of each class in the classifier to serve
DARK = {
    "figure.facecolor": "#16181d",
    "axes.facecolor": "#16181d",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#d7dae0"
    ),
}


def main() -> None:
    """Run everything and say where the page is."""
    began = time.perf_counter()
    screen = console()
    screen.print(
        "This takes about a minute; up to two on a busy machine, half of that the next time.\n"
    )
    FOLDER.mkdir(exist_ok=True)
    runs = {name: replace(BASE, learner=name) for name in LEARNERS}
    results: dict[str, Result] = {}
    learners: dict[str, Learner] = {}
    with plain_warnings():
        screen.print("[bold]Videos and their features[/] (made once, then kept)")
        with Live("") as live:
            ready = prepare(BASE, watch=live)
        for name, run in runs.items():
            screen.print(f"\n[bold]{LEARNERS[name]}[/] {ABOUT[name]}")
            length = len(in_order(run, ready)[0])
            learners[name] = build_run_learner(run, ready, length)
            with Live(LEARNERS[name], length) as live:
                results[name] = execute(run, prepared=ready, learner=learners[name], watch=live)
    rows = [row(LEARNERS[name], result) for name, result in results.items()]
    screen.print()
    print_table(rows)
    curves = {LEARNERS[name]: result for name, result in results.items()}
    title = "accuracy on all classes shown so far"
    plot(FOLDER / "alpha.png", curves, title)
    with matplotlib.rc_context(DARK):
        plot(FOLDER / "alpha-dark.png", curves, title)
    page(FOLDER / "index.html", rows, ready, frames(ready, learners[DEFAULT_LEARNER]))
    served = teach(ready)
    screen.print(f"\n{time.perf_counter() - began:.0f} s. Open [bold]{FOLDER / 'index.html'}[/].")
    command = os.path.relpath(Path(sys.executable).with_name("verse"))
    screen.print(
        f"Next, teach it yourself: [bold]{command} serve {MODEL} --open[/]  ({served})",
        soft_wrap=True,
    )


def row(name: str, result: Result) -> dict[str, str]:
    """A learner's line of the table."""
    size = result.memory_bytes
    return {
        "learner": name,
        "mean accuracy": f"{result.mu_all:.3f}",
        "at the end": f"{result.alpha[-1]:.3f}",
        "steps a second": f"{result.steps_per_second:,.0f}",
        "memory": "–" if not size else f"{size / 1e3:,.0f} kB",
    }


def teach(ready: Prepared) -> str:
    """A classifier that knows the kinds of the demo, so that the page is never empty."""
    train, classes = ready.dataset.train, ready.dataset.classes
    try:
        with open_directory(MODEL, None, options={"seed": 0}) as model:
            for k, name in enumerate(classes):
                mine = np.flatnonzero(train.labels == k)
                for i in mine[:: max(1, len(mine) // TAUGHT)][:TAUGHT]:
                    key = f"demo {train.key(int(i))}"
                    if model.seq_of(key) is None:  # the demo ran before
                        model.learn_one(train.read(int(i)), name, key=key)
            return f"the page, with {len(model.classes)} kinds of things already taught"
    except VerseError as error:  # it is being served, or it is of another version
        return f"as it was: {error}"


def frames(ready: Prepared, learner: Learner, each: int = 2) -> str:
    """Test frames of each class with the learner's answers, as figures of the page."""
    classes, test = ready.dataset.classes, ready.dataset.test
    random = np.random.default_rng(0)
    chosen = np.concatenate(
        [random.choice(np.flatnonzero(test.labels == k), each, False) for k in range(len(classes))]
    )
    figures = []
    for i, answer in zip(chosen, predict(learner, ready.test.take(chosen)), strict=True):
        file = io.BytesIO()
        Image.fromarray(test.read(int(i))).resize((144, 144)).save(file, "JPEG", quality=85)
        picture = base64.b64encode(file.getvalue()).decode()
        true, said = classes[test.labels[i]], classes[answer]
        right = answer == test.labels[i]
        words = f"✓ {true}" if right else f"✗ {said} (a {true})"
        figures.append(
            f'<figure class="{"right" if right else "wrong"}"><img alt="{html.escape(true)}" '
            f'src="data:image/jpeg;base64,{picture}"><figcaption>{html.escape(words)}</figcaption>'
            "</figure>"
        )
    return "\n".join(figures)


def page(path: Path, rows: list[dict[str, str]], ready: Prepared, shown: str) -> None:
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
<html lang="en"><head><meta charset="utf-8"><title>verse: a demonstration</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<style>
:root {{ --text: #1c1e21; --back: #fff; --line: #dde0e4; --right: #1a7f37; --wrong: #c62828;
  --code: #f2f3f5 }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #d7dae0; --back: #16181d; --line: #353941; --right: #56d364; --wrong: #ff8a80;
    --code: #23262d }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--back) }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse }}
td, th {{ padding: .3rem .9rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line) }}
td {{ white-space: nowrap }}
td:first-child, th:first-child {{ text-align: left }}
tbody tr:first-child {{ font-weight: 600 }}
img {{ max-width: 100%; height: auto }}
code {{ background: var(--code); padding: .1rem .3rem; border-radius: .2rem;
  overflow-wrap: anywhere }}
.frames {{ display: grid; gap: .8rem; grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)) }}
figure {{ margin: 0 }} figure img {{ width: 100%; border-radius: .3rem; display: block }}
figcaption {{ font-size: .85rem }}
.right figcaption {{ color: var(--right) }} .wrong figcaption {{ color: var(--wrong) }}
@media (max-width: 40rem) {{ td, th {{ padding-right: .5rem; font-size: .85rem }} }}
</style></head><body>
<h1>Learning from video, one frame at a time</h1>
<p>{len(data.classes)} kinds of things on tables are shown one after the other, video by video:
{len(data.train):,} frames, each seen once. After every new kind the learner is tested on all kinds
shown so far, with things and places it has never seen ({len(data.test):,} frames).
All four start from the same pretrained network.</p>
<ul>{about}</ul>
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p><picture><source srcset="alpha-dark.png" media="(prefers-color-scheme: dark)">
<img src="alpha.png" alt="Accuracy of the four learners over the stream"></picture></p>
<h2>What {DEFAULT_LEARNER} answers at the end</h2>
<p>Test frames: ✓ right; ✗ its answer, and in brackets what it is.</p>
<div class="frames">{shown}</div>
<h2>Next</h2>
<p>Teach it yourself, in the browser: <code>verse serve {MODEL} --open</code></p>
<p>Measure it yourself: <code>verse run tabletop --data frames=6 --no-offline</code></p>
</body></html>
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
