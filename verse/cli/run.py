"""``verse run``: one learner over one stream."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click

from verse.cli.output import json_option, print_json, print_table, result_only
from verse.types import BadSetting


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
@click.option("--learner", default="verse", show_default=True, help="See verse list learners.")
@click.option(
    "--order",
    default="class-instance",
    show_default=True,
    help="iid, class-iid, instance or class-instance.",
)
@click.option("--seed", default=0, show_default=True, help="Of the ordering and the learner.")
@click.option("--set", "settings", multiple=True, callback=pairs, metavar="NAME=VALUE",
              help="A setting of the learner; may be given again.")  # fmt: skip
@click.option("--capacity", default="4%", show_default=True,
              help="Of the memory: 200 samples, 4% of the stream, 20/class, 5MB.")  # fmt: skip
@click.option("--memory", default="",
              help="The memory's rule. [default: class-balanced for iid and class-iid, "
              "reservoir for instance and class-instance]")  # fmt: skip
@click.option("--backbone", default="efficientnet-lite0", show_default=True,
              help="See verse list backbones.")  # fmt: skip
@click.option("--at", help="The first plastic layer. [default: the backbone's]")
@click.option("--weights", help="A file of pretrained weights. [default: the published ones]")
@click.option(
    "--precision", default="float32", show_default=True, help="Of F: auto, float32, bfloat16."
)
@click.option("--batchnorm", default="frozen", show_default=True, help="In F: frozen or train.")
@click.option("--features", default="float32", show_default=True,
              help="How features are kept: float32 or float16.")  # fmt: skip
@click.option("--root", help="The folder that holds the data set.")
@click.option("--data", "options", multiple=True, callback=pairs, metavar="NAME=VALUE",
              help="An option of the data set; may be given again.")  # fmt: skip
@click.option("--holdout", help="The test rule: last:3, videos:NAME, arcs:6:3,6, fraction:0.2 …")
@click.option("--validation", metavar="RULE",
              help="Test on videos that this rule takes out of training instead.")  # fmt: skip
@click.option("--thin", default=1, show_default=True, help="Use every n-th frame of each video.")
@click.option("--every", default=1, show_default=True, metavar="S",
              help="Class orderings: test after every S classes.")  # fmt: skip
@click.option("--steps", default=10, show_default=True, help="Other orderings: so many tests.")
@click.option("--offline/--no-offline", default=None,
              help="Train Offline, which Ω divides by. [default: unless --no-cache]")  # fmt: skip
@click.option("--prequential", is_flag=True, help="Also ask about each frame before learning it.")
@click.option("--fps", type=float, help="Real time: frames pass while the learner is busy.")
@click.option("--queue", default=0, show_default=True, help="With --fps: frames that may wait.")
@click.option(
    "--step-seconds", type=float, help="With --fps: what a step costs. [default: measure]"
)
@click.option("--threads", type=click.IntRange(1), help="Threads of G and of learning.")
@click.option("--strict", is_flag=True, help="Refuse unreadable images instead of skipping them.")
@click.option("--no-cache", is_flag=True, help="Keep no features on disk; compute as they come.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="A folder for the result, or a .json file.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on where an interrupted run stopped.")
@click.option("--save-seconds", default=30.0, show_default=True,
              help="How often to save what a later --resume needs.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path), help="Write α_t as PNG, SVG or PDF.")
@click.option("--track", multiple=True, metavar="KIND:PATH",
              help="Write events down: jsonl:FILE, csv:FILE, tensorboard:FOLDER.")  # fmt: skip
@json_option
def command(
    as_json: bool,
    root: str | None,
    threads: int | None,
    strict: bool,
    no_cache: bool,
    out: Path,
    resume: bool,
    save_seconds: float,
    plot: Path | None,
    track: tuple[str, ...],
    **record: Any,  # the remaining options are the record of a run, name by name
) -> None:
    """Stream a data set through one learner, once, and measure it.

    DATASET is a name (see verse list datasets) or folder:PATH for your own images. Prints the
    accuracy at every test event (α_t), its mean μ_all, and Ω_all, the mean ratio to Offline.
    Killed or interrupted, the same command with --resume goes on as if nothing had happened.
    """
    with result_only(as_json):
        from verse.cli.live import Live, plain_warnings
        from verse.experiments import Run, execute, in_order, prepare
        from verse.trackers import place_of, tracker

        if plot is not None:
            from verse.reports.curve import check

            check(plot)
        record["options"] = {name: number(value) for name, value in record["options"].items()}
        record["offline"] = not no_cache if record["offline"] is None else record["offline"]
        run = Run.load(record)
        file = out if out.suffix == ".json" else out / f"{run.name}.json"
        saved = file.with_suffix(".checkpoint")
        for spec in track:
            place_of(spec)  # refuses unknown kinds before anything is computed
        trackers: list[Any] = []
        with (
            plain_warnings(),
            Live(f"{run.learner}, {run.order}") as live,
            contextlib.ExitStack() as closing,
        ):

            def watch(event: object) -> None:
                live(event)
                for each in trackers:
                    each(event)

            result = finished(file, run.id) if resume else None
            if result is None:
                for spec in track:
                    trackers.append(tracker(spec, resume=resume and saved.exists()))
                    closing.callback(trackers[-1].close)
                saved.parent.mkdir(parents=True, exist_ok=True)
                ready = prepare(
                    run, root=root, cache=not no_cache, strict=strict, threads=threads, watch=live
                )
                live.frames = len(in_order(run, ready)[0])
                result = execute(
                    run,
                    prepared=ready,
                    threads=threads,
                    checkpoint_file=saved,
                    resume=resume,
                    save_seconds=save_seconds,
                    watch=watch,
                )
                result.save(file)
                saved.unlink(missing_ok=True)
        if plot is not None:
            from verse.reports.curve import plot as draw

            draw(plot, {run.learner: result}, f"{run.dataset}, {run.order}")
    if as_json:
        print_json(result.summary() | {"file": file, "spec": result.run.document()})
    else:
        show(result, file)


def finished(file: Path, identity: str) -> Any:
    """The result of this very run, if it is there already."""
    from verse.experiments import Result

    if not file.exists():
        return None
    result = Result.load(file)
    return result if result.run.id == identity else None


def number(text: str) -> Any:
    """A data set's option: a whole number, a number, true, false, or text."""
    words = {"true": True, "false": False}
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return words.get(text.lower(), text)


