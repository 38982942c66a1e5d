"""What a client is told: one line in the shape of the API that it speaks, never a trace."""

from __future__ import annotations

import errno
import logging
import sqlite3
import traceback
from dataclasses import asdict

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from weitblick.common.errors import UserError
from weitblick.workbench.database import is_damage, is_full
from weitblick.workbench.schema import Segment

log = logging.getLogger("weitblick.workbench")

CLIENT_GONE = 499  # as nginx logs it; nobody reads the answer


class Refused(Exception):
    """A request that is not answered as wished."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class Changed(Refused):
    """A row is not what it was when whoever writes it saw it. `segment` is what it is now."""

    def __init__(self, segment: Segment, message: str = "this row was changed elsewhere meanwhile") -> None:
        super().__init__(409, message)
        self.segment = segment


class Closed(Exception):
    """The server is going down."""


class ClientGone(Exception):
    """The client has closed the connection."""


def error_response(
    path: str, status: int, message: str, retry_after: int | None = None, row: Segment | None = None
) -> JSONResponse:
    """An error in the shape that clients of this path expect. `row` is what stands where a row was to be written."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    name = "message" if path.startswith("/v2/") else "error"
    return JSONResponse({name: message, **({} if row is None else {"row": asdict(row)})}, status, headers)


def describe(error: Exception) -> tuple[int, str, int | None]:
    """Status, message and Retry-After for an exception."""
    match error:
        case Refused():
            return error.status, error.message, error.retry_after
        case UserError():
            return 400, str(error), None
        case HTTPException():
            return error.status_code, str(error.detail), None
        case RequestValidationError():
            return 422, _first_mistake(error), None
        case Closed():
            return 503, "the server is going down", 10
        case ClientGone():
            return CLIENT_GONE, "the client has gone", None
        case sqlite3.DatabaseError() if is_damage(error):
            return 500, "the projects on disc are damaged; stop the server, then: weitblick serve --recover", None
        case sqlite3.OperationalError() if is_full(error):
            return 507, "the disc is full: nothing was changed; free some space and try again", None
        case OSError() if error.errno == errno.ENOSPC:
            return 507, "the disc is full: nothing was changed; free some space and try again", None
        case MemoryError():
            return 503, "not enough memory for this request", 30
    return 500, "the server failed; its log says more", None


def log_failure(what: str, error: BaseException) -> None:
    """Where it happened, in code. Not what the error says: that may hold text of documents."""
    places = "".join(traceback.format_tb(error.__traceback__))
    log.error("%s failed with %s\n%s", what, type(error).__name__, places)


def _first_mistake(error: RequestValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    more = len(error.errors()) - 1
    return f"{where or 'body'}: {first['msg']}" + (f" (and {more} more)" if more else "")


def answer_to(path: str, error: Exception) -> JSONResponse:
    """What a client of this path is told of an error; one that nobody foresaw is logged."""
    status, message, retry_after = describe(error)
    if status == 500:
        log_failure("a request", error)
    if status == 422 and not path.startswith("/v1/"):
        status = 400
    return error_response(path, status, message, retry_after, error.segment if isinstance(error, Changed) else None)


def install(app: FastAPI) -> None:
    """For all that is foreseen; what is not is answered in `security.Secure`."""

    async def answer(request: Request, error: Exception) -> Response:
        return answer_to(request.url.path, error)

    for kind in (
        Refused,
        UserError,
        HTTPException,
        RequestValidationError,
        Closed,
        ClientGone,
        sqlite3.Error,
        OSError,
        MemoryError,
    ):
        app.add_exception_handler(kind, answer)
