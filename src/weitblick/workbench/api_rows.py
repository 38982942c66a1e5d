"""What is done to rows besides typing: several at once, undoing and redoing by steps, comments."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from weitblick.files.inline_marks import PlacedFormat, follow, missing_placeholders, target_marks
from weitblick.workbench.api_projects import (
    MOST_PERSON,
    MOST_ROW,
    MOST_TARGET,
    ByIn,
    Json,
    Row,
    SeenIn,
    SeenRowsIn,
    Version,
    settled,
)
from weitblick.workbench.api_v1 import Strict
from weitblick.workbench.checks import finding_json
from weitblick.workbench.errors import Refused
from weitblick.workbench.parameters import parameters, string, upload
from weitblick.workbench.requests import file_body
from weitblick.workbench.row_acts import Act
from weitblick.workbench.row_versions import Against, versions_of
from weitblick.workbench.scheduler import unless_gone
from weitblick.workbench.schema import Write
from weitblick.workbench.service import Service
from weitblick.workbench.steps import Direction, Stepped, steps_of
from weitblick.workbench.transfer import file_name
from weitblick.workbench.workbench import segment_json

MOST_COMMENT = 10_000
DOCUMENT = "/{project}/documents/{document}"
ROW = DOCUMENT + "/segments/{position}"


class ActIn(SeenRowsIn):
    """What is done to rows, with the versions that were seen. `approved`: also where it writes over what somebody has
    confirmed or reviewed. With `ask`, rows in which something looks wrong are not confirmed; the answer has their
    `findings`."""

    act: Act
    approved: bool = False
    ask: bool = False


class StepIn(ByIn):
    """The number of the step that was seen to be the next."""

    step: int = Field(ge=0, le=MOST_ROW)


class CommentIn(ByIn):
    text: str = Field(min_length=1, max_length=MOST_COMMENT)


class ChangedCommentIn(CommentIn):
    """`version` is the comment's that was seen."""

    version: Version


class FormatIn(Strict):
    """The number of formatting in its source, and the characters of the translation that it is around."""

    mark: int = Field(ge=0, le=MOST_ROW)
    start: int = Field(ge=0, le=MOST_TARGET)
    end: int = Field(ge=0, le=MOST_TARGET)


class FormatsIn(SeenIn):
    """All formatting of a row that somebody has placed, in the text that was seen."""

    target: str = Field(max_length=MOST_TARGET)
    formats: list[FormatIn] = Field(max_length=1000)


