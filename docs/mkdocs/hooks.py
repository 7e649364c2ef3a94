"""Fills the navigation: ``folder/*.md`` becomes the pages of that folder that are not named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Called by mkdocs once it has read mkdocs.yml."""
    docs = Path(config.docs_dir)
    named = {item for item in leaves(config.nav) if "*" not in item}
    tabs = [filled(item, docs, named) for item in config.nav]
    config.nav = [tab for tab in tabs if any(leaves(tab))]
    return config


def leaves(nav: Any) -> Iterator[str]:
    """Every page and pattern in the navigation."""
    if isinstance(nav, str):
        yield nav
    for inner in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from leaves(inner)


def filled(item: Any, docs: Path, named: set[str]) -> Any:
    """The same part of the navigation without patterns; a folder's index comes first."""
    if isinstance(item, dict):
        return {title: filled(inner, docs, named) for title, inner in item.items()}
    if not isinstance(item, list):
        return item
    pages: list[Any] = []
    for inner in item:
        if isinstance(inner, str) and "*" in inner:
            found = {path.relative_to(docs).as_posix() for path in docs.glob(inner)} - named
            pages += sorted(found, key=lambda page: (not page.endswith("index.md"), page))
        else:
            pages.append(filled(inner, docs, named))
    return pages
