"""The translated file, to be looked at before it is exported."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from weitblick.workbench.api_projects import Json
from weitblick.workbench.errors import Refused
from weitblick.workbench.previews import POLICY, preview, preview_json, with_sources
from weitblick.workbench.service import Service
from weitblick.workbench.transfer import render_file


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])
    store, pages = service.store, service.workbench.previews

    def checked(project: str, document: str) -> str:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        return document

    @router.post("/{project}/documents/{document}/preview", summary="What the translated file looks like")
    async def show(project: str, document: str) -> Json:
        name, (rows, waiting) = store.document(checked(project, document)).name, with_sources(store.segments(document))
        render = partial(render_file, name, rows, store.file(document), service.languages)
        file, data, notes = await service.scheduler.call(lambda: render(service.engine.translator.align))
        language = service.languages.target
        found = await run_in_threadpool(preview, name, file.format, data, language, [*waiting, *notes])
        if found.kind != "page":
            return preview_json(found, None)
        kept = pages.keep(document, found.page)
        return preview_json(found, f"/v1/projects/{project}/documents/{document}/preview/{kept}")

    @router.get(
        "/{project}/documents/{document}/preview/{page}", summary="The page of a preview", response_class=Response
    )
    def page(project: str, document: str, page: str) -> Response:
        content = pages.get(checked(project, document), page)
        if content is None:
            raise Refused(404, "no such preview: ask for a new one")
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    return router
