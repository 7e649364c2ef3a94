"""Runs the examples of a documentation page, as a reader would, in an empty folder.

``python`` blocks run in one namespace. ``sh`` blocks are commands, one a line; one ending in ``&``
goes on until the page ends. A ``text`` block is what the block before it prints. A block with a
title is written to a file of that name instead. Others (``console``, ``ini``) are only shown.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from verse.cli import main

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass
class Reader:
    """Goes through one page; ``port`` stands for the service's usual one."""

    page: Path
    port: int
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    printed: str | None = None
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    ran: int = 0

    def read(self) -> None:
        text = self.page.read_text(encoding="utf-8").replace("8700", str(self.port))
        for block in BLOCK.finditer(text):
            language, title, content = block.groups()
            if title is not None and not title.startswith("/"):
                Path(title).write_text(content, encoding="utf-8")
            elif language == "python":
                self.python(content, text[: block.start()].count("\n") + 1)
            elif language == "sh":
                self.shell(content)
            elif language == "text" and self.printed is not None:
                assert doctest.OutputChecker().check_output(content, self.printed, FLAGS), (
                    f"{self.page.name} shows\n{content}\nbut this came out:\n{self.printed}"
                )
            if language != "python" and language != "sh":
                self.printed = None

    def python(self, content: str, line: int) -> None:
        code = compile("\n" * line + content, str(self.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        self.printed, self.ran = out.getvalue(), self.ran + 1

    def shell(self, content: str) -> None:
        printed = [self.command(line) for line in content.splitlines() if line.strip()]
        self.printed, self.ran = "".join(printed), self.ran + 1

    def command(self, line: str) -> str:
        words = shlex.split(line, comments=True)
        if words[0] == "verse" and words[-1] != "&":  # here, to save the start of a process
            done = CliRunner().invoke(main, words[1:], catch_exceptions=False)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            return done.stdout
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}
        if words[-1] == "&":
            self.servers.append(subprocess.Popen(words[:-1], env=environment))
            return ""
        shown = subprocess.run(line, shell=True, env=environment, capture_output=True, text=True)
        assert shown.returncode == 0, f"{line}\n{shown.stderr}"
        return shown.stdout

    def close(self) -> None:
        for server in self.servers:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(120)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


@contextlib.contextmanager
def reading(page: Path, port: int) -> Iterator[Reader]:
    reader = Reader(page, port)
    try:
        yield reader
    finally:
        reader.close()
