"""What a tab tells of somebody at work: the rows that are seen, and what is typed, which is completed."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import Field

from weitblick.workbench.api_projects import MOST_ROW, MOST_TARGET, Json, Person, Row
from weitblick.workbench.api_v1 import Strict
from weitblick.workbench.errors import Refused
from weitblick.workbench.presence import Typist
from weitblick.workbench.scheduler import unless_gone
from weitblick.workbench.service import Service


class BeginningIn(Strict):
    """What somebody has typed of a translation, up to the cursor."""

    prefix: str = Field(max_length=MOST_TARGET)


class TypingIn(Strict):
    """The row that somebody types in (none: no row any more), the tab or program, the browser that it is part of, and
    a name. Tabs of one browser under one name are the same person's and do not keep each other out."""

    position: int | None = Field(None, ge=0, le=MOST_ROW)
    writer: str = Field(min_length=1, max_length=64)
    browser: str | None = Field(None, min_length=1, max_length=64)
    person: Person = None


class ViewIn(Strict):
    """The rows that somebody sees."""

    first: int = Field(ge=0, le=MOST_ROW)
    last: int = Field(ge=0, le=MOST_ROW)


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])
    store, workbench = service.store, service.workbench

    def checked(project: str, document: str) -> str:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        return document

    @router.get("/{project}/documents/{document}/confidence", summary="Whether the model is unsure of a document")
    async def confidence(project: str, document: str, request: Request) -> Json:
        steps = workbench.domain.steps(checked(project, document))
        return await unless_gone(request, service.scheduler.run(steps))

    @router.post("/{project}/documents/{document}/view", summary="Which rows are seen", status_code=204)
    def view(project: str, document: str, body: ViewIn) -> None:
        workbench.filling.look_at(checked(project, document), body.first, body.last)

    @router.post("/{project}/documents/{document}/typing", summary="Which row somebody types in")
    def typing(project: str, document: str, body: TypingIn) -> Json:
        checked(project, document)
        if body.position is None:
            workbench.presence.release(document, body.writer)
            return {"holder": None}
        store.segment(document, body.position)
        typist = Typist(body.writer, body.browser, body.person)
        return {"holder": workbench.presence.hold(document, body.position, typist)}

    @router.post(
        "/{project}/documents/{document}/segments/{position}/completion", summary="The rest behind what is typed"
    )
    async def completion(project: str, document: str, position: Row, body: BeginningIn, request: Request) -> Json:
        store.segment(checked(project, document), position)
        steps = workbench.completing.steps(document, position, body.prefix)
        return {"rest": await unless_gone(request, service.scheduler.run(steps))}

    return router
