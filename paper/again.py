"""The command that makes the runs, figures and tables of a page again."""

from __future__ import annotations

from paper.comparisons import MAIN, Comparison
from paper.grid import SETS
from verse.reports.cells import Bench

EVERY = " ".join(f"main:{name}" for name in SETS)
PARTS = "ablation:parts-eth80 ablation:parts-asl"
# Page → the steps of paper/grid.py that make its runs.
STEPS = {
    "index": f"{EVERY} recipe:scale-reference",
    "claims": f"{EVERY} {PARTS}",
    "ablations": PARTS,
    "length": "recipe:length-eth80 recipe:length-asl recipe:length-gtsrb_full recipe:depth-gtsrb",
    "virtual": f"ablation:virtual-eth80 ablation:virtual-asl {PARTS} ablation:unclipped",
    "causes": f"{EVERY} recipe:scale-reference ablation:causes-default ablation:growing",
    "tuning": " ".join([*(f"tune:{name}" for name in SETS), "tuning:tuning-room"]),
    "resnet18": "tuning:tuning-resnet18 recipe:resnet18-paper recipe:resnet18-asl",
}


def command(plan: Comparison, page: str, bench: Bench | None = None) -> str:
    """For people: a sentence with the command, or nothing where a page has no runs."""
    if plan is not MAIN:
        made = f"verse compare {plan.recipe} --results results/{plan.store}"
    elif bench is not None:
        made = f"python -m paper.grid {_steps(bench)}"
    elif page in STEPS:
        made = f"python -m paper.grid {STEPS[page]}"
    else:
        return ""
    return f"To make its runs, figures and tables again: `{made} && python -m paper.pages`."


def _steps(bench: Bench) -> str:
    if bench.backbone == "resnet18":
        return f"recipe:resnet18-{'asl' if bench.dataset == 'asl' else 'paper'}"
    return f"main:{bench.dataset}" if bench.dataset in SETS else f"recipe:{bench.dataset}"
