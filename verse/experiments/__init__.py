"""Experiments: a run is a frozen record whose hash is its identity; executing it gives a result.

Belongs here: code that plans, executes, stores and resumes runs. Does not belong here: the loop
itself (``verse.evaluate``), and tables and figures (``verse.reports``).
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
