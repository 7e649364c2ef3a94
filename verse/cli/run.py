"""``verse run``: one learner over one stream."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.directory import device_option
from verse.cli.interrupt import exit_on_interrupt
from verse.cli.output import json_option, plain_warnings, plural, print_json, result_only
from verse.configuration import DEFAULT_BACKBONE, DEFAULT_LEARNER
from verse.types import BadSetting

if TYPE_CHECKING:
    from verse.cli.live import Live
    from verse.experiments import Prepared, Result, Run
    from verse.experiments.store import Store


def pairs(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``name=value`` options as a table."""
    table = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadSetting(f"{option.opts[0]} {text!r}: write name=value")
        table[name.strip()] = value.strip()
    return table


@click.command()
@click.argument("dataset")
@click.option(
    "--learner",
    default=DEFAULT_LEARNER,
    show_default=True,
    help="Learning method; see verse list learners.",
)
@click.option(
    "--order",
    default="class-instance",
    show_default=True,
    help="Order of the stream: iid, class-iid, instance or class-instance.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed of the ordering and the learner."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Setting of the learner; can be repeated.",
)
@click.option(
    "--capacity",
    default="4%",
    show_default=True,
    help="Size of the memory: 4% (of the stream), 3MB, a number of samples, 20 per class "
    "(grows with every new class), or 20 x classes (room for all from the start).",
)
@click.option(
    "--memory",
    default="",
    help="Rule that decides which samples to keep; see verse list memories. [default: "
    "class-balanced for iid and class-iid, reservoir for instance and class-instance]",
)
@click.option(
    "--backbone",
    default=DEFAULT_BACKBONE,
    show_default=True,
    help="Pretrained network; see verse list backbones.",
)
@click.option(
    "--at",
    default="",
    help="Where the network is split into its frozen and its learning part: grid, grid1, "
    "grid3 or a layer. [default: grid]",
)
@click.option(
    "--weights",
    help="File with the pretrained weights. [default: those that come with the backbone]",
)
@click.option(
    "--precision",
    default="float32",
    show_default=True,
    help="Precision of the learning part: auto, float32 or bfloat16.",
)
@click.option(
    "--batchnorm",
    default="frozen",
    show_default=True,
    help="BatchNorm statistics of the learning part: frozen or train.",
)
@click.option(
    "--features",
    default="float32",
    show_default=True,
    help="Precision of stored features and of the memory: float32 or float16.",
)
@click.option("--root", help="Folder that contains the data set.")
@click.option(
    "--data",
    "options",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Option of the data set; can be repeated.",
)
@click.option(
    "--holdout",
    help="Which frames are for testing: last:3, videos:NAME, arcs:6:3,6, fraction:0.2 …",
)
@click.option(
    "--validation",
    metavar="RULE",
    help="Test on training videos that this rule selects, instead of the test videos.",
)
@click.option("--thin", default=1, show_default=True, help="Use every n-th frame of each video.")
@click.option(
    "--length",
    default=0,
    show_default=True,
    help="Use only this many frames, evenly spaced; 0 uses all.",
)
@click.option(
    "--every",
    default=1,
    show_default=True,
    metavar="S",
    help="class-iid and class-instance: test after every S classes.",
)
@click.option("--steps", default=10, show_default=True, help="iid and instance: number of tests.")
@click.option(
    "--offline/--no-offline",
    default=None,
    help="Also train the offline upper bound, which Ω needs. [default: yes, except with "
    "--no-cache]",
)
@click.option("--prequential", is_flag=True, help="Also predict each frame before learning it.")
@click.option(
    "--fps",
    type=float,
    help="Simulate a camera of this frame rate; frames that come while the learner is "
    "busy are lost.",
)
@click.option(
    "--queue", default=0, show_default=True, help="With --fps: number of frames that can wait."
)
@click.option(
    "--step-seconds",
    type=float,
    help="With --fps: seconds that one step takes. [default: measured]",
)
@click.option("--threads", type=click.IntRange(1), help="Number of threads.")
@device_option
@click.option("--strict", is_flag=True, help="Stop at an unreadable image instead of skipping it.")
@click.option("--no-cache", is_flag=True, help="Do not store features on disk.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder for the results; verse report reads it.",
)
@click.option(
    "--fresh", is_flag=True, help="Start over, even if this run is finished or interrupted."
)
@click.option(
    "--save-seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds between two checkpoints.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Plot the accuracy over time (PNG, SVG or PDF)."
)
@click.option(
    "--track",
    multiple=True,
    metavar="KIND:PATH",
    help="Log events: jsonl:FILE, csv:FILE or tensorboard:FOLDER.",
)
@json_option
def command(
    as_json: bool,
    root: str | None,
    threads: int | None,
    device: str,
    strict: bool,
    no_cache: bool,
    out: Path,
    fresh: bool,
    save_seconds: float,
    plot: Path | None,
    track: tuple[str, ...],
    **record: Any,  # the remaining options are the record of a run, name by name
) -> None:
    """Train one learner on a stream and measure its accuracy.

    DATASET is a name (see verse list datasets) or folder:PATH for your own images. The learner sees
    each frame once. The command prints the accuracy at every test (α_t), its mean over all tests
    (μ_all), and the mean ratio to offline training (Ω_all).

    If the run is interrupted, the same command resumes it. If the run is finished, the same command
    shows its result. Use --fresh to start over.
    """
    with result_only(as_json):
        with exit_on_interrupt():
            from verse.cli.live import Live
            from verse.experiments import Run, execute, in_order, prepare
            from verse.experiments.line import encode
            from verse.experiments.store import Store
            from verse.trackers import place_of, tracker

        if plot is not None:
            from verse.reports.curve import check_figure_path

            check_figure_path(plot)
        record["options"] = {name: number(value) for name, value in record["options"].items()}
        record["offline"] = not no_cache if record["offline"] is None else record["offline"]
        run = Run.load(record)
        if out.suffix == ".json":
            raise BadSetting(f"--out {out}: give a folder, not a file")
        store = Store(out)
        saved = store.partial(run.id)
        for spec in track:
            place_of(spec)  # refuses unknown kinds before anything is computed
        trackers: list[Any] = []
        with (
            plain_warnings(),
            Live(f"{run.learner}, {run.order}", result=not as_json) as live,
            contextlib.ExitStack() as closing,
        ):

            def watch(event: object) -> None:
                live(event)
                for each in trackers:
                    each(event)

            result = None if fresh else load_finished(store, run, root, live)
            if result is not None:
                for event in result.events:
                    live(event)
                live.say("already finished; use --fresh to run it again")
            else:
                resume = saved.exists() and not fresh
                ready = prepare(
                    run,
                    root=root,
                    cache=not no_cache,
                    strict=strict,
                    threads=threads,
                    device=device,
                    watch=live,
                )
                live.frames = len(in_order(run, ready)[0])
                live.say(describe_plan(run, ready, resume))
                # only now: an output folder may have the name of a data set that lies elsewhere
                store.partials()
                for spec in track:
                    trackers.append(tracker(spec, resume=resume))
                    closing.callback(trackers[-1].close)
                result = execute(
                    run,
                    prepared=ready,
                    threads=threads,
                    checkpoint_file=saved,
                    resume=resume,
                    save_seconds=save_seconds,
                    watch=watch,
                )
                store.remove(run)  # of other data, or begun anew
                store.add(encode(result))
                saved.unlink(missing_ok=True)
        if plot is not None:
            from verse.reports.curve import plot as draw

            draw(plot, {run.learner: result}, f"{run.dataset}, {run.order}")
    if as_json:
        print_json(result.summary() | {"results": out, "spec": result.run.document()})
    else:
        show_result(result, out)


