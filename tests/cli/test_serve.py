"""``verse serve``: what it refuses before it starts (the server itself: tests/serve)."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import verse
from verse.cli import main


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
    assert result.exit_code == 2 and "belong together" in result.stderr


def test_an_unknown_learner_is_named(tmp_path) -> None:
    result = serve(str(tmp_path / "d"), "--learner", "vers", "--weights", "random")
    assert result.exit_code == 2 and "did you mean 'verse'" in result.stderr


def test_a_second_server_says_what_to_do(tmp_path) -> None:
    with verse.open(tmp_path, backbone=verse.backbones.identity((3,))):
        result = serve(str(tmp_path))
    assert result.exit_code == 2 and "open for writing in another process" in result.stderr
