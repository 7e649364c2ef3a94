"""The page in a real browser, with a fake camera, on a real server."""

from __future__ import annotations

import importlib.util
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from tests.serve import video

if importlib.util.find_spec("playwright") is None:
    pytest.skip("no playwright: pip install playwright", allow_module_level=True)

from playwright.sync_api import Browser, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.serve.browsing import (
    PATIENT,
    TRIPOD,
    Server,
    add,
    answers,
    chromium,
    contrast,
    drop,
    hold,
    until,
    watch,
)
from verse.serve.client import Client

PAGE = Path(__file__).parents[2] / "verse" / "serve" / "page"
CAR, DOG, UNSEEN_CAR = 1, 2, 3  # scenes of the film
TAUGHT, UNSEEN = range(7), range(7, 10)  # objects of a class
ENOUGH = 16  # samples of each class


@pytest.fixture(scope="module")
def eth80(real_data: Callable[[str], Path]) -> Path:
    chromium()
    return real_data("eth80")


def views(eth80: Path, name: str, objects: range, every: int) -> list[Path]:
    folders = sorted((eth80 / name).iterdir())
    return [view for i in objects for view in sorted(folders[i].iterdir())[::every]]


@pytest.fixture(scope="module")
def film(eth80: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cars and dogs to teach, and cars that are not taught."""
    path = tmp_path_factory.mktemp("film") / "camera.y4m"
    scenes = [
        video.Scene(views(eth80, "car", TAUGHT, 11), 2),
        video.Scene(views(eth80, "dog", TAUGHT, 11), 2),
        video.Scene(views(eth80, "car", UNSEEN, 8), 3),
    ]
    video.write(path, scenes)
    return path


@pytest.fixture(scope="module")
def browser(film: Path) -> Iterator[Browser]:
    with sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=chromium(),
            args=[
                "--no-sandbox",
                "--use-fake-ui-for-media-stream",
                "--use-fake-device-for-media-stream",
                f"--use-file-for-fake-video-capture={film}",
            ],
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("taught"))
    yield running
    running.stop()


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with opened_page(browser, server) as opened:
        expect(opened.locator("#link")).to_have_attribute("data-state", "here")
        yield opened


@contextmanager
def opened_page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page in a tab of its own; at the end nothing may have gone wrong in it."""
    context = browser.new_context(viewport={"width": 1200, "height": 850})
    context.set_default_timeout(60_000)
    context.add_init_script(PATIENT)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on(
        "console",
        # a refused connection is what some tests are about; a broken policy never is
        lambda m: (
            problems.append(m.text)
            if m.type in ("error", "warning") and "Failed to load resource" not in m.text
            else None
        ),
    )
    opened.goto(server.url)
    yield opened
    context.close()
    assert problems == []


@pytest.mark.browser
@pytest.mark.slow
def test_two_classes_taught_by_holding_are_recognised_on_objects_never_seen(
    page: Page, server: Server, eth80: Path
) -> None:
    watch(page)
    add(page, "car")
    add(page, "dog")

    taught: dict[str, int] = {}
    for _ in range(16):  # once is enough, unless the machine is very busy
        until(page, CAR)
        hold(page, "car")
        expect(page.locator("#badge")).to_contain_text("Teaching car")
        until(page, 0)
        page.mouse.up()
        until(page, DOG)
        page.keyboard.down("2")  # focus is on a button, not in a field
        until(page, 0)
        # a message of the lap before says nothing about the frame that is still under way
        page.locator("#toasts").evaluate("messages => messages.replaceChildren()")
        page.keyboard.up("2")
        expect(page.locator("#toasts")).to_contain_text("of dog taught")
        taught = server.taught()
        if min(taught.values()) >= ENOUGH:
            break
    assert taught.keys() == {"car", "dog"}
    assert min(taught.values()) >= ENOUGH

    # How many frames are taught, and in how many holds, depends on the machine: so nothing here is
    # near what benchmarks/holds.py finds for any of them (all nearest to their class, 78 % known).
    novelty = {}
    with Client(server.url) as client:
        for name in ("car", "dog", "pear"):  # pears were never taught
            seen = [client.predict(view) for view in views(eth80, name, UNSEEN, 8)]
            novelty[name] = median(answer["novelty"] for answer in seen)
            if name in taught:
                assert mean(answer["nearest"] == name for answer in seen) >= 0.9, (name, seen)
                assert mean(answer["label"] == name for answer in seen) >= 0.5, (name, seen)
    assert novelty["pear"] > max(novelty["car"], novelty["dog"])

    seen = []
    while len(seen) < 6:
        seen += answers(page, UNSEEN_CAR)
    assert any(answer["label"] == "car" for answer in seen), seen
    expect(page.locator("#seen")).to_have_text("car")

    # what the page shows is what the server has
    for label, n in taught.items():
        row = page.locator(f"[data-label={label}]")
        expect(row.locator(".counts")).to_have_text(str(n))
        expect(row.locator(".thumbs img")).to_have_count(4)
        assert row.locator(".thumbs img").first.evaluate("image => image.decode().then(() => 1)")
    remembered = sum(known["remembered"] for known in server.get("classes"))
    expect(page.locator(".tray i")).to_have_count(remembered)
    expect(page.locator("#accuracy path.line")).to_have_count(1)
    expect(page.locator("#say")).to_contain_text("I see")

    page.keyboard.press("Control+z")
    expect(page.locator("#toasts")).to_contain_text("1 sample undone")
    assert sum(server.taught().values()) == sum(taught.values()) - 1


@pytest.mark.browser
@pytest.mark.slow
def test_of_a_still_scene_one_frame_a_second_is_learned(page: Page, server: Server) -> None:
    page.add_init_script(TRIPOD)
    page.reload()
    watch(page)
    add(page, "wall")
    page.keyboard.press("Tab")  # on to its menu: a number key holds the class from anywhere
    number = page.locator("[data-label=wall] kbd").inner_text()
    began = time.monotonic()
    page.keyboard.down(number)
    badge = page.locator("#badge")
    expect(badge).to_have_text(re.compile(r"Teaching wall: [1-9]\d* · \d+ skipped"))
    expect(badge).to_have_text(re.compile(r"Teaching wall: ([3-9]|\d\d+) · \d+ skipped"))
    assert time.monotonic() - began >= 2
    page.keyboard.up(number)
    expect(page.locator("#toasts")).to_contain_text("frames of wall taught")
    assert 3 <= server.taught()["wall"] <= 2 + time.monotonic() - began


@pytest.mark.browser
@pytest.mark.slow
def test_a_server_that_is_killed_comes_back_and_learns_nothing_twice(
    page: Page, server: Server
) -> None:
    watch(page)
    add(page, "thing")
    before = server.get("status")["samples"]

    # the answer is lost on the way: the server has learned, the page does not know
    keys: list[str] = []

    def lose(route: Any) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            route.fetch()
            route.abort()
        elif len(keys) == 2:
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"detail": "full"})
        else:
            route.continue_()

    page.route("**/v1/learn", lose)
    page.press("[data-label=thing] .hold", "Enter")
    expect(page.locator("#toasts")).to_contain_text("1 frame of thing taught")
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert server.get("status")["samples"] == before + 1
    page.unroute("**/v1/learn")

    server.stop(signal.SIGKILL)
    expect(page.locator("#gone")).to_be_visible()
    page.press("[data-label=thing] .hold", "Enter")  # waits until the server is there
    server.start()
    with suppress(PlaywrightError):  # it may come back by itself meanwhile
        page.click("#again", timeout=1000)
    expect(page.locator("#link")).to_have_attribute("data-state", "here")
    expect(page.locator("[data-label=thing] .counts")).to_have_text("2")
    assert server.taught()["thing"] == 2


