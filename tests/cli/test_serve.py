"""``verse serve``: what it refuses before it starts (the server itself: tests/serve)."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import verse
from verse.cli import main
from verse.serve.listener import open_sockets


def serve(*arguments: str, **environment: str):
    return CliRunner().invoke(main, ["serve", *arguments], env={"VERSE_TOKEN": "", **environment})


def test_other_addresses_need_a_token(tmp_path) -> None:
    result = serve(str(tmp_path / "d"), "--host", "0.0.0.0")
    assert result.exit_code == 2 and "give a token" in result.stderr
    assert not (tmp_path / "d").exists()


def test_tokens_are_never_on_the_command_line(tmp_path) -> None:
    assert "--token TEXT" not in CliRunner().invoke(main, ["serve", "--help"]).output
    result = serve(str(tmp_path / "d"), "--private")
    assert result.exit_code == 2 and "VERSE_TOKEN" in result.stderr
    short = tmp_path / "token"
    short.write_text("short")
    result = serve(str(tmp_path / "d"), "--token-file", str(short))
    assert result.exit_code == 2 and "16 or more" in result.stderr


@pytest.mark.parametrize("only", ["--tls-cert", "--tls-key"])
def test_certificate_and_key_belong_together(tmp_path: Path, only: str) -> None:
    file = tmp_path / "file"
    file.touch()
    result = serve(str(tmp_path / "d"), only, str(file))
    assert result.exit_code == 2 and "give both --tls-cert and --tls-key" in result.stderr


def test_an_unknown_learner_is_named_and_nothing_is_left_behind(tmp_path) -> None:
    result = serve(str(tmp_path / "d"), "--port", "0", "--learner", "vers", "--weights", "random")
    assert result.exit_code == 2 and "did you mean 'verse'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_lost_journal_is_not_called_new(tmp_path) -> None:
    with verse.open(tmp_path, backbone=verse.backbones.identity((3,))) as classifier:
        classifier.learn_one([1.0, 0.0, 0.0], "mug")
    for file in tmp_path.glob("journal.sqlite*"):
        file.unlink()
    result = serve(str(tmp_path), "--port", "0")
    assert result.exit_code == 2 and "verse salvage" in result.stderr
    assert "new classifier" not in result.stderr


def test_a_second_server_says_what_to_do(tmp_path) -> None:
    with verse.open(tmp_path, backbone=verse.backbones.identity((3,))):
        result = serve(str(tmp_path), "--port", "0")
    assert result.exit_code == 2 and "open for writing in another process" in result.stderr
    assert "verse predict and verse classes work meanwhile" in " ".join(result.stderr.split())


def test_locked_in_the_moment_of_opening_it_says_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("verse.cli.serve.refuse_locked", lambda directory: None)
    with verse.open(tmp_path, backbone=verse.backbones.identity((3,))):
        result = serve(str(tmp_path), "--port", "0")
    assert result.exit_code == 2 and "open for writing in another process" in result.stderr
    assert "readonly" not in result.stderr


def test_a_busy_port_is_one_sentence_and_nothing_is_left_behind(tmp_path) -> None:
    (taken,) = open_sockets("127.0.0.1", 0)
    with taken:
        port = taken.getsockname()[1]
        result = serve(str(tmp_path / "d"), "--port", str(port))
    assert result.exit_code == 2
    assert f"port {port}" in result.stderr and "Give another --port" in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.9"])
def test_an_address_that_is_not_of_this_machine(tmp_path: Path, host: str) -> None:
    result = serve(str(tmp_path / "d"), "--host", host, VERSE_TOKEN="x" * 16)
    assert result.exit_code == 2 and f"cannot listen on {host}" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("after", [0.05, 0.6, 1.5])
def test_ctrl_c_while_it_loads_exits_with_130(tmp_path: Path, after: float) -> None:
    command = [sys.executable, "-m", "verse.cli", "serve", str(tmp_path / "d"), "--port", "0"]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        # a runner in the background of a shell ignores Ctrl-C, and so would its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as server:
        assert server.stderr is not None
        assert server.stderr.readline().endswith("/d: a new classifier\n")
        time.sleep(after)
        server.send_signal(signal.SIGINT)
        try:
            said = server.communicate(timeout=120)[1]
        finally:
            server.kill()
    assert server.returncode == 130, said
    assert "Traceback" not in said
    assert not (tmp_path / "d").exists() or "Serving" in said
