"""What the tests of the page share: a real server, a browser, and what a person does with it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.serve import video

if importlib.util.find_spec("playwright") is None:
    pytest.skip("no playwright: pip install playwright", allow_module_level=True)

from playwright.sync_api import Locator, Page, expect

expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong
# Which scene the camera shows, read from the mark that lies outside the square the page sends.
SCENE = f"""() => {{
  const video = document.querySelector("video");
  if (!video.videoWidth) return 0;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d");
  context.drawImage(video, 4, 100, 8, 8, 0, 0, 1, 1);
  return Math.round(context.getImageData(0, 0, 1, 1).data[0] / {video.LUMA_STEP});
}}"""


class Server:
    """``verse serve`` as its users start it."""

    def __init__(self, directory: Path, *options: str, token: str = "") -> None:
        self.directory, self.options, self.token = directory, options, token
        self.port = 0
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "verse.cli",
                "serve",
                str(self.directory),
                "--port",
                str(self.port),
                *self.options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return
        raise AssertionError("verse serve ended: " + "".join(lines))

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        asked = urllib.request.Request(f"{self.url}/v1/{path}", headers=headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    def taught(self) -> dict[str, int]:
        return {known["label"]: known["taught"] for known in self.get("classes")}


def chromium() -> str:
    named = os.environ.get("VERSE_CHROMIUM")
    path = named or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip(
            "no browser: apt-get install chromium, or set VERSE_CHROMIUM to a Chromium or Chrome"
        )
    return path


# A camera on a tripod, with a little noise; the scene changes when the test says so.
TRIPOD = """
  const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 240 });
  const context = canvas.getContext("2d");
  let tick = 0;
  setInterval(() => {
    context.fillStyle = window.changed ? "#a33" : "#357";
    context.fillRect(0, 0, 320, 240);
    context.fillStyle = `rgb(${tick++ % 2 * 255}, 0, 0)`;
    context.fillRect(150, 100, 6, 6);
  }, 50);
  navigator.mediaDevices.getUserMedia = async () => canvas.captureStream(20);
"""


# Notes stay ten times as long: on a busy machine a test looks at them, or presses a button, late.
PATIENT = """
  const wait = window.setTimeout.bind(window);
  window.setTimeout = (call, ms, ...rest) => wait(call, ms === 6000 ? 60000 : ms, ...rest);
"""


def watch(page: Page) -> None:
    if page.locator("#start").is_visible():
        page.click("#start")
    expect(page.locator("#stage")).to_have_attribute("data-state", "live")


def until(page: Page, scene: int) -> None:
    # asked again and again from outside: the page's policy forbids wait_for_function, which evals
    for _ in range(2_000):
        if page.evaluate(SCENE) == scene:
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"scene {scene} never came")


def add(page: Page, name: str) -> None:
    page.fill("#name", name)
    page.press("#name", "Enter")


def hold(page: Page, label: str) -> None:
    box = page.locator(f"[data-label={label}] .hold").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
    page.mouse.down()


def drop(page: Page, path: Path, onto: Locator) -> None:
    """What a file manager does: a real file or folder, let go over an element."""
    box = onto.bounding_box()
    assert box is not None
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        where = {"x": box["x"] + 60, "y": box["y"] + min(20, box["height"] / 2)}
        session.send("Input.dispatchDragEvent", {"type": kind, "data": data, **where})
    session.detach()


def answers(page: Page, scene: int) -> list[dict[str, Any]]:
    """What the page is answered while the camera shows this scene, at least once."""
    while True:
        until(page, scene)
        with page.expect_response("**/v1/predict"):
            pass  # this one may still be about the scene before
        seen = []
        while page.evaluate(SCENE) == scene:
            with page.expect_response("**/v1/predict") as answered:
                pass
            seen.append(answered.value.json())
        if seen[:-1]:
            return seen[:-1]  # the last may be about the scene after


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of two colours like #0b6b61."""

    def light(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