@pytest.mark.browser
@pytest.mark.slow
def test_images_are_uploaded_renamed_merged_and_forgotten(
    page: Page, server: Server, real_data: Callable[[str], Path]
) -> None:
    pears = sorted((real_data("eth80") / "pear" / "pear01").iterdir())
    page.set_input_files("#images", [str(view) for view in pears[:3]])
    page.fill("#group-0", "<b>pear<b>")
    page.press("#group-0", "Enter")
    expect(page.locator("#toasts")).to_contain_text("3 images taught")
    row = page.locator(".classes li", has_text="<b>pear<b>")
    expect(row.locator(".counts")).to_have_text("3")

    row.locator(".more").click()
    page.fill("#rename-to", "pear")
    page.press("#rename-to", "Enter")
    expect(page.locator("[data-label=pear] .counts")).to_have_text("3")

    page.set_input_files("#images", str(pears[5]))
    page.click("#import-ask")
    expect(page.locator("#stage")).to_have_attribute("data-state", "photo")
    expect(page.locator("#seen")).not_to_be_empty()

    page.set_input_files("#folder", str(pears[0].parent))
    expect(page.locator("#group-0")).to_have_value("pear01")
    page.click("#import [data-close]")
    drop(page, pears[0].parent, page.locator("body"))
    expect(page.locator("#group-0")).to_have_value("pear01")
    expect(page.locator("#import-title")).to_contain_text("41 images")
    page.click("#import [data-close]")
    drop(page, pears[7], page.locator("[data-label=pear] .hold"))  # on a class: no question
    expect(page.locator("[data-label=pear] .counts")).to_have_text("4")

    page.set_input_files("#images", str(pears[9]))
    page.fill("#group-0", "fruit")
    page.press("#group-0", "Enter")
    page.click("[data-label=fruit] .more")
    page.select_option("#merge-into", "pear")
    page.click("#merge button")
    page.click("#confirm-yes")
    expect(page.locator("[data-label=fruit]")).to_have_count(0)
    expect(page.locator("[data-label=pear] .counts")).to_have_text("5")

    page.click("[data-label=pear] .more")
    page.click("#forget button")
    page.click("#confirm [value=no]")
    assert server.taught()["pear"] == 5
    page.click("#forget button")
    page.click("#confirm-yes")
    expect(page.locator("[data-label=pear]")).to_have_count(0)
    assert "pear" not in server.taught()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("Object.defineProperty(window, 'isSecureContext', { value: false })", "needs https"),
        (
            "navigator.mediaDevices.getUserMedia = () => "
            "Promise.reject(new DOMException('no', 'NotAllowedError'))",
            "was refused",
        ),
        (
            "navigator.mediaDevices.getUserMedia = () => "
            "Promise.reject(new DOMException('no', 'NotFoundError'))",
            "No camera found",
        ),
    ],
    ids=["insecure", "refused", "missing"],
)
def test_it_says_why_there_is_no_camera(page: Page, script: str, says: str) -> None:
    page.add_init_script(script)
    page.reload()
    expect(page.locator("#link")).to_have_attribute("data-state", "here")
    if page.locator("#start").is_visible():
        page.click("#start")
    expect(page.locator("#note")).to_contain_text(says)
    expect(page.locator("#ask")).to_be_visible()


