"""The certificate of a server that speaks https."""

from __future__ import annotations

import ssl
from pathlib import Path

from verse.types import BadSetting

NOT_YET_VALID, EXPIRED = 9, 10  # OpenSSL's codes
MAKE = "see docs/service.md for how to make one"


def check_certificate(certificate: str, key: str) -> None:
    """Refuse a certificate or a key that browsers would refuse later, in one sentence."""
    for path, what, mark in ((certificate, "certificate", "CERTIFICATE"), (key, "key", "KEY")):
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise BadSetting(f"cannot read the {what} {path}: {error.strerror}") from error
        if b"-----BEGIN " not in content or mark.encode() not in content:
            raise BadSetting(f"{path} is not a {what} in PEM format: {MAKE}")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        server.load_cert_chain(certificate, key, password=_refuse_password)
    except _HasPassword:
        raise BadSetting(
            f"the key {key} has a password: give one without, which only its owner may read"
        ) from None
    except (ssl.SSLError, OSError, ValueError) as error:
        if "KEY_VALUES_MISMATCH" in str(error):
            raise BadSetting(
                f"the key {key} does not belong to the certificate {certificate}: give the key it "
                "was made with"
            ) from error
        raise BadSetting(
            f"the certificate {certificate} or the key {key} is damaged: {MAKE}"
        ) from error
    _check_dates(server, certificate)


def _check_dates(server: ssl.SSLContext, certificate: str) -> None:
    """Let a client that trusts this very certificate try it, without a network."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False  # its names are checked by those who call it
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(certificate)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(down, up)
    other = server.wrap_bio(up, down, server_side=True)
    try:
        for side in (one, other, one, other):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == EXPIRED:
            raise BadSetting(f"the certificate {certificate} has expired: {MAKE}") from error
        if error.verify_code == NOT_YET_VALID:
            raise BadSetting(
                f"the certificate {certificate} is not valid yet: check this machine's clock"
            ) from error
        raise BadSetting(
            f"the certificate {certificate} cannot be used ({error.verify_message}): {MAKE}"
        ) from error


class _HasPassword(Exception):
    pass


def _refuse_password() -> str:
    """OpenSSL would ask at the terminal otherwise."""
    raise _HasPassword
