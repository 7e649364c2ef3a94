"""What can go wrong: the HTTP status of each error, and its documentation."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from verse.durable import JournalFull, Taken
from verse.serve import schemas
from verse.serve.errors import Busy, Closing, NotFound
from verse.types import BadSetting, BadState, VerseError

TEXTS = {
    400: "Malformed request.",
    401: "A token is needed.",
    403: "Origin not allowed.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    409: "It conflicts with the classes there are.",
    413: "Too large.",
    421: "Host not allowed.",
    422: "Not a supported image, or an invalid label.",
    429: "Too many requests: try again after Retry-After seconds. Nothing was done.",
    503: "Shutting down or failing. Nothing was done.",
    507: "The disk is full. Nothing was done, everything before is safe.",
}
ANY_ROUTE = (400, 401, 403, 408, 413, 421, 429, 503)
CODES: tuple[tuple[type[VerseError], int], ...] = (
    (Busy, 429),
    (Closing, 503),
    (BadState, 503),
    (JournalFull, 507),
    (NotFound, 404),
    (Taken, 409),
    (BadSetting, 409),  # too late to undo; a class into itself
)


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of what can go wrong on a route."""
    return {
        code: {"model": schemas.Problem, "description": TEXTS[code]}
        for code in sorted({*ANY_ROUTE, *codes})
    }


def code_of(error: VerseError) -> int:
    """The HTTP status of an error.

    >>> from verse.types import BadImage
    >>> code_of(BadImage("no")), code_of(Busy("learn", 2))
    (422, 429)
    """
    return next((code for kind, code in CODES if isinstance(error, kind)), 422)


def handle_errors(app: FastAPI) -> None:
    """Every error becomes ``{"detail": …}``."""

    @app.exception_handler(VerseError)
    async def refuse(_: Request, error: VerseError) -> JSONResponse:
        headers = {"Retry-After": str(error.seconds)} if isinstance(error, Busy) else None
        return JSONResponse({"detail": _text(error)}, code_of(error), headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        where = "; ".join(
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()[:5]
        )
        return JSONResponse({"detail": _text(where)}, 422)

    @app.exception_handler(HTTPException)
    async def answer_error(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"detail": _text(error.detail)}, error.status_code, error.headers)


def _text(error: object) -> str:
    """A message may quote a label of an old folder that is no valid text."""
    return str(error).encode("utf-8", "backslashreplace").decode()
