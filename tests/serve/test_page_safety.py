"""The page in a real browser under hostile labels, thumbnails and events, and when it undoes."""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from PIL import Image

import verse

if importlib.util.find_spec("playwright") is None:
    pytest.skip("no playwright: pip install playwright", allow_module_level=True)

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.serve.browsing import PATIENT, TRIPOD, Server, add, chromium, watch
from tests.serve.old_folders import teach_anyway

pytestmark = pytest.mark.browser
HOSTILE = [
    "<img src=x onerror=window.hacked=1>",
    '"><script>window.hacked=1</script>',
    "javascript:window.hacked=1",
    "__proto__",
    "constructor",
    "{{7*7}}${7*7}",
    "&lt;b&gt; & \" ' `",
    "x" * 100,
]
OLD = {"caf\udce9": "caf\\udce9", "\u3164": "\\u3164", "a\u2028b": "a\\u2028b"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=chromium(),
            args=[
                "--no-sandbox",
                "--use-fake-ui-for-media-stream",
                "--use-fake-device-for-media-stream",
            ],
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def server(browser: Browser, backbone, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("taught") / "d"
    with verse.open(folder, backbone=backbone, learner="slda") as classifier:
        for t, label in enumerate([*HOSTILE, *OLD]):
            teach_anyway(classifier, np.full((32, 32, 3), 20 * t, np.uint8), label)
    running = Server(folder)
    yield running
    running.stop()


@contextmanager
def opened(browser: Browser, server: Server, prepare: Any = None) -> Iterator[Page]:
    """The page in a tab of its own; nothing may have gone wrong in it, and nothing foreign ran."""
    context = browser.new_context(viewport={"width": 1200, "height": 850})
    context.set_default_timeout(60_000)
    context.add_init_script(PATIENT)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda m: (
            problems.append(m.text)
            if m.type in ("error", "warning") and "Failed to load resource" not in m.text
            else None
        ),
    )
    if prepare is not None:
        prepare(page)
    page.goto(server.url)
    yield page
    assert page.evaluate("window.hacked") is None
    context.close()
    assert problems == []


def test_hostile_labels_are_text(browser: Browser, server: Server) -> None:
    with opened(browser, server) as page:
        expect(page.locator("#link")).to_have_attribute("data-state", "here")
        expect(page.locator("#classes .name")).to_have_text([*HOSTILE, *OLD.values()])
        assert page.locator("#classes img[src=x], #classes script").count() == 0
        for i in range(len(HOSTILE) + len(OLD)):
            page.locator("#classes .more").nth(i).click()
            expect(page.locator("#menu-title")).to_have_text([*HOSTILE, *OLD.values()][i])
            page.click("#class-menu [data-close]")
        page.locator("#classes .more").nth(len(HOSTILE)).click()  # an old one is mended
        page.fill("#rename-to", "café")
        page.press("#rename-to", "Enter")
        expect(page.locator("[data-label='café'] .counts")).to_have_text("1")
    assert "café" in server.taught()


def test_hostile_thumbnails_run_nothing(browser: Browser, server: Server) -> None:
    script = "<script>window.hacked=1;parent.hacked=1</script>"
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=1'>{script}</svg>"
    kinds = [("image/svg+xml", svg), ("text/html", script), ("image/jpeg", "junk")]
    file = io.BytesIO()
    Image.new("RGB", (20, 20)).save(file, "PNG")
    taught = {"image": ("a.png", file.getvalue(), "image/png")}
    import httpx2

    for t in range(3):
        answer = httpx2.post(
            f"{server.url}/v1/learn", files=taught, data={"label": f"thumbnail {t}"}
        )
        assert answer.status_code == 200
    asked: list[str] = []

    def answer_with(route: Any) -> None:
        kind, body = kinds[len(asked) % 3]
        asked.append(route.request.url)
        route.fulfill(status=200, content_type=kind, body=body)

    with opened(browser, server, lambda page: page.route("**/thumbnail", answer_with)) as page:
        expect(page.locator("#link")).to_have_attribute("data-state", "here")
        expect(page.locator("[data-label='thumbnail 0'] .thumbs img")).to_have_count(1)
        while len(asked) < 3:  # or the test's own time is over
            page.wait_for_timeout(50)
        page.locator("[data-label='thumbnail 0'] .more").click()
        expect(page.locator("#menu-title")).to_have_text("thumbnail 0")


@pytest.mark.parametrize(
    "stream",
    [
        "event: status\ndata: 5\n\nevent: status\ndata: null\n\ndata: {\n\n:::\n\n",
        'event: status\ndata: {"samples": 1, "queue": 0, "rates": "<img onerror=hacked=1>"}\n\n',
        'event: learned\ndata: {"label": "<script>window.hacked=1</script>", "seq": "x"}\n\n' * 50,
        "event: " + "x" * 3_000_000,
        "\0\ufffd\r\r\n\n\n" * 1000,
    ],
    ids=["no status", "half a status", "hostile label", "endless event", "nonsense"],
)
def test_a_hostile_event_stream_changes_nothing(
    browser: Browser, server: Server, stream: str
) -> None:
    def answer(route: Any) -> None:
        route.fulfill(status=200, content_type="text/event-stream", body=stream)

    with opened(browser, server, lambda page: page.route("**/v1/events", answer)) as page:
        expect(page.locator("#classes .name").first).to_have_text(HOSTILE[0])
        page.wait_for_timeout(1500)
        expect(page.locator("#classes .name").first).to_have_text(HOSTILE[0])
        expect(page.locator("#facts")).to_contain_text("slda")


def test_an_answer_that_is_not_of_verse_is_not_drawn(browser: Browser, server: Server) -> None:
    def answer(route: Any) -> None:
        route.fulfill(json={"samples": "<b>", "login": "please"})

    with opened(browser, server, lambda page: page.route("**/v1/status", answer)) as page:
        expect(page.locator("#gone")).to_be_visible()
        page.unroute("**/v1/status")
        page.click("#again")
        expect(page.locator("#link")).to_have_attribute("data-state", "here")


def test_a_hold_is_undone_by_one_request_and_shown_at_once(
    browser: Browser, server: Server
) -> None:
    asked: list[Any] = []

    def undo(route: Any) -> None:
        asked.append(route.request.post_data_json)
        expect_busy(route)

    def expect_busy(route: Any) -> None:
        button = page.locator("#undo")
        expect(button).to_have_text(re.compile(r"Undoing \d+…"))
        expect(button).to_have_attribute("aria-busy", "true")
        expect(button).to_be_disabled()
        route.continue_()

    with opened(browser, server, lambda page: page.add_init_script(TRIPOD)) as page:
        watch(page)
        add(page, "wall")
        before = server.get("status")["samples"]
        page.keyboard.press("Tab")
        hold = page.locator("[data-label=wall] .hold")
        hold.focus()
        page.keyboard.down("Enter")
        expect(page.locator("#badge")).to_have_text(re.compile(r"Teaching wall: [1-9]"))
        page.evaluate("window.changed = true")
        expect(page.locator("#badge")).to_have_text(re.compile(r"Teaching wall: ([2-9]|\d\d)"))
        page.keyboard.up("Enter")
        page.route("**/v1/undo", undo)
        page.locator("#toasts button", has_text="Undo all").click()
        expect(page.locator("#toasts")).to_contain_text("samples undone")
        expect(page.locator("#undo")).to_have_attribute("aria-busy", "false")
        assert len(asked) == 1 and len(asked[0]["seqs"]) >= 2
        assert server.get("status")["samples"] == before
