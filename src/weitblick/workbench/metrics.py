"""Figures for Prometheus. Labels say which endpoint and which status, and nothing about clients or texts."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weitblick.workbench.engine import Done
from weitblick.workbench.scheduler import RequestScheduler

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    def __init__(self, scheduler: RequestScheduler) -> None:
        self.registry = CollectorRegistry()
        labels = ["endpoint", "status"]
        self.requests = Counter("weitblick_requests", "Requests answered", labels, registry=self.registry)
        self.seconds = Histogram(
            "weitblick_request_seconds", "Time to answer", ["endpoint"], registry=self.registry, buckets=SECONDS
        )
        waiting = Gauge("weitblick_waiting_tokens", "Source tokens not answered yet", registry=self.registry)
        waiting.set_function(lambda: scheduler.places.taken)
        self.registry.register(_EngineCollector(scheduler.engine.done))


class _EngineCollector:
    def __init__(self, done: Done) -> None:
        self.done = done

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield CounterMetricFamily("weitblick_sentences", "Sentences translated", self.done.sentences)
        yield CounterMetricFamily("weitblick_tokens", "Source tokens translated, about", self.done.tokens)
        yield CounterMetricFamily("weitblick_windows", "Batches of requests", self.done.windows)


class CountRequests:
    """ASGI middleware: counts and times every request under the pattern of its route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 500

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, counting)
        finally:
            endpoint = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(endpoint, status).inc()
            self.metrics.seconds.labels(endpoint).observe(time.monotonic() - start)
