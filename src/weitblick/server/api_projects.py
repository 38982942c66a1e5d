"""Projects, as the workbench's page uses them."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from weitblick.server.api_v1 import Strict
from weitblick.server.bodies import file_body
from weitblick.server.consistency import inconsistencies
from weitblick.server.desk import unless_gone
from weitblick.server.errors import Refused
from weitblick.server.explaining import explain_row
from weitblick.server.exports import EXPORTS, export, export_file
from weitblick.server.files import file_name, read_upload
from weitblick.server.imports import read_pairs
from weitblick.server.libretranslate import attachment
from weitblick.server.parameters import parameters, string, upload
from weitblick.server.service import Service
from weitblick.server.workbench import segment_json

MOST_TARGET = 20_000
MOST_ROW = 2**53
"""What a page can count to, and a database can hold."""
Row = Annotated[int, Path(ge=0, le=MOST_ROW)]


class Named(Strict):
    name: str = Field(min_length=1, max_length=200)


class SegmentIn(Strict):
    """`focus` is the row under the cursor, which the model is to leave alone."""

    target: str = Field(max_length=MOST_TARGET)
    state: Literal["draft", "edited", "confirmed"]
    focus: int | None = Field(None, ge=0, le=MOST_ROW)


class FocusIn(Strict):
    position: int | None = Field(None, ge=0, le=MOST_ROW)


class TermIn(Strict):
    source: str = Field(min_length=1, max_length=500)
    target: str = Field(min_length=1, max_length=500)


Json = dict[str, Any]


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])
    store, workbench = service.store, service.workbench

    def checked(project: str, document: str) -> str:
        if store.document(document).project != project:
            raise Refused(404, "no such document")
        return document

    @router.get("", summary="All projects")
    def projects() -> list[Json]:
        return [asdict(project) for project in store.projects()]

    @router.post("", summary="A new project", status_code=201)
    def add_project(body: Named) -> Json:
        return asdict(store.add_project(body.name))

    @router.get("/{project}", summary="A project and its documents")
    def project(project: str) -> Json:
        return {**asdict(store.project(project)), "documents": [asdict(one) for one in store.documents(project)]}

    @router.put("/{project}", summary="Rename a project")
    def rename(project: str, body: Named) -> Json:
        return asdict(store.rename_project(project, body.name))

    @router.delete("/{project}", summary="Delete a project for good", status_code=204)
    def delete_project(project: str) -> None:
        store.project(project)
        workbench.delete_project(project)

    @router.get("/{project}/pairs", summary="What the memory of a project holds")
    def pairs(project: str) -> list[Json]:
        return [asdict(pair) for pair in store.pairs(project)]

    @router.post("/{project}/pairs", summary="Import a memory or a glossary", openapi_extra=file_body())
    async def add_pairs(project: str, request: Request) -> Json:
        store.project(project)
        values = await parameters(request)
        file = upload(values)
        name, content = file_name(file.filename), await file.read()
        kind: Literal["term", "import"] = "term" if string(values, "kind", "memory") == "glossary" else "import"
        languages = (service.languages.source, service.languages.target)
        found = await run_in_threadpool(read_pairs, name, content, languages)
        if kind == "import":
            await service.check_direction(found)
        await run_in_threadpool(store.add_pairs, project, kind, found, name)
        service.memories.reload(project)
        workbench.refresh(project, found)
        return {"pairs": len(found)}

    @router.delete("/{project}/pairs/{pair}", summary="Take a pair out of the memory", status_code=204)
    def remove_pair(project: str, pair: Row) -> None:
        store.remove_pair(project, pair)
        service.memories.reload(project)

    @router.get("/{project}/export/{kind}", summary="The confirmed rows of all documents: tmx, xliff or jsonl")
    def export_project(project: str, kind: str) -> Response:
        documents = [
            (one.name, [row for row in store.segments(one.id) if row.state == "confirmed"])
            for one in store.documents(project)
        ]
        return attachment(*export(kind, store.project(project).name, documents, service.languages))

    # Documents

    @router.post("/{project}/documents", summary="Add a document: a file, or text", openapi_extra=file_body())
    async def add_document(project: str, request: Request) -> Json:
        store.project(project)
        values = await parameters(request)
        if "text" in values:
            name = file_name(string(values, "name", "") or "Pasted text.txt")
            content = string(values, "text").encode()
            service.check_length([string(values, "text")])
        else:
            given = upload(values)
            name, content = file_name(given.filename), await given.read()
        file = await run_in_threadpool(read_upload, name, content, service.languages.source)
        parsed = file.document
        if not parsed.sentences:
            raise Refused(400, f"{name} holds no text to translate")
        if sum(map(len, parsed.sources)) > service.limits.characters:
            raise Refused(413, f"more than {service.limits.characters:,} characters in one document")
        document = await run_in_threadpool(workbench.add, project, name, parsed.sentences, content)
        return {**asdict(store.document(document)), "rows": [segment_json(one) for one in store.segments(document)]}

    @router.get("/{project}/documents/{document}", summary="A document and its rows")
    def document(project: str, document: str) -> Json:
        checked(project, document)
        workbench.fill(document)
        return {**asdict(store.document(document)), "rows": [segment_json(one) for one in store.segments(document)]}

    @router.delete("/{project}/documents/{document}", summary="Delete a document for good", status_code=204)
    def delete_document(project: str, document: str) -> None:
        workbench.delete_document(checked(project, document))

    @router.get("/{project}/documents/{document}/events", summary="News of a document", response_class=Response)
    async def events(project: str, document: str) -> StreamingResponse:
        listening = workbench.hub.listen(checked(project, document))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(listening, media_type="text/event-stream", headers=headers)

    @router.get("/{project}/documents/{document}/export/{kind}", summary=f"Export: {', '.join(EXPORTS)}")
    async def export_document(project: str, document: str, kind: str) -> Response:
        checked(project, document)
        name, rows = store.document(document).name, store.segments(document)
        if kind == "file":
            file, align = store.file(document), service.engine.translator.align
            return attachment(*await service.desk.call(lambda: export_file(name, rows, file, service.languages, align)))
        return attachment(*export(kind, name, [(name, rows)], service.languages))

    # Rows

    @router.put("/{project}/documents/{document}/segments/{position}", summary="Edit or confirm a row")
    def edit(project: str, document: str, position: Row, body: SegmentIn) -> Json:
        checked(project, document)
        if body.focus is not None:
            workbench.focus(document, body.focus)
        return segment_json(workbench.edit(document, position, body.target, body.state))

    @router.get("/{project}/documents/{document}/segments/{position}/edits", summary="All edits of a row")
    def edits(project: str, document: str, position: Row) -> list[Json]:
        return [asdict(one) for one in store.edits(checked(project, document), position)]

    @router.get("/{project}/documents/{document}/segments/{position}/alternatives", summary="Other translations")
    async def alternatives(project: str, document: str, position: Row, request: Request) -> Json:
        store.segment(checked(project, document), position)
        found = await unless_gone(request, service.desk.run(workbench.alternatives(document, position)))
        memory = service.memories.of(project)
        matches = [
            {"source": match.pair.source, "target": match.pair.target, "similarity": round(match.similarity, 3)}
            for match in memory.matches(store.segment(document, position).source)
        ]
        return {"alternatives": found, "matches": matches}

    @router.get("/{project}/documents/{document}/segments/{position}/explanation", summary="Why these words")
    async def explanation(project: str, document: str, position: Row, request: Request) -> Json:
        store.segment(checked(project, document), position)
        rows, veil, memory = store.segments(document), workbench.veils.of(document), workbench.memory_of(document)
        steps = explain_row(service.engine, service.name, rows, position, veil, memory)
        return await unless_gone(request, service.desk.run(steps))

    @router.get("/{project}/documents/{document}/consistency", summary="Terms translated in several ways")
    async def consistency(project: str, document: str, request: Request) -> list[Json]:
        rows = store.segments(checked(project, document))
        approved = [(pair.source, pair.target) for pair in store.pairs(project, "term")]
        find = partial(inconsistencies, service.engine.translator, rows, approved)
        return await unless_gone(request, service.desk.call(find))

    @router.post("/{project}/documents/{document}/segments/{position}/keep", summary="Take a change back")
    def keep(project: str, document: str, position: Row) -> Json:
        (segment,) = workbench.keep(checked(project, document), [position])
        return segment_json(segment)

    @router.post("/{project}/documents/{document}/segments/{position}/accept", summary="Leave a change as it is")
    def accept(project: str, document: str, position: Row) -> Json:
        return segment_json(store.accept(checked(project, document), position))

    @router.post("/{project}/documents/{document}/undo", summary="Take all open changes back")
    def undo(project: str, document: str) -> list[Json]:
        return [segment_json(segment) for segment in workbench.undo(checked(project, document))]

    @router.post("/{project}/documents/{document}/focus", summary="Where the cursor is", status_code=204)
    def focus(project: str, document: str, body: FocusIn) -> None:
        workbench.focus(checked(project, document), body.position)

    @router.post("/{project}/documents/{document}/terms", summary="Approve a translation of a term")
    def approve(project: str, document: str, body: TermIn) -> Json:
        return {"pair": workbench.approve_term(checked(project, document), body.source.strip(), body.target.strip())}

    return router
