"""Parts of pages that programs write: tables, between markers that hold their place."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def filled(page: str, name: str, text: str) -> str:
    """The page with this text between its markers."""
    before, _, after = _parts(page, name)
    return f"{before}{text}{after}"


def content(page: str, name: str) -> str:
    """The text between its markers.

    >>> content(filled("<!-- a: begin -->\\n<!-- a: end -->", "a", "text\\n"), "a")
    'text\\n'
    """
    return _parts(page, name)[1]


def _parts(page: str, name: str) -> tuple[str, str, str]:
    """What is before the text, the text, and what is behind it, with the markers."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    text, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page {page.partition(chr(10))[0]!r} has no place for {begin} {end}")
    return f"{before}{begin}", text, f"{end}{after}"
