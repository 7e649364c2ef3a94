"""Everything a run needs before its stream starts: data set, backbone, features of both sides."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from verse import backbones, datasets
from verse.backbones.base import Backbone
from verse.datasets.base import Dataset
from verse.evaluate import Samples
from verse.experiments.run import Run
from verse.features import Features
from verse.types import BadData, BadSetting


@dataclass(frozen=True)
class Stage:
    """Progress of something before or after the stream: ``done`` of ``total`` (0: unknown).

    Parameters
    ----------
    name
        What is under way.
    done
        How much of it.
    total
        Of how much; 0: unknown.

    >>> Stage("features, training", 32, 64).done
    32
    """

    name: str
    done: int
    total: int


@dataclass(frozen=True, eq=False)
class Opened:
    """The data set is there; its features come next.

    Parameters
    ----------
    dataset
        With its two sides.

    >>> from verse.datasets.tabletop import load
    >>> len(Opened(load(frames=1, size=16, cache=False)).dataset.classes)
    12
    """

    dataset: Dataset


Watch = Callable[[object], None]
"""Called with every event: a Stage, an Opened, or what ``evaluate.stream`` yields."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Shared by all runs that differ only in learner, order, seed, memory and schedule.

    Parameters
    ----------
    dataset
        Where the features come from.
    backbone
        What made them.
    train, test
        The features of both sides.
    unreadable
        Frames that could not be read.

    >>> import torch
    >>> from verse.datasets.tabletop import load
    >>> data = load(frames=1, size=16, cache=False)
    >>> train, test = (Samples(torch.zeros(len(side), 2), side.labels, side.videos)
    ...                for side in (data.train, data.test))
    >>> ready = Prepared(data, backbones.identity(2), train, test, unreadable=0)
    >>> len(ready.fingerprint)
    64
    """

    dataset: Dataset
    backbone: Backbone
    train: Samples
    test: Samples
    unreadable: int

    @cached_property
    def fingerprint(self) -> str:
        """The data set's identity on any machine."""
        return self.dataset.fingerprint()


def ignore(_: object) -> None:
    """Watch without looking."""


def preparation_key(run: Run) -> tuple[object, ...]:
    """Runs with equal keys share what ``prepare`` gives."""
    options = json.dumps(dict(run.options))  # they may hold lists, which no key can
    return (
        *(run.dataset, options, run.holdout, run.thin, run.validation),
        *(run.backbone, run.at, run.weights, run.features, run.precision, run.batchnorm),
    )


def load_data(run: Run, *, root: str | Path | None = None, watch: Watch = ignore) -> Dataset:
    """The data set of a run, split and thinned as it says."""
    watch(Stage("data set", 0, 0))
    dataset = datasets.load(
        run.dataset,
        root=root,
        holdout=run.holdout,
        every=run.thin,
        validate=run.validation,
        options=run.options,
        progress=lambda done, total: watch(Stage("data set", done, total)),
    )
    if not len(dataset.test):
        raise BadData(f"{dataset.name} has no test frames; hold some out (--holdout)")
    return dataset


def prepare(
    run: Run,
    *,
    root: str | Path | None = None,
    cache: bool = True,
    strict: bool = False,
    threads: int | None = None,
    device: str = "cpu",
    watch: Watch = ignore,
) -> Prepared:
    """Load the data set and the backbone, and compute the features that are not on disk."""
    dataset = load_data(run, root=root, watch=watch)
    watch(Opened(dataset))
    watch(Stage("backbone", 0, 1))
    backbone = build_run_backbone(run, threads, device)
    watch(Stage("backbone", 1, 1))
    sides = []
    for name, frames in (("training", dataset.train), ("test", dataset.test)):

        def progress(done: int, total: int, stage: str = f"features, {name}") -> None:
            watch(Stage(stage, done, total))

        sides.append(
            Features.of(
                frames,
                backbone,
                dtype=run.features,
                cache=cache,
                strict=strict,
                progress=progress,
            )
        )
    train, test = sides
    if train.skipped or test.skipped:
        dataset = replace(dataset, train=train.frames, test=test.frames)  # checks it again
    return Prepared(
        dataset,
        backbone,
        _samples(train),
        _samples(test),
        len(train.skipped) + len(test.skipped),
    )


def _samples(features: Features) -> Samples:
    return Samples(features, features.frames.labels, features.frames.videos)


def build_run_backbone(run: Run, threads: int | None, device: str) -> Backbone:
    """By name, or a dotted path to a function with the keywords at, precision and batchnorm."""
    if backbones.exists(run.backbone):
        at = backbones.first_default_at(run.backbone) if run.at is None else run.at
        return backbones.build(
            run.backbone,
            at=at,
            weights=run.weights,
            precision=run.precision,
            batchnorm=run.batchnorm,
            threads=threads,
            device=device,
        )
    module, _, function = run.backbone.rpartition(".")
    try:
        build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise BadSetting(f"cannot import the backbone {run.backbone!r}: {error}") from error
    built = build(at=run.at, precision=run.precision, batchnorm=run.batchnorm)
    if not isinstance(built, Backbone):
        raise BadSetting(f"{run.backbone} gave a {type(built).__name__}, not a Backbone")
    return built
