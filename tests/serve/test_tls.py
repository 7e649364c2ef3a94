"""The real server over https: with its own certificate, and to nobody who speaks plainly."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from verse.cli import main
from verse.serve.client import Client, ServiceError


def self_signed(folder: Path, name: str = "own") -> tuple[str, str]:
    """A certificate for this machine and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with: apt-get install openssl")
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=verse",
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    return str(certificate), str(key)


def test_https_to_those_who_trust_the_certificate_and_nothing_else(
    launch, picture, tmp_path
) -> None:
    certificate, key = self_signed(tmp_path)
    token = tmp_path / "token"
    token.write_text("a token of some length\n")
    _, url = launch(
        tmp_path / "d", "--tls-cert", certificate, "--tls-key", key, "--token-file", str(token)
    )
    assert url.startswith("https://127.0.0.1:")

    with Client(url, verify=certificate, token="a token of some length") as client:
        assert client.learn(picture(), "red")["seq"] == 1
        assert client.predict(picture())["label"] == "red"
        kind, data = next(events := client.events())
        assert kind == "status" and data["samples"] == 1
        events.close()
    with (
        Client(url, verify=certificate, retries=0) as client,
        pytest.raises(ServiceError, match="token"),
    ):
        client.learn(picture(), "red")
    with (
        Client(url, retries=0) as client,
        pytest.raises(ServiceError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.status()
    with Client(url.replace("https", "http"), retries=0, timeout=10) as client:
        with pytest.raises(ServiceError) as refused:
            client.status()
        assert refused.value.code is None  # no answer at all, in no language

    host, port = "127.0.0.1", int(url.rpartition(":")[2])
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        trusting = ssl.create_default_context(cafile=certificate)
        trusting.minimum_version = trusting.maximum_version = version
        with (
            socket.create_connection((host, port), timeout=10) as plain,
            trusting.wrap_socket(plain, server_hostname=host) as secure,
        ):
            assert secure.version() == version.name.replace("_", ".")


def refusal(folder: Path, certificate: str, key: str) -> str:
    """What ``verse serve`` says of them; it must have begun nothing."""
    arguments = ["serve", str(folder / "d"), "--tls-cert", certificate, "--tls-key", key]
    result = CliRunner().invoke(main, arguments, env={"VERSE_TOKEN": "", "COLUMNS": "400"})
    assert result.exit_code == 2 and not (folder / "d").exists()
    assert "Traceback" not in result.stderr and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def test_a_wrong_certificate_or_key_is_told_before_anything_is_opened(tmp_path) -> None:
    certificate, key = self_signed(tmp_path)
    _, foreign = self_signed(tmp_path, "foreign")
    assert "does not belong to the certificate" in refusal(tmp_path, certificate, foreign)
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    assert "is not a certificate in PEM format" in refusal(tmp_path, str(junk), key)
    assert "is not a key in PEM format" in refusal(tmp_path, certificate, str(junk))
    junk.write_text(Path(certificate).read_text().replace("M", "N"))
    assert "is damaged" in refusal(tmp_path, str(junk), key)
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", str(locked)],
        check=True,
        capture_output=True,
    )
    assert "has a password" in refusal(tmp_path, certificate, str(locked))


@pytest.mark.parametrize(
    ("begin", "end", "says"),
    [
        ("20200101000000Z", "20200201000000Z", "has expired"),
        ("22000101000000Z", "22000201000000Z", "is not valid yet"),
    ],
)
def test_a_certificate_out_of_date_is_told(tmp_path, begin: str, end: str, says: str) -> None:
    _, key = self_signed(tmp_path)
    (tmp_path / "index").touch()
    (tmp_path / "serial").write_text("01\n")
    (tmp_path / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=own\n[own]\nnew_certs_dir={tmp_path}\ndatabase={tmp_path}/index\n"
        f"serial={tmp_path}/serial\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
    )
    for arguments in (
        ["req", "-new", "-key", key, "-subj", "/CN=verse", "-out", "request.pem"],
        [
            "ca",
            "-selfsign",
            "-batch",
            "-notext",
            "-config",
            "ca.cnf",
            "-keyfile",
            key,
            "-in",
            "request.pem",
            "-startdate",
            begin,
            "-enddate",
            end,
            "-out",
            "dated.pem",
        ],
    ):
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)
    assert says in refusal(tmp_path, str(tmp_path / "dated.pem"), key)
