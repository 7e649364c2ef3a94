"""How commands print: the result on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import numbers
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def json_option(command: Decorated) -> Decorated:
    """Add ``--json`` to a command; it arrives as the argument ``as_json``."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on standard output."
    )(command)


@contextlib.contextmanager
def result_only(as_json: bool) -> Iterator[None]:
    """Send what libraries print to standard error, so that ``--json`` prints JSON alone."""
    if as_json:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    else:
        yield


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: object) -> Any:
    """The value as JSON knows it: numpy's numbers as numbers, what is not finite as null.

    >>> plain({"alpha": (0.5, float("nan")), "path": Path("a")})
    {'alpha': [0.5, None], 'path': 'a'}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(plain(item) for item in value)
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form; convert it first")


def format_error(name: str, error: object) -> str:
    """An error about a file, with the file's name once.

    >>> format_error("a.jpg", "a.jpg is not an image"), format_error("a.jpg", "it is empty")
    ('a.jpg is not an image', 'a.jpg: it is empty')
    """
    text = str(error)
    return text if name in text else f"{name}: {text}"


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> plural(1, "run"), plural(1200, "run"), plural(2, "class", "classes")
    ('1 run', '1,200 runs', '2 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def print_table(rows: Sequence[Mapping[str, object]], *, dense: bool = False) -> None:
    """Print rows of equal keys as an aligned table on standard output.

    ``dense``: many narrow columns, whose headings take a line for each word.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=dense)
    for column in rows[0] if rows else ():
        heading = column.replace(" ", "\n") if dense else column
        table.add_column(heading, overflow="fold", vertical="bottom" if dense else "top")
    for row in rows:
        table.add_row(*(str(cell) for cell in row.values()))
    console(stderr=False).print(table)


def console(*, stderr: bool = True) -> Console:
    """A terminal for people; on standard error unless asked otherwise."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line for people, without file names and source."""
    shown = console()

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: shown.print(
            f"Warning: {message}", style="yellow", markup=False
        )
        yield
