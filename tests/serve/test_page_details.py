"""The page in a real browser: single samples removed, hands-free, reloads, photos, export."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import verse
from tests.serve import steering
from tests.serve.browsing import Page, Server, add, expect
from verse.backbones import Backbone
from verse.durable import restore
from verse.serve.client import Client

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with steering.browser() as started:
        yield started


@pytest.fixture(scope="module")
def server(
    browser: Any, backbone: Backbone, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("taught") / "colours"
    verse.open(folder, backbone=backbone, learner="slda").close()
    running = Server(folder)
    yield running
    running.stop()


@pytest.fixture
def page(
    browser: Any, server: Server, picture: Callable[..., bytes], tmp_path: Path
) -> Iterator[Page]:
    """Five samples of red and of green more than before, a red picture before the camera."""
    with Client(server.url) as client:
        for seed in range(5):
            for label in ("red", "green"):
                client.learn(picture(label, seed), label)
    (tmp_path / "red.png").write_bytes(picture("red", 9))
    with steering.opened(browser, server) as opened:
        steering.show(opened, tmp_path / "red.png")
        yield opened


def test_a_sample_is_removed_by_its_cross_and_one_too_old_says_so(
    page: Page, server: Server
) -> None:
    before = server.taught()["red"]
    page.click("[data-label=red] .more")
    tiles = page.locator("#gallery .tile")
    shown = tiles.count()
    tiles.nth(1).locator("button").click()  # not the last one
    expect(page.locator("#gallery-note")).to_contain_text("Removed")
    expect(tiles).to_have_count(shown - 1)
    assert server.taught()["red"] == before - 1
    expect(page.locator("[data-label=red] .counts")).to_have_text(str(before - 1))

    with Client(server.url) as client:  # somebody else undid it, which is too late as well
        seq = next(c for c in client.classes() if c["label"] == "red")["thumbnails"][-1]
        client.undo(seq)
    tiles.first.locator("button").click()
    expect(page.locator("#gallery-note")).to_contain_text("Not removed: ")
    assert server.taught()["red"] == before - 2


# What the badge says and when, as looking now and then might miss it; and when lessons were sent.
LISTEN = """() => {
  const badge = document.querySelector("#badge");
  window.said = [];
  performance.setResourceTimingBufferSize(100_000);
  performance.clearResourceTimings();
  new MutationObserver(() => {
    if (badge.textContent) window.said.push([performance.now(), badge.textContent]);
  }).observe(badge, { childList: true });
}"""
HEARD = """() => [
  window.said,
  performance.getEntriesByType("resource")
    .filter((entry) => entry.name.endsWith("/v1/learn")).map((entry) => entry.startTime),
]"""


def test_a_class_is_recorded_for_some_seconds_with_both_hands_free(
    page: Page, server: Server
) -> None:
    before = server.taught()["green"]
    page.evaluate(LISTEN)
    page.click("[data-label=green] .record")
    expect(page.locator("#badge")).to_be_visible()
    expect(page.locator("#badge")).to_be_hidden()
    expect(page.locator("#toasts")).to_contain_text("of green taught")
    # of a still scene one a second; on a busy machine fewer
    assert server.taught()["green"] >= before + 1
    said, taught = page.evaluate(HEARD)
    words = [text for _, text in said]
    assert words[0].startswith("Recording green in ")
    first, at = next((i, at) for i, (at, text) in enumerate(said) if "Teaching green" in text)
    assert all("Recording green in " in text for text in words[:first])
    assert any(re.search(r"\d s left", text) for text in words[first:])
    assert min(taught) >= at  # nothing was sent while it counted down

    page.click("[data-label=red] .record")
    page.click("[data-label=red] .record")  # again: not after all
    expect(page.locator("#badge")).to_be_hidden()


def test_a_reload_keeps_new_names_and_what_can_be_undone(page: Page, server: Server) -> None:
    add(page, "blue")
    expect(page.locator("#undo")).to_have_text("Undo last (green)")
    before = server.taught()["green"]
    page.reload()
    expect(page.locator("[data-label=blue] .counts")).to_have_text("new")
    expect(page.locator("#undo")).to_have_text("Undo last (green)")
    page.click("#undo")
    expect(page.locator("#toasts")).to_contain_text("1 sample undone")
    expect(page.locator("#undo")).to_have_text("Undo last (red)")
    assert server.taught()["green"] == before - 1


def test_a_slip_that_is_undone_does_not_count(page: Page, server: Server) -> None:
    before = server.get("status")["prequential"]["accuracy"]
    wrong = "red" if page.locator("#seen").inner_text() == "green" else "green"
    page.click(f"#bars [data-is={wrong}]")
    expect(page.locator("#toasts")).to_contain_text(f"This is {wrong}: taught")
    assert server.get("status")["prequential"]["accuracy"] < before
    page.locator("#toasts button").last.click()
    expect(page.locator("#toasts")).to_contain_text("undone")
    assert server.get("status")["prequential"]["accuracy"] == pytest.approx(before)


def test_the_camera_goes_on_when_a_photo_is_closed(page: Page, tmp_path: Path) -> None:
    page.set_input_files("#shot", str(tmp_path / "red.png"))
    expect(page.locator("#stage")).to_have_attribute("data-state", "photo")
    page.click("#stop")
    expect(page.locator("#stage")).to_have_attribute("data-state", "live")
    page.click("#stop")
    expect(page.locator("#stage")).to_have_attribute("data-state", "off")


def test_what_it_knows_is_exported_and_help_is_there(
    page: Page, server: Server, tmp_path: Path
) -> None:
    with page.expect_download() as download:
        page.click("#backup")
    download.value.save_as(tmp_path / "backup.zip")
    restore(tmp_path / "backup.zip", tmp_path / "again")
    with verse.open(tmp_path / "again", readonly=True) as again:
        assert again.taught == server.taught()
    page.click("#help")
    expect(page.locator("#helping")).to_contain_text("Correct")