def show(result: Any, file: Path) -> None:
    """The curve and the summary for people."""
    bounds = result.offline_alpha or [None] * len(result.events)
    rows = [
        {
            "event": number,
            "frames": event.after,
            "classes": len(event.classes),
            "α_t": f"{event.accuracy:.4f}",
        }
        | ({} if bound is None else {"Offline": f"{bound:.4f}"})
        for number, (event, bound) in enumerate(zip(result.events, bounds, strict=True), 1)
    ]
    print_table(rows)
    omega = "" if result.omega_all is None else f"Ω_all {result.omega_all:.4f}   "
    click.echo(
        f"\nμ_all {result.mu_all:.4f}   {omega}final {result.alpha[-1]:.4f}   "
        f"{result.learned:,} steps, {result.steps_per_second:.1f}/s   "
        f"memory {result.capacity:,} samples, {result.memory_bytes / 1e6:.1f} MB"
    )
    if result.run.fps is not None:
        share = result.learned / result.frames
        click.echo(f"at {result.run.fps:g} frames/s: {share:.1%} of the frames were learned")
    if result.refused:
        click.echo(f"refused {result.refused} times; the first: {result.first_refusal}")
    if result.prequential is not None:
        click.echo(f"predict-then-learn accuracy {result.prequential:.4f}")
    click.echo(f"saved as {file}")
