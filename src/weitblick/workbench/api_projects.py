"""Projects, as the workbench's page uses them."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from weitblick.files.checks.own_rules import OwnRule
from weitblick.translation.options import Formality
from weitblick.workbench.api_v1 import Strict
from weitblick.workbench.checks import MOST_RULES, finding_json
from weitblick.workbench.consistency import inconsistencies
from weitblick.workbench.errors import Refused
from weitblick.workbench.explaining import explain_row
from weitblick.workbench.libretranslate import attachment
from weitblick.workbench.parameters import parameters, string, upload
from weitblick.workbench.requests import file_body
from weitblick.workbench.scheduler import unless_gone
from weitblick.workbench.schema import APPROVED, Segment, Write
from weitblick.workbench.service import Service
from weitblick.workbench.transfer import EXPORTS, Exported, export, export_file, file_name, read_pairs, read_upload
from weitblick.workbench.workbench import segment_json

MOST_TARGET = 20_000
MOST_PERSON = 100
MOST_ROW = 2**53
"""What a page can count to, and a database can hold."""
Row = Annotated[int, Path(ge=0, le=MOST_ROW)]


class Named(Strict):
    name: str = Field(min_length=1, max_length=200)


class ProjectIn(Strict):
    """What is to change of a project: its name, and how people are addressed in its translations. Drafts that address
    them in the other way are translated again."""

    name: str | None = Field(None, min_length=1, max_length=200)
    formality: Formality | None = None


Writer = Annotated[str | None, Field(max_length=64)]
Person = Annotated[str | None, Field(max_length=MOST_PERSON)]
Version = Annotated[int, Field(ge=0, le=MOST_ROW)]


class SegmentIn(Strict):
    """`version` is the row's that was seen: a row that somebody has written since is not overwritten. `writer` names
    the tab or program, and `writer_edit` counts what it writes from 1: what is sent again is then known. `focus` is the
    row being written, which the model is to leave alone. With `ask`, a row in which something looks wrong is saved, but
    not confirmed or reviewed: the answer has its `findings`, and whoever sends it again without `ask` has seen them.
    `person` is the name of whoever writes, and `act` how the text came about, for undoing by steps."""

    target: str = Field(max_length=MOST_TARGET)
    state: Literal["draft", "edited", "confirmed", "reviewed"]
    version: Version
    writer: Writer = None
    writer_edit: int = Field(0, ge=0, le=MOST_ROW)
    person: Person = None
    act: Literal["type", "alternative", "copy", "clear"] | None = None
    focus: int | None = Field(None, ge=0, le=MOST_ROW)
    ask: bool = False


class CheckedIn(Strict):
    position: int = Field(ge=0, le=MOST_ROW)
    target: str = Field(max_length=MOST_TARGET)


class IgnoredIn(Strict):
    """Findings of a rule that are not to be shown: about these words or any, in one row or in the whole project."""

    rule: str = Field(min_length=1, max_length=60)
    words: str | None = Field(None, max_length=MOST_TARGET)
    document: str | None = Field(None, max_length=64)
    position: int | None = Field(None, ge=0, le=MOST_ROW)


class RulesIn(Strict):
    rules: list[OwnRule] = Field(max_length=MOST_RULES)


class ByIn(Strict):
    """Who does something: the tab or program, which of its writes it is, and a name."""

    writer: Writer = None
    writer_edit: int = Field(0, ge=0, le=MOST_ROW)
    person: Person = None

    def by(self) -> Write:
        """What is known of whoever writes; what is written is not said yet."""
        return Write("", "draft", 0, self.writer, self.writer_edit, self.person)


class SeenIn(ByIn):
    """The version of the row that was seen."""

    version: Version


class SeenRow(Strict):
    version: Version
    position: int = Field(ge=0, le=MOST_ROW)


class SeenRowsIn(ByIn):
    rows: list[SeenRow] = Field(max_length=1_000_000)

    def versions(self) -> dict[int, int]:
        return {row.position: row.version for row in self.rows}


class FocusIn(Strict):
    position: int | None = Field(None, ge=0, le=MOST_ROW)
    writer: Writer = None


class TermIn(Strict):
    source: str = Field(min_length=1, max_length=500)
    target: str = Field(min_length=1, max_length=500)


Json = dict[str, Any]


def settled(rows: list[Segment], left: list[Segment]) -> Json:
    """The rows that were changed, and those that were left because they are not what was seen any more."""
    return {"rows": [segment_json(row) for row in rows], "left": [segment_json(row) for row in left]}


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
        documents = [asdict(one) for one in store.documents(project)]
        forms = get_args(Formality) if service.knows_formality else ("auto",)
        return {**asdict(store.project(project)), "documents": documents, "formalities": forms}

    @router.put("/{project}", summary="Rename a project, or set how people are addressed in it")
    def change_project(project: str, body: ProjectIn) -> Json:
        store.project(project)
        if body.formality is not None:
            workbench.addressing.set(project, body.formality)
        return asdict(store.rename_project(project, body.name) if body.name is not None else store.project(project))

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
        workbench.refresh(project, found)
        return {"pairs": len(found)}

    @router.delete("/{project}/pairs/{pair}", summary="Take a pair out of the memory", status_code=204)
    def remove_pair(project: str, pair: Row) -> None:
        store.remove_pair(project, pair)

    @router.get("/{project}/export/{kind}", summary="The approved rows of all documents: tmx, xliff or jsonl")
    def export_project(project: str, kind: str) -> Response:
        documents = [
            Exported(one.id, one.name, [row for row in store.segments(one.id) if row.is_approved])
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
        languages = service.languages
        read = partial(read_upload, name, content, languages.source, target_language=languages.target)
        file = await run_in_threadpool(read)
        parsed = file.document
        if not parsed.sentences:
            raise Refused(400, f"{name} holds no text to translate")
        if sum(map(len, parsed.sources)) > service.limits.characters:
            raise Refused(413, f"more than {service.limits.characters:,} characters in one document")
        notes = await run_in_threadpool(workbench.checks.notes, parsed.sources)
        document = await run_in_threadpool(workbench.add, project, name, file, content)
        rows = [segment_json(one) for one in store.segments(document)]
        return {**asdict(store.document(document)), "rows": rows, "notes": notes}

    @router.get("/{project}/documents/{document}", summary="A document and its rows")
    def document(project: str, document: str) -> Json:
        checked(project, document)
        workbench.fill(document)
        rows = [segment_json(one) for one in store.segments(document)]
        return {**asdict(store.document(document)), "rows": rows, "typing": workbench.presence.held(document)}

    @router.delete("/{project}/documents/{document}", summary="Delete a document for good", status_code=204)
    def delete_document(project: str, document: str) -> None:
        workbench.delete_document(checked(project, document))

    @router.get("/{project}/documents/{document}/events", summary="News of a document", response_class=Response)
    async def events(
        project: str, document: str, writer: Annotated[str | None, Query(max_length=64)] = None
    ) -> StreamingResponse:
        listening = workbench.presence.news(checked(project, document), writer)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(listening, media_type="text/event-stream", headers=headers)

    @router.get("/{project}/documents/{document}/export/{kind}", summary=f"Export: {', '.join(EXPORTS)}")
    async def export_document(project: str, document: str, kind: str) -> Response:
        checked(project, document)
        name, rows = store.document(document).name, store.segments(document)
        if kind == "file":
            file, align = store.file(document), service.engine.translator.align
            return attachment(
                *await service.scheduler.call(lambda: export_file(name, rows, file, service.languages, align))
            )
        return attachment(*export(kind, name, [Exported(document, name, rows)], service.languages))

    # Rows

    @router.put("/{project}/documents/{document}/segments/{position}", summary="Edit or confirm a row")
    def edit(project: str, document: str, position: Row, body: SegmentIn) -> Json:
        checked(project, document)
        if body.focus is not None:
            workbench.presence.focus(document, body.focus, body.writer)
        asked = body.ask and body.state in APPROVED and bool(body.target.strip())
        found = workbench.checks.of_row(document, position, body.target) if asked else []
        state = "edited" if found else body.state
        write = Write(body.target, state, body.version, body.writer, body.writer_edit, body.person, body.act)
        row = segment_json(workbench.edit(document, position, write))
        return {**row, "findings": [finding_json(one) for one in found]} if asked else row

    @router.post("/{project}/documents/{document}/findings", summary="Check a text for a row, which is not saved")
    def row_findings(project: str, document: str, body: CheckedIn) -> list[Json]:
        found = workbench.checks.of_row(checked(project, document), body.position, body.target)
        return [finding_json(one) for one in found]

    @router.get("/{project}/documents/{document}/findings", summary="What looks wrong in a document")
    def document_findings(project: str, document: str) -> list[Json]:
        return [finding_json(one) for one in workbench.checks.of_document(checked(project, document))]

    @router.get("/{project}/ignored", summary="Findings that a project ignores")
    def ignored(project: str) -> list[Json]:
        return [asdict(one) for one in workbench.checks.ignored(project)]

    @router.post("/{project}/ignored", summary="Ignore findings, in a row or in the project", status_code=201)
    def ignore(project: str, body: IgnoredIn) -> Json:
        return {"id": workbench.checks.ignore(project, body.rule, body.words, body.document, body.position)}

    @router.delete("/{project}/ignored/{number}", summary="Show findings again", status_code=204)
    def notice(project: str, number: Row) -> None:
        workbench.checks.notice(project, number)

    @router.get("/{project}/rules", summary="A project's own rules")
    def own_rules(project: str) -> list[Json]:
        return [rule.model_dump(exclude_none=True) for rule in workbench.checks.rules(project)]

    @router.put("/{project}/rules", summary="Replace a project's own rules")
    def set_rules(project: str, body: RulesIn) -> list[Json]:
        workbench.checks.set_rules(project, body.rules)
        return own_rules(project)

    @router.get("/{project}/documents/{document}/segments/{position}/edits", summary="All edits of a row")
    def edits(project: str, document: str, position: Row) -> list[Json]:
        return [asdict(one) for one in store.edits(checked(project, document), position)]

    @router.get("/{project}/documents/{document}/segments/{position}/alternatives", summary="Other translations")
    async def alternatives(project: str, document: str, position: Row, request: Request) -> Json:
        store.segment(checked(project, document), position)
        found = await unless_gone(request, service.scheduler.run(workbench.alternatives(document, position)))
        memory = service.memories.of(project)
        matches = [
            {
                "source": match.pair.source,
                "target": match.pair.target,
                "similarity": round(match.similarity, 3),
                "difference": [asdict(part) for part in match.difference()],
            }
            for match in memory.matches(store.segment(document, position).source)
        ]
        return {"alternatives": found, "matches": matches}

    @router.get("/{project}/documents/{document}/segments/{position}/explanation", summary="Why these words")
    async def explanation(project: str, document: str, position: Row, request: Request) -> Json:
        store.segment(checked(project, document), position)
        rows, mask, memory = store.segments(document), workbench.masks.of(document), workbench.memory_of(document)
        formality = workbench.addressing.of(project)
        steps = explain_row(service.engine, service.name, rows, position, mask, memory, formality)
        found = await unless_gone(request, service.scheduler.run(steps))
        return {**found, "terms": {str(position): workbench.terms.said(project, rows[position])}}

    @router.get("/{project}/documents/{document}/consistency", summary="Terms translated in several ways")
    async def consistency(project: str, document: str, request: Request) -> list[Json]:
        rows = store.segments(checked(project, document))
        approved = [(pair.source, pair.target) for pair in store.pairs(project, "term")]
        find = partial(inconsistencies, service.engine.translator, rows, approved)
        return await unless_gone(request, service.scheduler.call(find))

    @router.post("/{project}/documents/{document}/segments/{position}/keep", summary="Take a change back")
    def keep(project: str, document: str, position: Row, body: SeenIn) -> Json:
        return segment_json(workbench.keep(checked(project, document), position, body.version, body.by()))

    @router.post("/{project}/documents/{document}/segments/{position}/accept", summary="Leave a change as it is")
    def accept(project: str, document: str, position: Row, body: SeenIn) -> Json:
        return segment_json(workbench.accept(checked(project, document), position, body.version))

    @router.post("/{project}/documents/{document}/undo", summary="Take changes back, all at once")
    def undo(project: str, document: str, body: SeenRowsIn) -> Json:
        return settled(*workbench.undo_changes(checked(project, document), body.versions(), body.by()))

    @router.post("/{project}/documents/{document}/accept", summary="Leave changes as they are, all at once")
    def accept_all(project: str, document: str, body: SeenRowsIn) -> Json:
        return settled(*workbench.accept_changes(checked(project, document), body.versions()))

    @router.post("/{project}/documents/{document}/focus", summary="Which row is being written", status_code=204)
    def focus(project: str, document: str, body: FocusIn) -> None:
        workbench.presence.focus(checked(project, document), body.position, body.writer)
        if body.position is not None:
            workbench.expect_typing(document, body.position)

    @router.post("/{project}/documents/{document}/terms", summary="Approve a translation of a term")
    def approve(project: str, document: str, body: TermIn) -> Json:
        return {"pair": workbench.approve_term(checked(project, document), body.source.strip(), body.target.strip())}

    return router
