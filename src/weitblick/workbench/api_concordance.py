"""The concordance of a project."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from weitblick.workbench.api_projects import Json
from weitblick.workbench.concordance import MOST_HITS, Side, concordance
from weitblick.workbench.errors import Refused
from weitblick.workbench.service import Service

MOST_WORDS = 200


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Projects"])

    @router.get("/{project}/concordance", summary="Where words stand in documents, memory and glossary")
    def find(
        project: str,
        text: Annotated[str, Query(min_length=1, max_length=MOST_WORDS)],
        side: Side = "both",
        document: Annotated[str, Query(max_length=64)] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_HITS)] = 50,
    ) -> Json:
        if not text.strip():
            raise Refused(422, "there is nothing to look for: give some words as text")
        hits, more = concordance(service.store, project, text, side, document, limit)
        return {"hits": [asdict(hit) for hit in hits], "more": more}

    return router
