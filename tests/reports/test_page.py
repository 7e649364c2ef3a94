"""The page in a real browser: it fits a phone, shows every figure and asks for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.browsing import chromium
from verse.experiments.store import Store
from verse.reports import report as reports
from verse.reports.cells import SortedResults

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    few = [r for r in store.results() if r.run.learner in ("verse", "ncm", "la-maml")]
    reports.make(SortedResults(few), out)
    return out / "index.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    path = chromium()
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_is_whole(browser: object, report: Path, width: int, scheme: str) -> None:
    context = browser.new_context(  # type: ignore[attr-defined]
        viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    opened, asked, said = context.new_page(), [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: said.append(message.text))
    opened.goto(report.as_uri())
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shown = opened.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)")
    assert len(shown) > 3 and all(shown)
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]
    assert said == []
    ink, paper = (
        sum(int(part) for part in colour.strip("rgb()").split(",")[:3])
        for colour in opened.evaluate(
            "(s => [s.color, s.backgroundColor])(getComputedStyle(document.body))"
        )
    )
    assert (ink > paper) == (scheme == "dark")
    context.close()
