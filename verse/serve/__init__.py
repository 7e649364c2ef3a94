"""The service: a durable classifier behind HTTP that answers while it learns, and its page.

Here goes what speaks HTTP, limits clients, and runs the threads behind it; the page is in
``page/``. How a sample is kept (``verse.durable``) or learned does not go here.
"""

from __future__ import annotations

from verse.extras import need

need("serve")
