"""The whole computation at the paper's scale, in the order of what decides most.

::

    VERSE_DATA=… python -m paper.grid --jobs 2               # everything that is missing
    VERSE_DATA=… python -m paper.grid --jobs 2 tune:asl main:asl
    VERSE_DATA=… python -m paper.grid --dry-run              # what is missing
    VERSE_DATA=… python -m paper.grid --engine ray --address …   # on a cluster

It may be stopped at any moment; the same command goes on where it ended. Finished runs are lines in
``results``; commit them whenever you like.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SETS = ("asl", "gtsrb_full", "eth80", "gtsrb", "icub_camera")
TUNING = "results/tuning"
RESULTS = "results"
ABLATIONS = "results/ablations"
DECISIVE = (
    "verse,verse-no-virtual,tinyer,derpp,er-ace,cls-er,exstream,remind,slda,slda-grid,ridge,ranpac,"
    "ncm,fine-tune,verse-joint"
)
# The steps in their order.
STEPS = (
    *(f"{step}:{name}" for name in ("asl", "gtsrb_full") for step in ("tune", "decisive")),
    *(f"tune:{name}" for name in SETS[2:]),
    *(f"decisive:{name}" for name in SETS[2:]),
    *(f"tuning:tuning-beyond-{name}" for name in SETS),
    "tuning:tuning-room",
    "ablation:virtual-eth80",
    "ablation:virtual-asl",
    "recipe:length-asl",
    "recipe:length-gtsrb_full",
    "recipe:length-eth80",
    "ablation:causes-default",
    "ablation:unclipped",
    "ablation:growing",
    "recipe:joined",
    *(f"tune-short:{name}" for name in SETS[2:]),  # the other methods, before they are compared
    *(f"main:{name}" for name in SETS),
    *(f"recipe:scale-{name}-4percent" for name in SETS[2:]),
    *(f"recipe:scale-{name}-bytes" for name in ("eth80", "gtsrb")),
    "ablation:parts-eth80",
    "ablation:parts-asl",
    "recipe:scale-reference",
    "tuning:tuning-resnet18",
    "recipe:resnet18-paper",
    "recipe:resnet18-asl",
    "tuning:tuning-depth",
    "tuning:tuning-depth-edges-gtsrb",
    "recipe:depth-gtsrb",
)


class Driver:
    """Does steps by name; a step that fails is told, and the next one goes on."""

    def __init__(self, options: Sequence[str], *, dry_run: bool) -> None:
        self.options, self.dry_run = options, dry_run  # options of every ``verse compare``
        self.failed: list[str] = []

    def step(self, name: str) -> None:
        """One step: its kind, then what it is about."""
        kind, _, about = name.partition(":")
        print(f"== {name}", flush=True)
        if kind == "tune":
            self.tune(about, "tuning-rates")
        elif kind == "tune-short":
            self.tune(about, "tuning-rates-short")
        elif kind == "decisive":  # three seeds of what decides
            self.compare(f"scale-{about}", RESULTS, f"learner={DECISIVE}", "seed=0,1,2")
        elif kind == "main":
            self.compare(f"scale-{about}", RESULTS)
        elif kind == "recipe":
            self.compare(about, RESULTS)
        elif kind == "ablation":
            self.compare(about, ABLATIONS)
        elif kind == "tuning":
            self.compare(about, TUNING)
        else:
            sys.exit(f"there is no step {name!r}; there are: {', '.join(STEPS)}")

    def tune(self, name: str, first: str) -> None:
        """Both stages, and what they chose into the recipes; test videos are not touched."""
        self.compare(first, TUNING, f"dataset={name}")
        if self.dry_run:
            return
        for _ in range(4):  # at most so many rates beyond an edge
            before = self.text(f"tuning-edges-{name}")
            if before:
                self.compare(f"tuning-edges-{name}", TUNING)
            self.write("edges", name)
            if self.text(f"tuning-edges-{name}") == before:
                break
        self.write("knobs", name)
        self.compare(f"tuning-knobs-{name}", TUNING)
        self.write("tuned", name)

    def compare(self, recipe: str, results: str, *only: str) -> None:
        """``verse compare`` of a recipe, or of part of it."""
        command = ["compare", f"recipes/{recipe}.toml", "--results", results]
        command += [*self.options, *(["--dry-run"] if self.dry_run else [])]
        for text in only:
            command += ["--only", text]
        call = "from verse.cli import main; main()"
        if subprocess.run([sys.executable, "-c", call, *command], check=False).returncode:
            self.failed.append(" ".join(command))

    def write(self, what: str, name: str) -> None:
        """``paper.tune`` in a process of its own."""
        if subprocess.run([sys.executable, "-m", "paper.tune", what, name], check=False).returncode:
            self.failed.append(f"{what} {name}")

    def text(self, recipe: str) -> str:
        """What a recipe says now; nothing where there is none."""
        file = Path("recipes") / f"{recipe}.toml"
        return file.read_text(encoding="utf-8") if file.exists() else ""


def main() -> None:
    """The steps that were named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("steps", nargs="*", help="steps to do [default: all, in their order]")
    parser.add_argument("--jobs", help="runs at the same time [default: one per processor]")
    parser.add_argument("--engine", default="local", help="local, or ray: a cluster")
    parser.add_argument("--address", help="of the cluster, as for ray.init")
    parser.add_argument("--dry-run", action="store_true", help="say what is missing")
    given = parser.parse_args()
    options = ["--engine", given.engine]
    for name in ("jobs", "address"):
        options += [f"--{name}", value] if (value := getattr(given, name)) else []
    driver = Driver(options, dry_run=given.dry_run)
    for step in given.steps or STEPS:
        driver.step(step)
    for command in driver.failed:
        print(f"failed: {command}", file=sys.stderr)
    sys.exit(1 if driver.failed else 0)


if __name__ == "__main__":
    main()
