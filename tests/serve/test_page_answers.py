"""The page in a real browser: answers that say "something new", and answers that are corrected."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import verse
from tests.serve import steering
from tests.serve.browsing import Page, Server, expect
from verse.serve.client import Client

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TAUGHT = ("cup", "horse", "pear")
EACH = 20  # photos of each class, of two objects


def views(eth80: Path, name: str, number: int) -> list[Path]:
    return sorted((eth80 / name / f"{name}{number:02d}").iterdir())


@pytest.fixture(scope="module")
def eth80(real_data: Callable[[str], Path]) -> Path:
    return real_data("eth80")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with steering.browser() as started:
        yield started


@pytest.fixture(scope="module")
def taught(browser: Any, eth80: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("taught") / "things"
    with verse.open(directory) as classifier:
        for i in range(EACH):
            for name in TAUGHT:
                classifier.learn_one(views(eth80, name, 1 + i % 2)[2 * i], name)
    return directory


@pytest.fixture(scope="module")
def sign(real_data: Callable[[str], Path]) -> Path:
    """Something never taught."""
    return real_data("gtsrb") / "00042" / "track007" / "29.jpg"


@pytest.fixture
def server(taught: Path, tmp_path: Path) -> Iterator[Server]:
    running = Server(shutil.copytree(taught, tmp_path / "things"))
    yield running
    running.stop()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Page]:
    with steering.opened(browser, server) as opened:
        yield opened


def test_something_never_taught_is_named_with_one_tap(
    page: Page, server: Server, eth80: Path, sign: Path, tmp_path: Path
) -> None:
    Image.new("RGB", (240, 240)).save(tmp_path / "black.png")
    for picture in (tmp_path / "black.png", sign):
        steering.show(page, picture)
        expect(page.locator("#seen")).to_have_text("something new")
        expect(page.locator("#sure")).to_contain_text("nearest: ")
        expect(page.locator("#answer")).not_to_contain_text("%")
        expect(page.locator("#bars")).not_to_contain_text("%")
        expect(page.locator("#yes")).to_be_disabled()

    page.click("#name-it")
    expect(page.locator("#new-name")).to_be_focused()
    steering.show(page, views(eth80, "cup", 1)[0])  # the frame to be named stays the sign
    sent: list[str] = []
    page.on("request", lambda r: sent.append(r.post_data or "") if "v1/learn" in r.url else None)
    page.fill("#new-name", "stop")
    page.press("#new-name", "Enter")
    expect(page.locator("#toasts")).to_contain_text("This is stop: taught")
    assert server.taught() == {"cup": EACH, "horse": EACH, "pear": EACH, "stop": 1}
    assert len(sent) == 1
    assert 'name="frame"' in sent[0] and 'name="image"' not in sent[0]  # nothing sent twice
    expect(page.locator("#seen")).to_have_text("cup")
    steering.show(page, sign)
    expect(page.locator("#seen")).to_have_text("stop")


def test_a_wrong_answer_is_corrected_by_a_tap_or_a_number_and_yes_confirms(
    page: Page, server: Server, eth80: Path, sign: Path
) -> None:
    steering.show(page, views(eth80, "cup", 3)[2])
    expect(page.locator("#seen")).to_have_text("cup")
    # bars stand in the order of the classes, whatever is likeliest
    expect(page.locator("#bars .name")).to_have_text(list(TAUGHT))

    page.click("#yes")
    expect(page.locator("#toasts")).to_contain_text("This is cup: taught")
    assert server.taught() == {"cup": EACH + 1, "horse": EACH, "pear": EACH}

    steering.show(page, sign)
    page.click("#bars [data-is=horse]")
    expect(page.locator("#seen")).to_have_text("horse")  # of the same frame
    assert server.taught() == {"cup": EACH + 1, "horse": EACH + 1, "pear": EACH}
    expect(page.locator("#bars .name")).to_have_text(list(TAUGHT))
    page.locator("#toasts button", has_text="Undo").last.click()
    expect(page.locator("#toasts")).to_contain_text("1 sample undone")
    expect(page.locator("#seen")).not_to_have_text("horse")

    page.keyboard.press("3")
    expect(page.locator("#seen")).to_have_text("pear")
    assert server.taught() == {"cup": EACH + 1, "horse": EACH, "pear": EACH + 1}


def test_a_photo_is_corrected_too_and_a_frame_no_longer_kept_is_sent_again(
    page: Page, server: Server, sign: Path
) -> None:
    page.set_input_files("#shot", str(sign))
    expect(page.locator("#stage")).to_have_attribute("data-state", "photo")
    for _ in range(2):  # the first may still be about the camera, and a tap would teach that
        with page.expect_response("**/v1/predict"):
            pass
    expect(page.locator("#bars [data-is=pear]")).to_be_visible()
    gone = {"detail": "frame 'x' is not kept any longer: send the image instead"}
    sent: list[str] = []

    def forget_frame(route: Any) -> None:
        sent.append(route.request.headers["idempotency-key"])
        if len(sent) == 1:
            route.fulfill(status=404, json=gone)
        else:
            route.continue_()

    page.route("**/v1/learn", forget_frame)
    page.click("#bars [data-is=pear]")
    expect(page.locator("#seen")).to_have_text("pear")
    assert server.taught()["pear"] == EACH + 1
    assert len(sent) == 2 and len(set(sent)) == 1


def test_every_control_of_the_answer_is_reachable_on_any_screen(
    browser: Any, server: Server, sign: Path
) -> None:
    for theme, width in itertools.product(("light", "dark"), (1200, 390)):
        size = {"width": width, "height": 844}
        check_controls(browser, server, sign, viewport=size, color_scheme=theme)


def check_controls(browser: Any, server: Server, sign: Path, **screen: Any) -> None:
    width = screen["viewport"]["width"]
    with steering.opened(browser, server, **screen) as page:
        steering.show(page, sign)
        for target in ("#name-it", "#bars [data-is=cup]"):
            box = page.locator(target).bounding_box()
            assert box is not None
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["height"] >= 32
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.click("#name-it")
        expect(page.locator("#naming-cancel")).to_be_in_viewport()


def test_a_sample_with_a_wrong_label_is_found_shown_and_undone(
    page: Page, server: Server, eth80: Path
) -> None:
    with Client(server.url) as client:
        slip = client.learn(views(eth80, "pear", 4)[8], "cup")["seq"]
    page.click("#check")
    expect(page.locator("#advice li")).to_have_count(len(TAUGHT))
    found = page.locator("#suspects li", has=page.locator(f"[data-seq='{slip}']"))
    expect(found).to_contain_text("taught as cup, looks like pear")
    assert found.locator("img").evaluate("image => image.decode().then(() => 1)")
    found.locator("button").click()
    expect(found).to_have_count(0)
    assert server.taught() == dict.fromkeys(TAUGHT, EACH)
