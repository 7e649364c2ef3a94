"""Execute a run: the one way from a record to its result, for every command."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from verse import __version__, checkpoint, learners, memory, streams
from verse.evaluate import Finished, Samples, SoFar, Tested, stream
from verse.experiments.offline import bounds
from verse.experiments.partial import Partial
from verse.experiments.prepare import Prepared, Stage, Watch, ignore, prepare
from verse.experiments.result import Result, collect_counters
from verse.experiments.run import Run
from verse.learners.base import Learner
from verse.memory.budget import budget
from verse.realtime import Camera
from verse.streams import Schedule

__all__ = ["Prepared", "Stage", "Watch", "execute", "prepare"]

SAVE_SECONDS = 30.0


def execute(
    run: Run,
    *,
    prepared: Prepared | None = None,
    learner: Learner | None = None,
    root: str | Path | None = None,
    cache: bool = True,
    strict: bool = False,
    threads: int | None = None,
    device: str = "cpu",
    checkpoint_file: Path | None = None,
    resume: bool = False,
    save_seconds: float = SAVE_SECONDS,
    watch: Watch = ignore,
) -> Result:
    """Stream the data set through the learner once, then Offline; ``watch`` sees every event.

    With ``checkpoint_file`` the run can be killed at any moment: ``resume=True`` continues from
    there, bit-identical on the same machine with the same versions and threads, and refuses the
    file of another run, other data or another backbone (``CannotResume``); the caller removes it
    once the result is safe. ``learner`` is one from ``build_run_learner``, for a caller that
    wants to ask it questions afterwards.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    began = time.perf_counter()
    ready = prepared or prepare(
        run, root=root, cache=cache, strict=strict, threads=threads, device=device, watch=watch
    )
    train, schedule = in_order(run, ready)
    learner = build_run_learner(run, ready, len(train)) if learner is None else learner
    circumstances = _circumstances(ready)
    so_far, partial = SoFar(), None
    if checkpoint_file is not None:
        data, backbone = ready.fingerprint, ready.backbone.key
        partial = Partial(checkpoint_file, run.id, data, backbone, circumstances)
        if resume and checkpoint_file.exists():
            so_far = partial.load(learner)
    _learn(run, ready, train, schedule, learner, so_far, partial, save_seconds, watch)
    offline = bounds(ready, schedule, run, watch) if run.offline else ()
    return Result(
        run=run,
        classes=ready.dataset.classes,
        split=ready.dataset.split,
        fingerprint=ready.fingerprint,
        frames=len(train),
        test_frames=len(ready.test),
        offline=tuple(offline),
        unreadable=ready.unreadable,
        seconds=time.perf_counter() - began,
        capacity=learner.memory.limit if learner.memory is not None else 0,
        memory_bytes=learner.memory_bytes,
        settings=learner.settings(),
        circumstances=circumstances,
        **collect_counters(so_far),
    )


def in_order(run: Run, ready: Prepared) -> tuple[Samples, Schedule]:
    """The training samples as the stream shows them, and when it is tested."""
    frames = ready.dataset.train
    order = streams.order(run.order, frames.labels, frames.videos, frames.frames, run.seed)
    order = streams.shorten(order, run.length)
    train = ready.train.take(order)
    return train, Schedule.of(run.order, train.y, every=run.every, steps=run.steps)


def build_run_learner(run: Run, ready: Prepared, stream_length: int) -> Learner:
    """The run's learner with its memory, before the first frame."""
    classes = len(ready.dataset.classes)
    limits = budget(run.capacity, stream_length=stream_length, classes=classes)
    store = memory.get(run.memory)(**limits, dtype=run.features, seed=run.seed)
    return learners.build(run.learner, ready.backbone.F, store, seed=run.seed, **run.settings)


def _learn(
    run: Run,
    ready: Prepared,
    train: Samples,
    schedule: Schedule,
    learner: Learner,
    so_far: SoFar,
    partial: Partial | None,
    save_seconds: float,
    watch: Watch,
) -> None:
    saved = time.monotonic()
    camera = Camera(run.fps, run.queue) if run.fps is not None else None
    measured = camera is not None and run.step_seconds is None
    events = stream(
        learner,
        train,
        ready.test,
        schedule,
        so_far=so_far,
        camera=camera,
        step_seconds=run.step_seconds,
        overhead=_extraction_seconds(ready) if measured else 0.0,
        prequential=run.prequential,
    )
    for earlier in so_far.tested.copy():
        watch(earlier)
    try:
        for event in events:
            watch(event)
            due = time.monotonic() - saved >= save_seconds or isinstance(event, Tested)
            if partial is not None and due and not isinstance(event, Finished):
                partial.save(learner, so_far)
                saved = time.monotonic()
    except KeyboardInterrupt:
        if partial is not None and so_far.steady:
            partial.save(learner, so_far)
        raise


def _extraction_seconds(ready: Prepared) -> float:
    """What G takes for one frame on this machine: the median of a few."""
    G, frames = ready.backbone.G, ready.dataset.train
    inputs = np.stack([G.preprocess(frames.read(0))])
    times = []
    for _ in range(5):
        began = time.perf_counter()
        G.run(inputs)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _circumstances(ready: Prepared) -> dict[str, str]:
    return checkpoint.circumstances() | {
        "verse": __version__,
        "engine": ready.backbone.G.engine,
        "backbone_key": ready.backbone.key,
        "at": ready.backbone.at,
        "precision": ready.backbone.F.precision,
        "batchnorm": ready.backbone.F.batchnorm,
    }
