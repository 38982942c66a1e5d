"""The application on a socket: it says when it listens, and goes down without waiting for pages that only listen."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from prometheus_client import generate_latest
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from weitblick import __version__
from weitblick.translation.translator import Translator
from weitblick.workbench import (
    api_concordance,
    api_previews,
    api_projects,
    api_rows,
    api_searching,
    api_statistics,
    api_terms,
    api_typing,
    api_v1,
    deepl,
    errors,
    libretranslate,
)
from weitblick.workbench.metrics import CountRequests
from weitblick.workbench.requests import Limits
from weitblick.workbench.security import Guard, Secure
from weitblick.workbench.service import Service
from weitblick.workbench.store import Store

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


# The application: all routes, in front of them what every request passes.

TYPES = {".css": "text/css", ".js": "text/javascript"}
SHARED = ("base.css", "elements.js", "panel.js", "data.js", "word_panel.js")
"""What the workbench has in common with the report of `weitblick explain`: its colours and the panel for a word."""
STATELESS = {
    "/v1/translate",
    *("/translate", "/detect", "/languages", "/frontend/settings"),
    *("/v2/translate", "/v2/languages", "/v2/usage", "/v2/glossary-language-pairs"),
}
"""What needs nothing that an earlier request has left: all that several servers behind one address can offer."""


def create_app(
    translator: Translator,
    data: str | Path | Store,
    *,
    host: str = "127.0.0.1",
    keys: list[str] | None = None,
    limits: Limits | None = None,
    name: str = "shipped",
    projects: bool = True,
) -> FastAPI:
    """The application for one model and one folder of projects, or its store. `host` is where it will be reached.
    Without `projects` there is neither a workbench nor anything else that is kept between requests."""
    limits = limits or Limits()
    store = data if isinstance(data, Store) else Store(data)
    service = Service(translator, store, Guard(host, keys or (), limits), limits, name)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Weitblick",
        version=__version__,
        summary="Translation of whole documents",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"description": "Refused: the reason, as one line of JSON"}},
    )
    app.state.service = service
    errors.install(app)
    # A path is looked up in this order, which takes time.
    projects_too = (
        *(api_projects, api_rows, api_searching, api_terms, api_typing),
        *(api_concordance, api_statistics, api_previews),
    )
    for module in (api_v1, libretranslate, deepl, *projects_too):
        routes = module.routes(service)
        if not projects:
            routes.routes = [route for route in routes.routes if getattr(route, "path", None) in STATELESS]
        app.include_router(routes)
    _add_pages(app, service, projects)
    app.add_middleware(Secure, guard=service.guard)
    app.add_middleware(CountRequests, metrics=service.metrics)
    return app


def _add_pages(app: FastAPI, service: Service, projects: bool) -> None:
    """The page and its files, each by its name: no path of a request is ever looked up on disk."""
    own = files("weitblick.workbench").joinpath("page")
    shared = files("weitblick.explanation").joinpath("template")
    chosen = [file for file in own.iterdir() if Path(file.name).suffix in TYPES]
    chosen += [shared.joinpath(name) for name in SHARED]
    assets = {file.name: (file.read_bytes(), TYPES[Path(file.name).suffix]) for file in chosen}
    index = own.joinpath("index.html" if projects else "reference.html").read_text(encoding="utf-8")
    reference = own.joinpath("reference.html").read_text(encoding="utf-8")

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return HTMLResponse(index, headers={"Cache-Control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return HTMLResponse(reference)

    @app.get("/page/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        content, kind = assets.get(name, (b"", ""))
        if not kind:
            raise errors.Refused(404, "no such page")
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    @app.get("/health", tags=["Server"], summary="Whether the server is well")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", tags=["Server"], summary="Figures for Prometheus", response_class=PlainTextResponse)
    def metrics() -> Response:
        return PlainTextResponse(generate_latest(service.metrics.registry))

    @app.get("/v1/languages", tags=["Server"], summary="The languages of the model")
    def languages() -> dict[str, dict[str, str]]:
        pair = {"source": service.languages.source, "target": service.languages.target}
        return {
            side: {"code": code, "name": service.languages.name(code), "direction": service.languages.direction(code)}
            for side, code in pair.items()
        }
