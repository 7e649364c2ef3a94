"""Experiments: a run is a frozen record whose hash is its identity; executing it gives a result.

Here goes what plans, runs, stores and resumes runs. The loop itself (``verse.evaluate``), and
tables and figures (``verse.reports``), do not.
"""

from __future__ import annotations

from verse.experiments.execute import Prepared, Stage, build_run_learner, execute, in_order, prepare
from verse.experiments.prepare import Opened, load_data
from verse.experiments.result import Result
from verse.experiments.run import Run

__all__ = [
    "Opened",
    "Prepared",
    "Result",
    "Run",
    "Stage",
    "build_run_learner",
    "execute",
    "in_order",
    "load_data",
    "prepare",
]
