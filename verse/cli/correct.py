"""Ask a person at the terminal what an image shows, and teach the answer."""

from __future__ import annotations

import sys
from typing import Any

import click


def has_terminal() -> bool:
    """Is standard input a terminal?"""
    return sys.stdin.isatty()


def teach_right_label(classifier: Any, row: dict[str, Any]) -> str | None:
    """Show an answer and ask for the right label; Enter confirms, - teaches nothing."""
    if "error" in row or "spans" in row:
        return None
    answer = row["label"]
    if row["nearest"] is None:
        said = "nothing learned yet"
    elif answer is None:
        said = f"something new (nearest: {row['nearest']})"
    else:
        said = f"{answer}, {row['confidence']:.1%}"
    click.echo(f"{row['image']}: {said}", err=True)
    label = click.prompt(
        "  correct label? (Enter: as predicted; -: skip)",
        default="-" if answer is None else str(answer),
        show_default=False,
        err=True,
    ).strip()
    if label in ("", "-"):
        return None
    # a class that was taught as a number keeps its number
    known = {str(name): name for name in classifier.classes}
    classifier.learn_one(row["image"], known.get(label, label))
    return str(label)
