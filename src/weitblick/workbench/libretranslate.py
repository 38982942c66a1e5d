"""LibreTranslate's API, so that its clients work here. What is more than it offers: an array is a document, whose
texts are context of each other, unless `"context": false` is sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from weitblick.text.base import clean
from weitblick.translation.options import TranslationOptions
from weitblick.workbench.errors import Refused
from weitblick.workbench.parameters import Languages, flag, integer, parameters, string, strings, upload
from weitblick.workbench.requests import FLAG, TEXT, TEXTS, body, file_body
from weitblick.workbench.scheduler import aside_if_long, unless_gone
from weitblick.workbench.security import client_of
from weitblick.workbench.service import Service
from weitblick.workbench.texts import MarkedTexts, Texts
from weitblick.workbench.transfer import file_endings, file_name

MOST_ALTERNATIVES = 3
AUTO = "auto"
PAIR = {"source": TEXT, "target": TEXT}
KEY = {"api_key": TEXT}
TRANSLATE = body(
    {"q": TEXTS, **PAIR},
    {
        "format": {"enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 10},
        "context": FLAG,
        **KEY,
    },
)


def routes(service: Service) -> APIRouter:
    router = APIRouter(tags=["LibreTranslate"])
    languages = service.languages

    async def asked(request: Request) -> dict[str, Any]:
        """The parameters, once the key among them has been looked at."""
        values = await parameters(request)
        if request.scope.get("weitblick.key") is None:
            key = values.get("api_key")
            service.guard.check_key(key if isinstance(key, str) and key else None, client_of(request.scope))
        return values

    @router.post("/translate", summary="Translate a text or an array of texts", openapi_extra=TRANSLATE)
    async def translate(request: Request) -> Response:
        values = await asked(request)
        texts = strings(values, "q")
        source, target = string(values, "source", AUTO), string(values, "target")
        service.check_length(texts)
        kind = MarkedTexts if _format(values) == "html" else Texts
        most = integer(values, "alternatives", 0, 10)
        languages.check(source, None if target == languages.source else target)
        detected = [languages.detect(text) for text in texts] if source == AUTO else []
        options = TranslationOptions(n_best=1 + min(most, MOST_ALTERNATIVES))
        together = flag(values, "context", True)
        split = await aside_if_long(
            sum(map(len, texts)),
            lambda: kind(texts, languages.source, alphabet=service.alphabet, together=together),
        )
        if target == languages.source or _all_in(detected, target):
            found = [[text] for text in texts]
        else:
            found = await unless_gone(request, service.translate_texts(split, options))
        many = isinstance(values["q"], list)
        answer: dict[str, Any] = {"translatedText": _one_or_all([versions[0] for versions in found], many)}
        if detected:
            shown = [{"language": one.language, "confidence": one.confidence} for one in detected]
            answer["detectedLanguage"] = _one_or_all(shown, many)
        if most:
            answer["alternatives"] = _one_or_all([versions[1 : 1 + most] for versions in found], many)
        return JSONResponse(answer)

    @router.post("/detect", summary="Which language a text is in", openapi_extra=body({"q": TEXTS}, KEY))
    async def detect(request: Request) -> list[dict[str, Any]]:
        found = languages.detect(" ".join(strings(await asked(request), "q")))
        return [{"language": found.language, "confidence": found.confidence}]

    @router.get("/languages", summary="Languages and what they are translated into")
    async def supported(request: Request) -> list[dict[str, Any]]:
        await asked(request)
        source, target = languages.source, languages.target
        return [
            {"code": source, "name": Languages.name(source), "targets": [source, target]},
            {"code": target, "name": Languages.name(target), "targets": [target]},
        ]

    @router.post(
        "/suggest",
        summary="A better translation, for the memory",
        openapi_extra=body({"q": TEXT, "s": TEXT, **PAIR}, KEY),
    )
    async def suggest(request: Request) -> dict[str, bool]:
        values = await asked(request)
        languages.check(string(values, "source"), string(values, "target"))
        source, target = string(values, "q").strip(), string(values, "s").strip()
        if not clean(source) or not clean(target):
            raise Refused(400, "Invalid request: q and s must not be empty")
        service.suggest(source, target)
        return {"success": True}

    @router.post(
        "/translate_file", summary="Translate a file; the answer says where to fetch it", openapi_extra=file_body(PAIR)
    )
    async def translate_file(request: Request) -> dict[str, str]:
        values = await asked(request)
        languages.check(string(values, "source", AUTO), string(values, "target"))
        file = upload(values)
        work = await run_in_threadpool(service.uploads.add, file_name(file.filename), await file.read())
        assert work.work is not None
        await unless_gone(request, service.scheduler.wait(work.work))
        service.uploads.result(work.id)
        base = str(request.base_url).rstrip("/")
        return {"translatedFileUrl": f"{base}/download_file/{work.id}"}

    @router.get("/download_file/{identity}", summary="A translated file")
    async def download_file(identity: str) -> Response:
        return attachment(*service.uploads.result(identity))

    @router.get("/frontend/settings", summary="What a client may offer")
    async def settings() -> dict[str, Any]:
        def named(code: str) -> dict[str, str]:
            return {"code": code, "name": Languages.name(code)}

        return {
            "apiKeys": bool(service.guard.keys),
            "charLimit": service.limits.characters,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": bool(service.guard.keys),
            "language": {"source": named(languages.source), "target": named(languages.target)},
            "suggestions": True,
            "supportedFilesFormat": file_endings(),
        }

    return router


def attachment(name: str, content: bytes) -> Response:
    """A file to save, whatever is in it: never shown as a page of ours."""
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, media_type="application/octet-stream", headers={"Content-Disposition": disposition})


def _format(values: dict[str, Any]) -> str:
    chosen = string(values, "format", "text")
    if chosen not in ("text", "html"):
        raise Refused(400, f"{chosen} format is not supported")
    return chosen


def _all_in(detected: list[Any], language: str) -> bool:
    return bool(detected) and all(one.language == language and one.confidence >= 90 for one in detected)


def _one_or_all(values: list[Any], many: bool) -> Any:
    return values if many else values[0]
