"""How figures look: a colour and marker per learner, thin axes, no dates in files."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from verse.extras import OptionalImport
from verse.reports.cells import is_verse
from verse.reports.statistics import Estimate

with OptionalImport():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What makes an SVG file half as large: a hundredth of a point is enough, nothing is turned by
# nothing, lines need no indent, and the font is named once.
_SHORTER = tuple(
    (re.compile(pattern), short)
    for pattern, short in (
        (r"(\d\.\d\d)\d+", r"\1"),
        (r' transform="rotate\(-0 [^"]*"', ""),
        (r"\n\s+", "\n"),
        (r" ?\n(?=L )", " "),
        (r'font-family: [^;"]+;? ?', ""),
        (r"<svg ", "<svg font-family=\"'DejaVu Sans', Verdana, sans-serif\" "),
    )
)


class Look(NamedTuple):
    """The look of a line: markers distinguish lines of similar colours."""

    colour: str
    marker: str


# Mostly the colours of Okabe and Ito, which people with colour blindness can tell apart (all pairs
# differ by at least 16 in CIELAB with any of its kinds): VERSE and its variants are warm.
_VERSE = (Look("#d55e00", "o"), Look("#e69f00", "s"), Look("#cc79a7", "D"), Look("#882255", "P"))
_RIVALS = (
    Look("#0072b2", "^"),
    Look("#009e73", "v"),
    Look("#56b4e9", "<"),
    Look("#332288", ">"),
    Look("#7a5c2e", "X"),
    Look("#000000", "d"),
)
# Those that are often among the best keep their look from one data set to the next.
_OWN = {
    "slda": 0,
    "slda-quarters": 1,
    "ncm": 2,
    "exstream": 3,
    "tinyer": 4,
    "cls-er": 5,
    "tinyer-2step": 5,
    "icarl": 4,
}
DPI = 140
OTHER = "#c9cdd1"
BOUND = "#3b3f44"
PLAIN = "#7fa6c9"
VARIANT = "#e69f00"
ORDERS = {
    "iid": Look("#0072b2", "o"),
    "class-iid": Look("#009e73", "s"),
    "instance": Look("#e69f00", "^"),
    "class-instance": Look("#d55e00", "D"),
}
LEVELS = ("#0072b2", "#56b4e9", "#e69f00", "#d55e00")
VERDICTS = {"first": "#0072b2", "tied": "#8a9299", "undecided": "#c9cdd1", "loss": "#d55e00"}

RC: dict[Any, Any] = {
    "font.family": "sans-serif",  # DejaVu Sans comes with matplotlib and is the first of these
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8ea",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "svg.hashsalt": "verse",
    "svg.fonttype": "none",  # text stays text: small files, words can be searched
}


def looks(learners: Sequence[str]) -> dict[str, Look]:
    """Learner → look, in the order given; rivals beyond the colours there are have none."""
    verses = sorted(filter(is_verse, learners), key=len)
    rivals = [name for name in learners if not is_verse(name)]
    found = {name: _VERSE[i % len(_VERSE)] for i, name in enumerate(verses)}
    free = list(range(len(_RIVALS)))
    for name in sorted(rivals[: len(free)], key=lambda name: name not in _OWN):
        own = _OWN.get(name)
        place = own if own in free else free[0]
        free.remove(place)
        found[name] = _RIVALS[place]
    return {name: found[name] for name in (*verses, *rivals) if name in found}


def shade(learner: str) -> str:
    """Of a bar or a dot among many."""
    return _VERSE[0].colour if learner == "verse" else VARIANT if is_verse(learner) else PLAIN


def panels(
    count: int, height: float, *, share: bool = True, width: float = 3.3, rows: int = 1
) -> tuple[Figure, list[Axes]]:
    """A row of panels, or several; ``height`` is one row's."""
    columns = -(-count // rows)
    size = (max(5.2, width * columns), height * -(-count // columns))
    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    grid = figure.subplots(-(-count // columns), columns, sharey=share, squeeze=False)
    axes = list(grid.ravel())
    for axis in axes[count:]:
        figure.delaxes(axis)
    for axis in axes[:count]:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes[:count]


def reach(estimates: Iterable[Estimate]) -> npt.NDArray[np.float64]:
    """How far the intervals go below and above the means [2, n]."""
    return np.array([[abs(e.mean - e.low), abs(e.high - e.mean)] for e in estimates]).T


def draw_estimates(
    axis: Axes, points: Mapping[float, Estimate], *, flat: bool = False, **look: Any
) -> None:
    """Place → mean with its interval; ``flat``: places are rows, intervals lie along the x-axis."""
    places, means, ends = list(points), [e.mean for e in points.values()], reach(points.values())
    if flat:
        axis.errorbar(means, places, xerr=ends, **look)
    else:
        axis.errorbar(places, means, yerr=ends, **look)


def add_common_legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend below all panels, each name once."""
    handles = {
        name: handle
        for axis in axes
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)


def slim(text: str) -> str:
    """An SVG document that looks the same and is smaller."""
    for pattern, short in _SHORTER:
        text = pattern.sub(short, text)
    return text


def save(figure: Figure, folder: Path, name: str) -> str:
    """PNG and SVG; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    (folder / f"{name}.svg").write_text(slim(drawn.getvalue().decode()), encoding="utf-8")
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    with Image.open(drawn) as image:  # few colours are plenty for lines and make files small
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(folder / f"{name}.png", optimize=True)
    return name


def use_style() -> AbstractContextManager[None]:
    """The settings as a context: ``with drawn(): …``."""
    return matplotlib.rc_context(RC)
