"""The service: a durable classifier behind HTTP that answers while it learns, and its page."""
