"""The service: a durable classifier behind HTTP that answers while it learns, and its page."""

from __future__ import annotations

from verse.extras import need

need("serve")
