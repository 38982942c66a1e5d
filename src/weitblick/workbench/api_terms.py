"""Terms that a person makes of words of a row: seen before they are made, and taken back; what corrections offer."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request

from weitblick.workbench.api_projects import Json, Row, TermIn
from weitblick.workbench.errors import Refused
from weitblick.workbench.offers import offers
from weitblick.workbench.scheduler import unless_gone
from weitblick.workbench.service import Service
from weitblick.workbench.terms import checked_term
from weitblick.workbench.workbench import segment_json

TERMS = "/{project}/documents/{document}/terms"


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])
    store, workbench = service.store, service.workbench

    def checked(project: str, document: str) -> str:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        return document

    @router.get(TERMS, summary="The terms in the sources of a document")
    def terms(project: str, document: str) -> Json:
        found = workbench.terms.marks(project, store.segments(checked(project, document)))
        return {"rows": {str(position): own for position, own in found.items()}}

    @router.post(f"{TERMS}/preview", summary="Which rows a term would concern")
    def preview(project: str, document: str, body: TermIn) -> Json:
        term = checked_term(body.source, body.target)
        return asdict(workbench.terms.concerned(checked(project, document), term))

    @router.delete(f"{TERMS}/{{pair}}", summary="Take a term back, and what it has changed")
    def withdraw(project: str, document: str, pair: Row) -> Json:
        rows = workbench.withdraw_term(checked(project, document), pair)
        return {"rows": [segment_json(row) for row in rows]}

    @router.get("/{project}/documents/{document}/corrections", summary="What was corrected, and drafts to be so")
    async def corrections(project: str, document: str, request: Request, position: Row | None = None) -> Json:
        if position is not None:
            store.segment(checked(project, document), position)
        steps = offers(workbench, checked(project, document), position)
        return asdict(await unless_gone(request, service.scheduler.run(steps)))

    return router