def load_finished(store: Store, run: Run, root: str | None, live: Live) -> Result | None:
    """The result of this very run on these very data, if it is there already."""
    from verse.experiments import load_data

    if not store.has(run):
        return None
    result = store.load(run.id)
    # with unreadable images its fingerprint is of those that could be read
    if not result.unreadable and result.fingerprint != load_data(run, root=root).fingerprint():
        live.say("the data has changed since this run finished: starting over")
        return None
    return result


def describe_plan(run: Run, ready: Prepared, resume: bool) -> str:
    """What is about to happen, and about how long it takes."""
    from verse.experiments import build_run_learner, in_order
    from verse.experiments.estimate import seconds_to_learn
    from verse.experiments.timing import format_duration

    train, schedule = in_order(run, ready)
    learner = build_run_learner(run, ready, len(train))
    held = "none"
    if learner.memory is not None:
        limit = learner.memory.limit
        size = limit * math.prod(ready.backbone.G.z_shape) * 4
        held = f"{plural(limit, 'sample')} ({run.capacity}, at most {size / 1e6:.3g} MB)"
    if run.fps is None:
        took = f"about {format_duration(seconds_to_learn(run, ready))} to learn"
    else:
        took = f"about {format_duration(len(train) / run.fps)} of video"
    then = ", then the offline upper bound (see its progress bar)" if run.offline else ""
    return (
        f"learner  {run.learner}, {run.order}, random seed {run.seed}, memory {held}\n"
        f"time     {took} {plural(len(train), 'frame')} with {plural(len(schedule), 'test')}{then}"
        + ("\nresuming where it stopped" if resume else "")
    )


def number(text: str) -> Any:
    """A data set's option: a whole number, a number, true, false, or text."""
    words = {"true": True, "false": False}
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return words.get(text.lower(), text)


def show_result(result: Result, results: Path) -> None:
    """The summary for people, below the rows of the tests."""
    if result.offline_alpha is not None:
        click.echo("Offline  " + " ".join(f"{alpha:.4f}" for alpha in result.offline_alpha))
    omega = "" if result.omega_all is None else f"Ω_all {result.omega_all:.4f}   "
    click.echo(
        f"\nμ_all {result.mu_all:.4f}   {omega}final {result.alpha[-1]:.4f}   "
        f"{result.learned:,} steps, {result.steps_per_second:.1f}/s   "
        f"memory {result.capacity:,} samples, {result.memory_bytes / 1e6:.2f} MB"
    )
    if result.run.fps is not None:
        share = result.learned / result.frames
        click.echo(f"at {result.run.fps:g} frames/s the learner saw {share:.1%} of the frames")
    if result.refused:
        click.echo(f"refused {result.refused} times; the first: {result.first_refusal}")
    if result.prequential is not None:
        click.echo(f"prequential (predict, then learn) accuracy {result.prequential:.4f}")
    click.echo(f"saved in {results}; for tables and figures: verse report {results}")
