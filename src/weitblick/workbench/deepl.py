"""DeepL's API, version 2, as far as its clients need it to translate. Unlike DeepL's, the texts of one request are
context of each other here; `context` is context of all of them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from weitblick.translation.options import Formality, TranslationOptions
from weitblick.workbench.errors import Refused
from weitblick.workbench.libretranslate import attachment
from weitblick.workbench.parameters import Languages, base, parameters, string, strings, upload
from weitblick.workbench.requests import TEXT, TEXTS, body, file_body
from weitblick.workbench.scheduler import aside_if_long, unless_gone
from weitblick.workbench.service import Service
from weitblick.workbench.texts import MarkedTexts, Texts, XmlTexts
from weitblick.workbench.transfer import file_name

UNLIMITED = 10**12
FORMALITY: dict[str, Formality] = {
    "default": "auto", "more": "formal", "less": "informal", "prefer_more": "formal", "prefer_less": "informal"
}  # fmt: skip
TRANSLATE = body(
    {"text": TEXTS, "target_lang": TEXT},
    {
        "source_lang": TEXT,
        "context": TEXT,
        "tag_handling": {"enum": ["html", "xml"]},
        "formality": {"enum": list(FORMALITY)},
    },
)
DOCUMENT_KEY = body({"document_key": TEXT})
MOST_TEXTS = 1000
TAG_HANDLING: dict[str, type[Texts]] = {"html": MarkedTexts, "xml": XmlTexts}
LINGER_SECONDS = 30.0
"""DeepL's client hangs up after 10 seconds, waits a little and sends the same again: the work goes on meanwhile."""


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v2", tags=["DeepL"])
    languages = service.languages

    @router.get("/translate", include_in_schema=False)
    @router.post("/translate", summary="Translate texts", openapi_extra=TRANSLATE)
    async def translate(request: Request) -> dict[str, Any]:
        values = await parameters(request)
        texts = strings(values, "text")
        if len(texts) > MOST_TEXTS:
            raise Refused(400, f"more than {MOST_TEXTS} texts in one request")
        source = _check(languages, values)
        before = string(values, "context", "")
        service.check_length([*texts, before])
        kind = TAG_HANDLING.get(string(values, "tag_handling", ""), Texts)
        long = sum(map(len, texts)) + len(before)
        split = await aside_if_long(
            long, lambda: kind(texts, languages.source, alphabet=service.alphabet, before=before)
        )
        options = TranslationOptions(formality=_formality(service, values))
        found = await unless_gone(request, service.translate_texts(split, options, linger=LINGER_SECONDS))
        return {
            "translations": [
                {
                    "detected_source_language": (source or languages.source).upper(),
                    "text": versions[0],
                    "billed_characters": len(text),
                }
                for text, versions in zip(texts, found, strict=True)
            ]
        }

    @router.get("/languages", include_in_schema=False)
    @router.post("/languages", summary="Languages that are translated from or into")
    async def supported(request: Request) -> list[dict[str, Any]]:
        wanted = string(await parameters(request), "type", "source")
        if wanted not in ("source", "target"):
            raise Refused(400, "type is neither source nor target")
        code = languages.source if wanted == "source" else languages.target
        formality = {"supports_formality": service.knows_formality} if wanted == "target" else {}
        return [{"language": code.upper(), "name": Languages.name(code), **formality}]

    @router.get("/usage", include_in_schema=False)
    @router.post("/usage", summary="Characters translated since the server started")
    async def usage() -> dict[str, int]:
        return {"character_count": service.characters, "character_limit": UNLIMITED}

    @router.get("/glossary-language-pairs", include_in_schema=False)
    @router.post("/glossary-language-pairs", summary="Pairs that glossaries can have")
    async def pairs() -> dict[str, Any]:
        return {"supported_languages": [{"source_lang": languages.source, "target_lang": languages.target}]}

    @router.post("/document", summary="Upload a file to translate", openapi_extra=file_body({"target_lang": TEXT}))
    async def document(request: Request) -> dict[str, str]:
        values = await parameters(request)
        _check(languages, values)
        file = upload(values)
        name = file_name(string(values, "filename", file.filename or ""))
        work = await run_in_threadpool(service.uploads.add, name, await file.read())
        return {"document_id": work.id, "document_key": work.key}

    @router.get("/document/{identity}", include_in_schema=False)
    @router.post("/document/{identity}", summary="How far a file is", openapi_extra=DOCUMENT_KEY)
    async def status(identity: str, request: Request) -> dict[str, Any]:
        work = service.uploads.get(identity, string(await parameters(request), "document_key"))
        answer: dict[str, Any] = {"document_id": identity, "status": work.status}
        if work.status == "done":
            answer["billed_characters"] = work.characters
        if work.error:
            answer["error_message"] = work.error
        return answer

    @router.get("/document/{identity}/result", include_in_schema=False)
    @router.post("/document/{identity}/result", summary="A translated file", openapi_extra=DOCUMENT_KEY)
    async def result(identity: str, request: Request) -> Response:
        return attachment(*service.uploads.result(identity, string(await parameters(request), "document_key")))

    return router


def _formality(service: Service, values: dict[str, Any]) -> Formality:
    """The form of address that is asked for; what is only preferred is nothing to a model that knows none."""
    asked = string(values, "formality", "default")
    if asked not in FORMALITY:
        raise Refused(400, f"Value for 'formality' not supported: {asked}; one of {', '.join(FORMALITY)} is")
    if asked.startswith("prefer_") and not service.knows_formality:
        return "auto"
    service.check_formality(FORMALITY[asked])
    return FORMALITY[asked]


def _check(languages: Languages, values: dict[str, Any]) -> str | None:
    source = string(values, "source_lang", "") or None
    languages.check(source, string(values, "target_lang"))
    return base(source) if source else None
