"""Statistics of documents and projects, as JSON and as CSV."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from weitblick.workbench.errors import Refused
from weitblick.workbench.libretranslate import attachment
from weitblick.workbench.service import Service
from weitblick.workbench.statistics import as_csv, document_statistics, project_statistics, together


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1/projects", tags=["Rows"])
    store = service.store

    @router.get("/{project}/statistics", summary="Words by match and by state, of a project", response_model=None)
    def of_project(project: str, format: Literal["json", "csv"] = "json") -> Response:
        name, found = store.project(project).name, project_statistics(store, project)
        if format == "csv":
            table = as_csv([(title, figures) for _, title, figures in found])
            return attachment(f"{name} statistics.csv", table.encode())
        documents = [{"id": one, "name": title, **figures.as_json()} for one, title, figures in found]
        return JSONResponse({**together(figures for *_, figures in found).as_json(), "documents": documents})

    @router.get("/{project}/documents/{document}/statistics", summary="Of a document", response_model=None)
    def of_document(project: str, document: str, format: Literal["json", "csv"] = "json") -> Response:
        known = store.document(document)
        if known.project != project:
            raise Refused(404, "no such document")
        figures = document_statistics(store, document)
        if format == "csv":
            return attachment(f"{known.name} statistics.csv", as_csv([(known.name, figures)]).encode())
        return JSONResponse(figures.as_json())

    return router
