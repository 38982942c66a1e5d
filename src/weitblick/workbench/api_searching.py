"""Finding rows of a document, and replacing in their translations."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from weitblick.workbench.api_projects import MOST_ROW, Json, SeenRowsIn, settled
from weitblick.workbench.api_v1 import Strict
from weitblick.workbench.errors import Refused
from weitblick.workbench.schema import State
from weitblick.workbench.searching import Replacement, Wanted, chosen
from weitblick.workbench.service import Service

MOST_WANTED = 1000
DOCUMENT = "/{project}/documents/{document}"


class SearchIn(Strict):
    """Rows that have a text in their source, their translation, or either: words as they are, or a regular expression;
    in one of these states (none: in any); only changed ones, those in which something looks wrong, or those with
    comments."""

    text: str = Field("", max_length=MOST_WANTED)
    expression: bool = False
    cased: bool = False
    side: Literal["source", "target", "both"] = "both"
    states: list[State] = Field([], max_length=5)
    changed: bool = False
    findings: bool = False
    comments: bool = False


class ReplacingIn(Strict):
    """What is replaced in translations, and by what: in a regular expression's replacement \\1 is its first group.
    Confirmed rows are left as they are unless `confirmed` says otherwise. `positions`: in these rows only."""

    text: str = Field(min_length=1, max_length=MOST_WANTED)
    replacement: str = Field(max_length=MOST_WANTED)
    expression: bool = False
    cased: bool = False
    confirmed: bool = False


class PreviewIn(ReplacingIn):
    positions: list[int] | None = Field(None, max_length=1_000_000)


class ReplaceIn(ReplacingIn, SeenRowsIn):
    """`rows` are those of the preview, with the versions that were seen."""


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])
    store, workbench = service.store, service.workbench

    def checked(project: str, document: str) -> str:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        return document

    @router.post(f"{DOCUMENT}/search", summary="Find rows by text, state, changes and findings")
    def search(project: str, document: str, body: SearchIn) -> Json:
        rows = store.segments(checked(project, document))
        with_findings = None
        if body.findings:
            with_findings = {finding.row - 1 for finding in workbench.checks.of_document(document)}
        found = chosen(rows, body.states, body.changed, with_findings, body.comments)
        if body.text:
            wanted = Wanted(body.text, body.expression, body.cased)
            found = workbench.searching.rows(wanted, body.side, found)
        return {"positions": [row.position for row in found], "rows": len(rows)}

    def replacements(document: str, body: ReplacingIn, positions: set[int] | None) -> list[Replacement]:
        rows = [
            row
            for row in store.segments(document)
            if row.state != "empty" and (positions is None or row.position in positions)
        ]
        wanted = Wanted(body.text, body.expression, body.cased)
        found = workbench.searching.replacements(wanted, body.replacement, rows)
        return [one for one in found if one.after != one.row.target]

    @router.post(f"{DOCUMENT}/replace/preview", summary="What replacing in translations would change")
    def preview(project: str, document: str, body: PreviewIn) -> Json:
        positions = None if body.positions is None else {min(one, MOST_ROW) for one in body.positions}
        found = replacements(checked(project, document), body, positions)
        open_rows = [one for one in found if body.confirmed or not one.row.is_approved]
        return {
            "rows": [
                {
                    "position": one.row.position,
                    "version": one.row.version,
                    "state": one.row.state,
                    "before": one.row.target,
                    "after": one.after,
                    "hits": one.hits,
                }
                for one in open_rows
            ],
            "hits": sum(one.hits for one in open_rows),
            "confirmed": sum(one.row.is_approved for one in found),
        }

    @router.post(f"{DOCUMENT}/replace", summary="Replace in translations, as one step that can be undone")
    def replace(project: str, document: str, body: ReplaceIn) -> Json:
        seen = body.versions()
        found = replacements(checked(project, document), body, set(seen))
        by = {"writer": body.writer, "person": body.person}
        return settled(*workbench.replace_targets(document, found, seen, confirmed=body.confirmed, **by))

    return router
