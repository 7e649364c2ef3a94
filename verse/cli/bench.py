"""``verse bench``: frames a second and megabytes, then speed as ratios measured in the same run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import click

import verse
from verse.cli.output import json_option, print_json, print_table, result_only
from verse.configuration import DEVICES
from verse.types import BadSetting

PARTS = ("default", "step", "frame", "predict", "growth")
CASES = ("default", "efficientnet-lite0", "resnet18", "light")


@click.command()
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(PARTS),
    help="Part to measure; can be repeated. [default: all]",
)
@click.option(
    "--backbone",
    "names",
    multiple=True,
    type=click.Choice(CASES),
    help="Network to measure: default (EfficientNet-Lite0 split at grid), "
    "efficientnet-lite0 (split at head), resnet18 (split as in the paper) or light "
    "(features without a network); can be repeated. [default: all]",
)
@click.option("--rounds", default=15, show_default=True, help="Number of repetitions.")
@click.option(
    "--steps",
    default=5_000,
    show_default=True,
    help="Length of the stream that checks for growing memory. docs/performance.md used 1000000.",
)
@click.option("--threads", default=0, help="Number of threads. [default: as PyTorch decides]")
@click.option(
    "--precision",
    default="auto",
    show_default=True,
    help="Precision of the learning part: auto, float32 or bfloat16.",
)
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    default="cpu",
    show_default=True,
    help="A device other than cpu is compared with the CPU.",
)
@click.option(
    "--rivals/--no-rivals",
    default=False,
    show_default=True,
    help="Also measure Avalanche and river, each in its own new environment.",
)
@json_option
def command(
    parts: tuple[str, ...],
    names: tuple[str, ...],
    rounds: int,
    steps: int,
    threads: int,
    precision: str,
    device: str,
    rivals: bool,
    as_json: bool,
) -> None:
    """Measure the speed and the memory use on this machine.

    The compared programs take turns, so that other work on the machine slows all of them. The
    networks have random weights, so nothing is downloaded, except the packages for --rivals.
    """
    for option, value, least in (("--rounds", rounds, 2), ("--steps", steps, 100)):
        if value < least:
            raise BadSetting(f"{option} must be at least {least}, not {value}")
    with result_only(as_json):
        import torch

        from verse.backbones.device import resolve_device

        there = resolve_device(device)  # refuses what is not there
        if threads:
            torch.set_num_threads(threads)
        results: dict[str, Any] = {"machine": _machine()}
        plan = _plan(parts or PARTS, names or CASES, rounds, steps, precision, rivals)
        if there != "cpu":
            plan = _device_plan(names or CASES, there, rounds)
        for key, label, measure in plan:
            click.echo(f"measuring {key} {label}".rstrip(), err=True)
            if not label:
                results[key] = measure()
                continue
            for field, value in measure().items():
                results.setdefault(key, {}).setdefault(field, {})[label] = value
    if as_json:
        print_json(results)
        return
    if "default" in results:
        print_table(list(overview(results["default"])))
    print_table(list(rows(results)))


def _plan(
    parts: tuple[str, ...],
    names: tuple[str, ...],
    rounds: int,
    steps: int,
    precision: str,
    rivals: bool,
) -> Iterator[tuple[str, str, Callable[[], dict[str, Any]]]]:
    """(key in the result, label below it, what measures it)."""
    if "default" in parts and "default" in names:
        yield "default", "", _bind("overview", "measure", rounds)
    for name in names:
        setting: dict[str, Any] = {"precision": precision, "rounds": rounds}
        if "step" in parts:
            yield "verse_step", name, _bind("step", "measure", name, **setting)
        if name == "light":
            continue
        if "frame" in parts:
            yield "frame", name, _bind("frame", "measure", name, **setting)
        if "predict" in parts:
            often = {"precision": precision, "rounds": 4 * rounds}
            yield "predict", name, _bind("predict", "measure", name, **often)
    if "growth" in parts:
        yield "memory", "light", _bind("growth", "measure", steps)
    if rivals:
        for name in ("default", "light", "resnet18"):
            if name in names:
                how: dict[str, Any] = {"rounds": rounds, "each": 2 if name == "resnet18" else 50}
                yield "avalanche", name, _bind("rivals", "measure_avalanche", name, **how)
        if "light" in names:
            yield "river", "light", _bind("rivals", "measure_river", rounds=rounds, each=50)


def _device_plan(
    names: tuple[str, ...], device: str, rounds: int
) -> Iterator[tuple[str, str, Callable[[], dict[str, Any]]]]:
    for name in names:
        if name != "light":
            yield "device", name, _bind("device", "measure", name, device=device, rounds=rounds)


def _bind(
    module: str, function: str, *args: object, **settings: Any
) -> Callable[[], dict[str, Any]]:
    def measure() -> dict[str, Any]:
        benchmark = importlib.import_module(f"verse.benchmarks.{module}")
        result: dict[str, Any] = getattr(benchmark, function)(*args, **settings)
        return result

    return measure


def _machine() -> dict[str, Any]:
    import torch

    from verse.cli.info import device

    return {**device(), "torch": torch.__version__, "verse": verse.__version__}


def overview(default: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Every learner on the default split, the default first.

    >>> speed = {"frames_per_second": 80.0, "step_ms": 0.512, "megabytes": 3.14}
    >>> list(overview({"learner": "verse", "learners": {"verse": speed}}))
    [{'learner': 'verse (default)', 'frames/s': '80', 'step, ms': '0.51', 'MB': '3.1'}]
    """
    first = default["learner"]
    for name, measured in sorted(default["learners"].items(), key=lambda item: item[0] != first):
        yield {
            "learner": f"{name} (default)" if name == first else name,
            "frames/s": f"{measured['frames_per_second']:.0f}",
            "step, ms": f"{measured['step_ms']:.2f}",
            "MB": f"{measured['megabytes']:.1f}",
        }


HEADLINES = {
    "default": (
        "frames_per_second",
        "learn_predict_per_second",
        "step_ms",
        "step_speedup_vs_head",
        "sample_bytes",
    ),
    "verse_step": ("speedup_vs_textbook", "limit_ratio"),
    "frame": ("speedup_vs_textbook", "frames_per_second", "learn_predict_per_second"),
    "predict": ("p50_ms", "p95_while_learning_over_idle", "publish_ms"),
    "memory": (
        "slope_bytes_per_step",
        "last_over_first",
        "capacity_ratio",
        "ten_times_the_classes",
    ),
    "avalanche": ("replay_speedup", "verse_speedup"),
    "river": ("replay_speedup",),
}


def rows(results: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The headline figures for people; everything else is in ``--json``.

    >>> list(rows({"frame": {"frames_per_second": {"resnet18": 3.14159}}}))
    [{'what': 'frame frames_per_second', 'of': 'resnet18', 'value': '3.142'}]
    """
    for key, fields in HEADLINES.items():
        for field in fields:
            found = results.get(key, {}).get(field, {})
            for label, value in (found if isinstance(found, dict) else {"": found}).items():
                cases = value if isinstance(value, dict) else {"": value}
                for case, number in cases.items():
                    of = f"{label} {case}".strip()
                    yield {"what": f"{key} {field}", "of": of, "value": f"{number:.4g}"}