@pytest.mark.browser
@pytest.mark.slow
def test_it_asks_for_a_token_and_keeps_it_in_the_tab(page: Page, server: Server) -> None:
    def status(route: Any) -> None:
        answer = server.get("status") | {"auth": {"learn": True, "predict": False}}
        route.fulfill(json=answer)

    asked: list[str | None] = []

    def learn(route: Any) -> None:
        asked.append(route.request.headers.get("authorization"))
        route.fulfill(status=401, json={"detail": "a token is needed"})

    page.route("**/v1/status", status)
    page.route("**/v1/events", lambda route: route.abort())
    page.route("**/v1/learn", learn)
    page.reload()
    watch(page)
    add(page, "secret")
    page.press("[data-label=secret] .hold", "Enter")
    page.fill("#token-value", "open sesame")
    page.press("#token-value", "Enter")
    expect(page.locator("#token")).to_be_hidden()
    assert asked == []  # nothing was sent without it
    page.press("[data-label=secret] .hold", "Enter")
    expect(page.locator("#token")).to_be_visible()  # refused: it asks again
    assert asked == ["Bearer open sesame"]
    assert page.evaluate("sessionStorage.getItem('verse-token')") == "open sesame"


TOKEN = "correct horse battery staple"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """``guarded("--private")``: a real server that asks for the token."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    running: list[Server] = []

    def start(*options: str) -> Server:
        made = Server(tmp_path / "taught", "--token-file", str(file), *options, token=TOKEN)
        running.append(made)
        return made

    yield start
    for made in running:
        made.stop()


def give(page: Page, token: str) -> None:
    expect(page.locator("#token")).to_be_visible()
    page.fill("#token-value", token)
    page.press("#token-value", "Enter")


@pytest.mark.browser
@pytest.mark.slow
def test_a_real_server_teaches_only_those_who_give_its_token(
    browser: Browser, guarded: Callable[..., Server]
) -> None:
    server = guarded()
    with opened_page(browser, server) as page:
        expect(page.locator("#link")).to_have_attribute("data-state", "here")  # looking is open
        watch(page)
        add(page, "secret")
        page.press("[data-label=secret] .hold", "Enter")
        expect(page.locator("#token-text")).to_contain_text("teach, undo and forget")
        give(page, "something else entirely")
        expect(page.locator("#token")).to_be_hidden()
        page.press("[data-label=secret] .hold", "Enter")  # the server refuses it: asked again
        expect(page.locator("#token")).to_be_visible()
        assert server.taught() == {}
        give(page, TOKEN)
        expect(page.locator("#token")).to_be_hidden()
        page.press("[data-label=secret] .hold", "Enter")
        expect(page.locator("#toasts")).to_contain_text("1 frame of secret taught")
        assert server.taught() == {"secret": 1}

        page.reload()  # the tab remembers
        watch(page)
        page.press("[data-label=secret] .hold", "Enter")
        expect(page.locator("[data-label=secret] .counts")).to_have_text("2")
        page.keyboard.press("Control+z")
        expect(page.locator("[data-label=secret] .counts")).to_have_text("1")
        expect(page.locator("#token")).to_be_hidden()
    with opened_page(browser, server) as page:  # another one does not know
        watch(page)
        page.press("[data-label=secret] .hold", "Enter")
        expect(page.locator("#token")).to_be_visible()
    assert server.taught() == {"secret": 1}


@pytest.mark.browser
@pytest.mark.slow
def test_a_private_server_shows_nothing_without_its_token(
    browser: Browser, guarded: Callable[..., Server]
) -> None:
    server = guarded("--private")
    with opened_page(browser, server) as page:
        expect(page.locator("#token-text")).to_contain_text("token to use it")
        expect(page.locator("#link")).to_have_attribute("data-state", "locked")
        give(page, "something else entirely")
        expect(page.locator("#token-value")).to_have_value("")  # refused: it asks again
        expect(page.locator("#token")).to_be_visible()
        give(page, TOKEN)
        expect(page.locator("#link")).to_have_attribute("data-state", "here")
        expect(page.locator("#token")).to_be_hidden()
        watch(page)
        add(page, "secret")
        page.press("[data-label=secret] .hold", "Enter")
        # its picture needs the token, too
        picture = page.locator("[data-label=secret] .thumbs img").first
        expect(picture).to_be_visible()
        assert picture.evaluate("image => image.decode().then(() => 1)")
    assert server.taught() == {"secret": 1}


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_and_fits_a_phone(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    classes = ["class-none", *(f"class-{n}" for n in range(1, 10))]
    names = ["ground", "paper", "well", "ink", "soft", "accent", "on-accent", "bad", "on-bad"]
    value = page.evaluate(
        """(names) => {
          const style = getComputedStyle(document.documentElement);
          return Object.fromEntries(names.map((n) => [n, style.getPropertyValue(`--${n}`).trim()]));
        }""",
        [*names, "on-class", *classes],
    )
    pairs = [(text, on) for text in ("ink", "soft") for on in ("ground", "paper", "well")]
    pairs += [("on-accent", "accent"), ("on-bad", "bad"), ("ground", "ink")]
    pairs += [("on-class", name) for name in classes]
    low = {pair: contrast(value[pair[0]], value[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    assert all(contrast(value[name], value["ground"]) >= 3 for name in classes)


def test_the_page_has_nothing_inline_and_fetches_from_nowhere_else() -> None:
    html = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", html) == []
    for file in PAGE.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text) == [], file
        assert "innerHTML" not in text
        assert "insertAdjacentHTML" not in text
    for name in re.findall(r'(?:src|href)="([\w.]+)"', html):
        assert (PAGE / name).is_file()
