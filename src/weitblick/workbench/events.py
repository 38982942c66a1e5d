"""News about documents for the pages that show them: server-sent events, published from any thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

HEARTBEAT_SECONDS = 15.0
MOST_WAITING = 10_000
"""Events that a page may be behind; one that is further behind is sent away and starts anew."""


class Hub:
    def __init__(self) -> None:
        self._listeners: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Queue[str | None]]]] = {}
        self.closed = False

    def publish(self, topic: str, kind: str, data: Any) -> None:
        text = f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
        for loop, queue in tuple(self._listeners.get(topic, ())):
            if not loop.is_closed():
                loop.call_soon_threadsafe(_offer, queue, text)

    async def listen(self, topic: str) -> AsyncIterator[str]:
        """Everything published from now on; `hello` first, so that a page knows from when."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(MOST_WAITING)
        listener = (asyncio.get_running_loop(), queue)
        self._listeners.setdefault(topic, set()).add(listener)
        try:
            yield "event: hello\ndata: {}\n\n"
            while not self.closed:
                try:
                    text = await asyncio.wait_for(queue.get(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    text = ": still here\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._listeners[topic].discard(listener)
            if not self._listeners[topic]:
                del self._listeners[topic]

    def close(self) -> None:
        self.closed = True
        for listeners in tuple(self._listeners.values()):
            for loop, queue in tuple(listeners):
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_offer, queue, None)


def _offer(queue: asyncio.Queue[str | None], text: str | None) -> None:
    try:
        queue.put_nowait(text)
    except asyncio.QueueFull:
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
