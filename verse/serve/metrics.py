"""Numbers for Prometheus."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verse.serve.process_memory import live_bytes
from verse.serve.session import Session

SECONDS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters of requests, and gauges that look at the session when they are read."""

    def __init__(self, session: Session) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "verse_requests", "Requests answered.", ["route", "code"], registry=self.registry
        )
        self.seconds = Histogram(
            "verse_request_seconds",
            "Time to answer.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        for name, text, look in (
            ("samples", "Samples learned.", lambda: session.view.samples),
            ("classes", "Classes known.", lambda: len(session.view.classes)),
            ("queue_length", "Lessons that wait.", lambda: session.waiting),
            ("queue_limit", "Lessons that may wait.", lambda: session.limit),
            ("memory_samples", "Samples in memory.", lambda: session.view.memory_samples),
            ("memory_bytes", "Bytes of samples in memory.", lambda: session.view.memory_bytes),
            ("heap_bytes", "Bytes in live blocks of the process's heap.", live_bytes),
            ("prequential_accuracy", "Of recent answers.", lambda: session.view.accuracy or 0.0),
            ("ready", "1 while it learns and answers.", lambda: float(session.ready)),
        ):
            gauge = Gauge(f"verse_{name}", text, registry=self.registry)
            gauge.set_function(look)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class RequestMeter:
    """The ASGI layer that counts and times every request."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, code = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            # the route's pattern, so that made-up paths cannot fill the table
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(route, code).inc()
            if route != "/v1/events":  # lasts as long as its listener
                self.metrics.seconds.labels(route).observe(time.perf_counter() - start)
