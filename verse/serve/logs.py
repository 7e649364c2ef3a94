"""What a sender did wrong is answered, not logged."""

from __future__ import annotations

import logging
import warnings


def silence_senders() -> None:
    """For a process that serves: a sender of nonsense must not fill its log, nor the table in
    which Python remembers every warning it has shown."""
    for name in ("PIL", "multipart", "python_multipart"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # its warnings are about malformed requests; its errors are about this service
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"PIL\.")
