"""What decoders say of damaged uploads goes to whoever sent them, not into the log."""

from __future__ import annotations

import logging
import warnings


def quiet() -> None:
    """For a process that serves: a sender of nonsense must not fill its log, nor the table in
    which Python remembers every warning it has shown."""
    for name in ("PIL", "multipart", "python_multipart"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"PIL\.")
