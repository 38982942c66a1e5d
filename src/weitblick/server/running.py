"""The application on a socket: it says when it listens, and goes down without waiting for pages that only listen."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

GRACE_SECONDS = 5
"""For answers that are on their way when the server goes down."""


class _Server(uvicorn.Server):
    def __init__(self, app: FastAPI, announce: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
                server_header=False,
            )
        )
        self._app, self._announce = app, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.service.workbench.hub.close()
        await super().shutdown(sockets)


def run(app: FastAPI, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Until the process is told to end; `announce` is called as soon as requests are answered."""
    _Server(app, announce).run(sockets=[listener])
