"""Experiments: a run is a frozen record whose hash is its identity; executing it gives a result."""

from __future__ import annotations

from verse.experiments.execute import Prepared, Stage, build_learner, execute, in_order, prepare
from verse.experiments.result import Result
from verse.experiments.run import Run

__all__ = ["Prepared", "Result", "Run", "Stage", "build_learner", "execute", "in_order", "prepare"]