class TargetIn(Strict):
    """A translation that is not saved; without one, the row's own."""

    target: str | None = Field(None, max_length=MOST_TARGET)


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Rows"])
    store, acts = service.store, service.workbench.acts

    def checked(project: str, document: str) -> str:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        return document

    @router.post(f"{DOCUMENT}/rows", summary="Confirm, reopen, review, clear or copy the source of several rows")
    def several(project: str, document: str, body: ActIn) -> Json:
        seen = body.versions()
        done = acts.several(checked(project, document), body.act, seen, body.by(), approved=body.approved, ask=body.ask)
        found = [finding_json(one) for one in done.findings]
        return {**settled([one.after for one in done.written], done.left), "findings": found}

    @router.get(f"{DOCUMENT}/steps", summary="What would be undone next, and what redone")
    def steps(project: str, document: str) -> Json:
        return asdict(steps_of(store, checked(project, document)))

    def stepped(document: str, direction: Direction, body: StepIn) -> Json:
        done: Stepped = acts.go(document, direction, body.step, body.by())
        return {"kind": done.kind, **settled(done.rows, done.left), "steps": asdict(steps_of(store, document))}

    @router.post(f"{DOCUMENT}/steps/undo", summary="Take the latest step back, as a whole")
    def undo(project: str, document: str, body: StepIn) -> Json:
        return stepped(checked(project, document), "undo", body)

    @router.post(f"{DOCUMENT}/steps/redo", summary="Do the step again that was taken back last")
    def redo(project: str, document: str, body: StepIn) -> Json:
        return stepped(checked(project, document), "redo", body)

    @router.post(f"{DOCUMENT}/reviews", summary="Read a review back: a table or XLIFF", openapi_extra=file_body())
    async def review(project: str, document: str, request: Request) -> Json:
        checked(project, document)
        values = await parameters(request)
        file = upload(values)
        name, content = file_name(file.filename), await file.read()
        person = string(values, "person", "")[:MOST_PERSON] or None
        by = Write("", "draft", 0, string(values, "writer", "")[:64] or None, 0, person)
        done = await run_in_threadpool(acts.review, document, name, content, by)
        rows = [segment_json(row) for row in done.rows]
        return {**asdict(done), "rows": rows}

    @router.get(f"{DOCUMENT}/tags", summary="Placeholders and formatting in the sources of a document")
    def tags(project: str, document: str) -> Json:
        marks = service.workbench.masks.of(checked(project, document)).marks()
        return {"rows": {str(at): [asdict(mark) for mark in own] for at, own in enumerate(marks) if own}}

    @router.post(f"{ROW}/tags", summary="Where placeholders and formatting go in a translation")
    async def row_tags(project: str, document: str, position: Row, body: TargetIn, request: Request) -> Json:
        row = store.segment(checked(project, document), position)
        marks = service.workbench.masks.of(document).marks()[position]
        target = row.target if body.target is None else body.target
        alignment = None
        if target.strip() and any(mark.kind == "format" for mark in marks):
            align = partial(service.engine.translator.align, [(row.source, target)])
            (alignment,) = await unless_gone(request, service.scheduler.call(align))
        there = target_marks(marks, target, alignment, follow(row.placed, row.target, target))
        missing = missing_placeholders(marks, target)
        return {"source": list(map(asdict, marks)), "target": list(map(asdict, there)), "missing": missing}

    @router.put(f"{ROW}/formats", summary="Place formatting by hand; what is not named goes where its words go")
    def formats(project: str, document: str, position: Row, body: FormatsIn) -> Json:
        by = replace(body.by(), version=body.version)
        placed = [PlacedFormat(one.mark, one.start, one.end) for one in body.formats]
        store.segment(checked(project, document), position)
        return segment_json(acts.place(document, position, placed, body.target, by))

    @router.get(f"{ROW}/versions", summary="What a row has been: draft, edits, review, as differences")
    def versions(project: str, document: str, position: Row, against: Against = "before") -> list[Json]:
        return [asdict(one) for one in versions_of(store, checked(project, document), position, against)]

    @router.post(f"{ROW}/comments", summary="Comment on a row", status_code=201)
    def comment(project: str, document: str, position: Row, body: CommentIn) -> Json:
        text = _told(body.text)
        return segment_json(acts.comment(checked(project, document), position, text, body.by()))

    @router.put(f"{ROW}/comments/{{comment}}", summary="Change a comment")
    def change(project: str, document: str, position: Row, comment: Row, body: ChangedCommentIn) -> Json:
        checked(project, document)
        text = _told(body.text)
        return segment_json(acts.change_comment(document, position, comment, text, body.version, body.by()))

    @router.delete(f"{ROW}/comments/{{comment}}", summary="Delete a comment")
    def delete(
        project: str,
        document: str,
        position: Row,
        comment: Row,
        version: Annotated[int, Query(ge=0, le=MOST_ROW)],
        writer: Annotated[str | None, Query(max_length=64)] = None,
        person: Annotated[str | None, Query(max_length=MOST_PERSON)] = None,
    ) -> Json:
        by = Write("", "draft", 0, writer, 0, person)
        return segment_json(acts.change_comment(checked(project, document), position, comment, None, version, by))

    return router


def _told(text: str) -> str:
    """A comment without white space around it; lines end as they do here."""
    told = "\n".join(text.strip().splitlines())
    if not told:
        raise Refused(422, "text: a comment without text is none")
    return told
