"""The service: a durable classifier behind HTTP that answers while it learns, and its page.

Belongs here: HTTP, limits for clients, and the threads behind them; the page is in ``page/``.
Does not belong here: how a sample is stored (``verse.durable``) or learned.
"""

from __future__ import annotations

from verse.extras import need

need("serve")
