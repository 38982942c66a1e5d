"""Completion of a row while somebody types in it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import Field

from weitblick.workbench.api_projects import MOST_TARGET, Json, Row
from weitblick.workbench.api_v1 import Strict
from weitblick.workbench.errors import Refused
from weitblick.workbench.scheduler import unless_gone
from weitblick.workbench.service import Service


class BeginningIn(Strict):
    """What somebody has typed of a translation, up to the cursor."""

    prefix: str = Field(max_length=MOST_TARGET)


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])
    store, workbench = service.store, service.workbench

    @router.post(
        "/{project}/documents/{document}/segments/{position}/completion", summary="The rest behind what is typed"
    )
    async def completion(project: str, document: str, position: Row, body: BeginningIn, request: Request) -> Json:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        store.segment(document, position)
        steps = workbench.completing.steps(document, position, body.prefix)
        return {"rest": await unless_gone(request, service.scheduler.run(steps))}

    return router
