"""``verse bench``: speed as ratios measured in the same run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import verse
from verse.cli.output import json_option, print_json, print_table, result_only
from verse.types import BadSetting

PARTS = ("step", "frame", "predict", "growth")
SPLITS = {"resnet18": "layer4.1", "efficientnet-lite0": "head"}


@click.command()
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS),
              help="Only this; may be given again. [default: all]")  # fmt: skip
@click.option("--backbone", "names", multiple=True, type=click.Choice([*SPLITS, "light"]),
              help="Only this; may be given again. [default: all]")  # fmt: skip
@click.option("--rounds", default=15, show_default=True, help="Turns of every contestant.")
@click.option("--steps", default=5_000, show_default=True,
              help="Length of the stream that goes on (docs/performance.md: 100000).")  # fmt: skip
@click.option("--threads", default=0, help="Of torch and of G. [default: as torch decides]")
@click.option("--precision", default="auto", show_default=True,
              help="Of F: auto, float32, bfloat16.")  # fmt: skip
@click.option("--rivals/--no-rivals", default=False, show_default=True,
              help="Also Avalanche and River, each in an environment made for it.")  # fmt: skip
@json_option
def command(
    parts: tuple[str, ...],
    names: tuple[str, ...],
    rounds: int,
    steps: int,
    threads: int,
    precision: str,
    rivals: bool,
    as_json: bool,
) -> None:
    """Measure speed as ratios against plain code and the machine.

    A and B take turns within one run, so that what else the machine does meets both. Weights are
    random ones of the right shape: nothing is downloaded (the rivals are, from PyPI, on request).
    """
    for option, value, least in (("--rounds", rounds, 2), ("--steps", steps, 100)):
        if value < least:
            raise BadSetting(f"{option} must be at least {least}, not {value}")
    with result_only(as_json):
        import torch

        if threads:
            torch.set_num_threads(threads)
        results: dict[str, Any] = {"machine": _machine()}
        for key, label, measure in _plan(
            parts or PARTS, names or (*SPLITS, "light"), rounds, steps, precision, rivals
        ):
            click.echo(f"measuring {key} {label}", err=True)
            for field, value in measure().items():
                results.setdefault(key, {}).setdefault(field, {})[label] = value
    if as_json:
        print_json(results)
    else:
        print_table(list(rows(results)))


def _plan(
    parts: tuple[str, ...],
    names: tuple[str, ...],
    rounds: int,
    steps: int,
    precision: str,
    rivals: bool,
) -> Iterator[tuple[str, str, Callable[[], dict[str, Any]]]]:
    """(key in the result, label below it, what measures it), cheap ones first."""
    for name in names:
        setting: dict[str, Any] = {"precision": precision, "rounds": rounds}
        at = SPLITS.get(name)
        if "step" in parts:
            yield "verse_step", name, _bound("step", "measure", name, at, **setting)
        if name == "light":
            continue
        if "frame" in parts:
            yield "frame", name, _bound("frame", "measure", name, at, **setting)
        if "predict" in parts:
            often = {"precision": precision, "rounds": 4 * rounds}
            yield "predict", name, _bound("predict", "measure", name, at, **often)
    if "growth" in parts:
        yield "memory", "light", _bound("growth", "measure", steps)
    if rivals:
        for name in ("light", "resnet18"):
            if name in names:
                each = 50 if name == "light" else 2
                how: dict[str, Any] = {"rounds": rounds, "each": each}
                yield "avalanche", name, _bound("rivals", "measure_avalanche", name, **how)
        if "light" in names:
            yield "river", "light", _bound("rivals", "measure_river", rounds=rounds, each=50)


def _bound(
    module: str, function: str, *args: object, **settings: Any
) -> Callable[[], dict[str, Any]]:
    def measure() -> dict[str, Any]:
        result: dict[str, Any] = getattr(_benchmark(module), function)(*args, **settings)
        return result

    return measure


def _benchmark(module: str) -> Any:
    """A file of ``benchmarks/``: beside the package in a checkout, inside it when installed."""
    package = Path(verse.__file__).parent
    for folder in (package.parent / "benchmarks", package / "benchmarks"):
        if (folder / "textbook.py").is_file():
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            return importlib.import_module(module)
    raise BadSetting("the benchmarks are not installed: run this in a checkout of the project")


def _machine() -> dict[str, Any]:
    import torch

    from verse.cli.info import device

    return {**device(), "torch": torch.__version__, "verse": verse.__version__}


HEADLINES = {
    "verse_step": ("speedup_vs_textbook", "limit_ratio"),
    "frame": ("speedup_vs_textbook", "frames_per_second"),
    "predict": ("p50_ms", "p95_while_learning_over_idle", "publish_ms"),
    "memory": ("slope_bytes_per_step", "last_over_first", "capacity_ratio"),
    "avalanche": ("replay_speedup", "verse_speedup"),
    "river": ("replay_speedup",),
}


def rows(results: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The headline figures for people; everything else is in ``--json``.

    >>> list(rows({"frame": {"frames_per_second": {"resnet18": 3.14159}}}))
    [{'what': 'frame frames_per_second', 'of': 'resnet18', 'value': '3.14'}]
    """
    for key, fields in HEADLINES.items():
        for field in fields:
            for label, value in results.get(key, {}).get(field, {}).items():
                cases = value if isinstance(value, dict) else {"": value}
                for case, number in cases.items():
                    of = f"{label} {case}".strip()
                    yield {"what": f"{key} {field}", "of": of, "value": f"{number:.3g}"}
