"""Our own API: whole documents in, with what is known about them already; whole documents out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from weitblick.documents.document import Document, Sentence
from weitblick.files.masked_document import MaskedDocument
from weitblick.memory.store import Memory
from weitblick.text.base import without_surrogates
from weitblick.translation.options import OPTIONS, Formality, TranslationOptions
from weitblick.translation.results import TranslatedDocument
from weitblick.workbench.errors import Refused
from weitblick.workbench.libretranslate import attachment
from weitblick.workbench.parameters import parameters, upload
from weitblick.workbench.requests import file_body
from weitblick.workbench.scheduler import aside_if_long, unless_gone
from weitblick.workbench.service import Service
from weitblick.workbench.texts import read_plain
from weitblick.workbench.transfer import file_name
from weitblick.workbench.uploads import Upload

MOST_SENTENCES = 20_000
MOST_HYPOTHESES = 16
"""Of a sentence, in a request: others wait meanwhile."""
Text = Annotated[str, Field(max_length=100_000)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SentenceIn(Strict):
    """A source sentence; a `draft` may be improved, a `locked` target is approved and never changed."""

    source: Text
    target: Text | None = None
    status: Literal["draft", "locked"] | None = None
    id: str | None = Field(None, max_length=500)

    @model_validator(mode="after")
    def _target_with_status(self) -> SentenceIn:
        if self.status is not None and self.target is None:
            raise ValueError(f"a {self.status} sentence needs a target")
        return self


class DocumentIn(Strict):
    """`sentences`, or `text` that is split into sentences here."""

    id: str = Field("1", max_length=500)
    sentences: list[SentenceIn | Text] | None = Field(None, max_length=MOST_SENTENCES)
    text: str | None = Field(None, max_length=2_000_000)

    @model_validator(mode="after")
    def _one_of_both(self) -> DocumentIn:
        if (self.sentences is None) == (self.text is None):
            raise ValueError("give either sentences or text")
        return self


class PairIn(Strict):
    source: Text
    target: Text


class TranslateIn(Strict):
    documents: list[DocumentIn] = Field(min_length=1, max_length=1000)
    source_language: str | None = Field(None, max_length=20)
    target_language: str | None = Field(None, max_length=20)
    memory: list[PairIn] | str | None = Field(None, description="approved pairs, or the id of a project")
    explain: bool = Field(False, description="what the context did to every word, as `weitblick explain` says it")
    beam: int | None = Field(None, ge=OPTIONS["beam"].least, le=MOST_HYPOTHESES)
    n_best: int = Field(1, ge=OPTIONS["n_best"].least, le=MOST_HYPOTHESES)
    context: bool = Field(True, description=OPTIONS["context"].help)
    formality: Formality = Field("auto", description=OPTIONS["formality"].help)

    @model_validator(mode="after")
    def _possible(self) -> TranslateIn:
        if self.beam is not None and self.n_best > self.beam:
            raise ValueError(f"n_best {self.n_best} is more than beam {self.beam}")
        return self


class SentenceOut(BaseModel):
    source: str
    target: str
    status: Literal["draft", "locked"] | None
    id: str | None
    confidence: float | None
    alternatives: list[str]


class DocumentOut(BaseModel):
    id: str
    sentences: list[SentenceOut]
    explanation: dict[str, Any] | None = None
    notes: list[str] = Field([], description="what was put back or is missing in a translation and should be checked")


class TranslateOut(BaseModel):
    model: str
    documents: list[DocumentOut]


class UploadOut(BaseModel):
    id: str
    name: str
    status: Literal["queued", "translating", "done", "error"]
    sentences: int
    finished: int
    error: str | None


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["Documents"])

    @router.post("/translate", summary="Translate documents")
    async def translate(request: Request, body: TranslateIn) -> TranslateOut:
        service.languages.check(body.source_language, body.target_language)
        memory = _memory(service, body.memory)
        service.check_formality(body.formality)
        options = TranslationOptions(
            beam=body.beam, n_best=body.n_best, context=body.context, memory=memory, formality=body.formality
        )
        service.check_length([one.text for one in body.documents if one.text is not None])
        documents = await aside_if_long(
            sum(len(one.text or "") for one in body.documents),
            lambda: [_document(one, service) for one in body.documents],
        )
        masked = [one.masked() for one in documents]
        translated = await unless_gone(request, service.scheduler.translate(masked, options))
        answers = await unless_gone(
            request, service.scheduler.call(lambda: _answers(service, documents, translated, options))
        )
        if body.explain:
            for answer, document in zip(answers, documents, strict=True):
                answer.explanation = await unless_gone(request, _explanation(service, document, body.beam, memory))
        return TranslateOut(model=service.name, documents=answers)

    @router.post("/documents", summary="Upload a file to translate", openapi_extra=file_body())
    async def add(request: Request) -> UploadOut:
        file = upload(await parameters(request))
        return _upload(await run_in_threadpool(service.uploads.add, file_name(file.filename), await file.read()))

    @router.get("/documents/{identity}", summary="How far a file is")
    async def status(identity: str) -> UploadOut:
        return _upload(service.uploads.get(identity))

    @router.get("/documents/{identity}/result", summary="The translated file", response_class=Response)
    async def result(identity: str) -> Response:
        return attachment(*service.uploads.result(identity))

    @router.delete("/documents/{identity}", summary="Forget a file", status_code=204)
    async def delete(identity: str) -> None:
        service.uploads.delete(identity)

    return router


def _document(given: DocumentIn, service: Service) -> MaskedDocument:
    """A document of a request, with what is carried in it masked."""
    language, alphabet = service.languages.source, service.alphabet
    if given.text is not None:
        read = read_plain(without_surrogates(given.text), language, alphabet).document.sentences
        sentences = tuple(Sentence(sentence.source) for sentence in read)
    else:
        rows = [SentenceIn(source=row) if isinstance(row, str) else row for row in given.sentences or ()]
        sentences = tuple(Sentence(without_surrogates(row.source), row.target, row.status, row.id) for row in rows)
    return MaskedDocument.of_sentences(Document(given.id, sentences), language, alphabet)


def _memory(service: Service, given: list[PairIn] | str | None) -> Memory | None:
    if given is None:
        return None
    if isinstance(given, str):
        project = service.store.project(given).id
        return service.memory_of(project) if service.reads_memory else service.memories.of(project)
    memory = Memory()
    for pair in given:
        if not pair.source.strip() or not pair.target.strip():
            raise Refused(422, "memory: a pair needs a source and a target")
        memory.add(pair.source, pair.target, "request")
    return memory


def _answers(
    service: Service,
    documents: Sequence[MaskedDocument],
    translated: Sequence[TranslatedDocument],
    options: TranslationOptions,
) -> list[DocumentOut]:
    """What people read of masked documents that were translated."""
    engine, again = service.engine, replace(options, n_best=1)
    return [
        _answer(
            *document.unmasked_translations(found, engine.translator.align, lambda lost: engine.translated(lost, again))
        )
        for document, found in zip(documents, translated, strict=True)
    ]


def _answer(translated: TranslatedDocument, notes: list[str]) -> DocumentOut:
    sentences = [
        SentenceOut(
            source=sentence.source,
            target=sentence.target or "",
            status=sentence.status,
            id=sentence.id,
            confidence=round(found[0].confidence, 6) if found else None,
            alternatives=[translation.text for translation in found[1:]],
        )
        for sentence, found in zip(translated.document.sentences, translated.translations, strict=True)
    ]
    return DocumentOut(id=translated.document.id, sentences=sentences, notes=notes)


async def _explanation(
    service: Service, document: MaskedDocument, beam: int | None, memory: Memory | None
) -> dict[str, Any]:
    from weitblick.explanation.explain import explain
    from weitblick.explanation.storage import to_json

    translator = service.engine.translator
    found = await service.scheduler.call(
        lambda: explain(translator, document, model_name=service.name, beam=beam, memory=memory)
    )
    return to_json(found)


def _upload(one: Upload) -> UploadOut:
    return UploadOut(
        id=one.id, name=one.name, status=one.status, sentences=one.sentences, finished=one.finished, error=one.error
    )
