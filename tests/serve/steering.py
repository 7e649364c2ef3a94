"""A camera in the browser that shows what the test says, beside a server taught from photos."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.serve.browsing import PATIENT, Page, Server, chromium, expect, watch

# The picture is set by `show`; a blinking corner outside the square makes every frame a new one.
CAMERA = """
  const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 240 });
  const context = canvas.getContext("2d");
  let tick = 0, bitmap = null;
  window.showPicture = async (encoded) => {
    const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
    bitmap = await createImageBitmap(new Blob([bytes]));
  };
  setInterval(() => {
    context.fillStyle = "#345";
    context.fillRect(0, 0, 320, 240);
    if (bitmap) context.drawImage(bitmap, 40, 0, 240, 240);
    context.fillStyle = `rgb(${tick++ % 2 * 255}, 0, 0)`;
    context.fillRect(0, 0, 6, 6);
  }, 50);
  navigator.mediaDevices.getUserMedia = async () => canvas.captureStream(20);
"""


def show(page: Page, picture: Path) -> None:
    """Put a picture before the camera, and wait for an answer about it."""
    encoded = base64.b64encode(picture.read_bytes()).decode()
    page.evaluate("(encoded) => window.showPicture(encoded)", encoded)
    page.wait_for_timeout(150)  # until the camera has delivered it
    for _ in range(2):  # the first may still be about the picture before
        with page.expect_response("**/v1/predict"):
            pass
    page.wait_for_timeout(30)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a camera of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def opened(started: Any, server: Server, **options: Any) -> Iterator[Page]:
    """The page with that camera on, in a tab of its own; nothing may have gone wrong in it."""
    settings = {"viewport": {"width": 1200, "height": 850}, **options}
    context = started.new_context(**settings)
    context.set_default_timeout(60_000)
    context.add_init_script(PATIENT)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if _is_problem(m) else None)
    page.add_init_script(CAMERA)
    page.goto(server.url)
    expect(page.locator("#link")).to_have_attribute("data-state", "here")
    watch(page)
    yield page
    context.close()
    assert problems == []


def _is_problem(message: Any) -> bool:
    return message.type in ("error", "warning") and "Failed to load resource" not in message.text
