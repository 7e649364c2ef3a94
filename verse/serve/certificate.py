"""The certificate of a server that speaks https."""

from __future__ import annotations

import ssl

from verse.types import BadSetting


def check_certificate(certificate: str, key: str) -> None:
    """Refuse a certificate and a key that are none, or do not fit each other."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise BadSetting(
            f"the certificate {certificate} and the key {key} do not fit ({error}): give a "
            "certificate in PEM format and the key it was made with, without a password"
        ) from error
