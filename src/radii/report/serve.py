"""The report as a live, read-only page: the server reads stores and answers four addresses, nothing else."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from radii import _check
from radii.errors import InputError, RadiiError
from radii.report.content import opened
from radii.report.page import policy
from radii.report.payload import as_row
from radii.report.png import shown
from radii.report.watch import LOOK_EVERY, LOOPBACK, Reader, Served, state

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

COOKIE = "radii-token"


def make_app(served: Served) -> Any:
    """The application; every answer, also to a failure, carries a policy that allows nothing from elsewhere."""
    _check.optional("starlette", "serve", "radii serve")
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    reader = Reader(served)

    async def page(request: Request) -> Response:
        return await asyncio.to_thread(_page, reader, request)

    async def witness(request: Request) -> Response:
        return await asyncio.to_thread(_witness, reader, request)

    async def events(request: Request) -> Response:
        return await _events(reader, request)

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok")

    handlers = {"/": page, "/events": events, "/witness": witness, "/health": health}
    app = Starlette(routes=[Route(path, handler, methods=["GET"]) for path, handler in handlers.items()])
    return _Gate(app, served)  # outermost, so that Starlette's own answers pass through it too


class _Gate:
    """Refuses other hosts' names (so that no foreign page can reach a loopback server) and wrong tokens."""

    def __init__(self, app: Any, served: Served) -> None:
        self.app = app
        self.served = served

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse, RedirectResponse

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        answer: Any = self.app
        given = request.query_params.get("token", "")
        if not self._host_ok(request.headers.get("host", "")):
            answer = PlainTextResponse("wrong host", status_code=400)
        elif self.served.token is not None and not self._known(request.cookies.get(COOKIE, "")):
            if self._known(given):  # the token leaves the address bar at once
                answer = RedirectResponse("/", status_code=303)
                answer.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            else:
                answer = PlainTextResponse("token needed: open /?token=…", status_code=403)

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS, (b"content-security-policy", _policy())]
            await send(message)

        await answer(scope, receive, guarded)

    def _host_ok(self, header: str) -> bool:
        """Whether the request names this server: a name or an address, a port at most, and nothing else."""
        match = _HOST.fullmatch(header)
        if match is None:
            return False
        name = (match["name"] or match["address"]).lower()
        if self.served.host in LOOPBACK:
            return name in LOOPBACK
        return self.served.host in ("0.0.0.0", "::") or name == self.served.host.lower()

    def _known(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.served.token or "").encode())


_HOST = re.compile(r"(?:(?P<name>[A-Za-z0-9.-]+)|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::[0-9]{1,5})?", re.ASCII)
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def _policy() -> bytes:
    return f"{policy(live=True)}; frame-ancestors 'none'".encode()


def _page(reader: Reader, request: Request) -> Response:
    from starlette.responses import HTMLResponse, PlainTextResponse

    try:
        return HTMLResponse(reader.kept(reader.asked(request.query_params.getlist("store"))).page)
    except InputError as error:
        return PlainTextResponse(str(error), status_code=404)
    except RadiiError as error:  # a store that cannot be read: the line says what to do
        return PlainTextResponse(str(error), status_code=500)


def _witness(reader: Reader, request: Request) -> Response:
    """The pictures of one witness, named by its place in the page; a place that means another input now is refused."""
    from starlette.responses import JSONResponse, PlainTextResponse

    try:
        kept = reader.kept(reader.asked(request.query_params.getlist("store")))
        series, row, index = (int(request.query_params[name]) for name in ("series", "row", "index"))
        one = kept.content.series[range(len(kept.content.series))[series]]
        found = one.rows.iloc[range(len(one.rows))[row]]
        if int(found["index"]) != index:
            raise InputError("witness: expected an input of this page, got one of an older page")
        with opened(one.source) as store:
            pictures = list(shown(store, [str(found["key"])], kept.originals))
    except (RadiiError, KeyError, ValueError, IndexError):
        return PlainTextResponse("no such witness", status_code=404)
    return JSONResponse(as_row(pictures[0])) if pictures else PlainTextResponse("no picture", status_code=404)


async def _events(reader: Reader, request: Request) -> Response:
    from starlette.responses import PlainTextResponse, StreamingResponse

    try:
        parts = await asyncio.to_thread(reader.asked, request.query_params.getlist("store"))
    except RadiiError as error:
        return PlainTextResponse(str(error), status_code=404)

    async def stream() -> AsyncIterator[str]:
        # What the reader has seen: told by the page at first, by the last event after a lost connection.
        last = request.headers.get("last-event-id") or request.query_params.get("seen")
        yield "retry: 2000\n\n"
        waited = 0.0
        while not await request.is_disconnected():
            await asyncio.sleep(LOOK_EVERY)
            waited += LOOK_EVERY
            now = await asyncio.to_thread(state, parts)
            if now == last or waited < reader.pause(parts):
                yield ": still here\n\n"
                continue
            last, waited = now, 0.0
            yield f"event: change\nid: {now}\ndata: 1\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")
