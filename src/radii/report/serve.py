"""The report as a live, read-only page: the server reads stores and answers three addresses, nothing else."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from radii import _check
from radii.errors import InputError, RadiiError
from radii.report.content import gather, opened
from radii.report.page import Options, html, policy
from radii.store import schema

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "radii-token"
_LOOK_EVERY = 1.0  # seconds between two looks at a store


@dataclass(frozen=True, kw_only=True)
class Served:
    """What is served to whom: stores are named by their number only, so no request can name a file."""

    stores: tuple[str, ...]
    host: str = "127.0.0.1"
    token: str | None = None

    def __post_init__(self) -> None:
        if not self.stores:
            raise InputError("serve: expected at least one store, got none")
        if self.host not in LOOPBACK and len(self.token or "") < 16:
            raise InputError(
                f"--host {self.host}: expected a token of at least 16 characters for a host that others can reach; "
                "give one with --token"
            )


def make_app(served: Served) -> Starlette:
    """The application; every answer carries a policy that allows nothing from elsewhere."""
    _check.optional("starlette", "serve", "radii serve")
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def page(request: Request) -> Response:
        return await asyncio.to_thread(_page, served, request)

    async def events(request: Request) -> Response:
        return _events(served, request)

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok")

    routes = [Route(path, handler, methods=["GET"]) for path, handler in (("/", page), ("/events", events))]
    app = Starlette(routes=[*routes, Route("/health", health, methods=["GET"])])
    app.add_middleware(_Gate, served=served)
    return app


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
        name = header.rsplit(":", 1)[0].strip("[]") if not header.endswith("]") else header.strip("[]")
        if self.served.host in LOOPBACK:
            return name in LOOPBACK
        return self.served.host in ("0.0.0.0", "::") or name == self.served.host

    def _known(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.served.token or "").encode())


_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def _policy() -> bytes:
    return f"{policy(live=True)}; frame-ancestors 'none'".encode()


def _chosen(served: Served, request: Request) -> tuple[str, ...]:
    """The stores asked for, by number; the first one without a question."""
    numbers = request.query_params.getlist("store") or ["0"]
    known = {str(i): where for i, where in enumerate(served.stores)}
    picked = [known[number] for number in numbers if number in known]
    if not picked:
        raise InputError(f"store: expected a number from 0 to {len(known) - 1}, got {numbers[0]!r}")
    return tuple(dict.fromkeys(picked))


def _page(served: Served, request: Request) -> Response:
    from starlette.responses import HTMLResponse, PlainTextResponse

    try:
        chosen = _chosen(served, request)
        options = Options(live=True, stores=served.stores, chosen=chosen)
        return HTMLResponse(html(gather(chosen, title="Live robustness report"), options))
    except RadiiError as error:
        return PlainTextResponse(str(error), status_code=404)


def _events(served: Served, request: Request) -> Response:
    from starlette.responses import PlainTextResponse, StreamingResponse

    try:
        chosen = _chosen(served, request)
    except RadiiError as error:
        return PlainTextResponse(str(error), status_code=404)

    async def stream() -> AsyncIterator[str]:
        last = await asyncio.to_thread(_state, chosen)
        yield "retry: 2000\n\n"
        while not await request.is_disconnected():
            await asyncio.sleep(_LOOK_EVERY)
            now = await asyncio.to_thread(_state, chosen)
            yield "event: change\ndata: 1\n\n" if now != last else ": still here\n\n"
            last = now

    return StreamingResponse(stream(), media_type="text/event-stream")


def _state(stores: Sequence[str]) -> list[tuple[Any, ...]]:
    """A few numbers that change whenever a result, a plan or an alarm is added."""
    from sqlalchemy import func, select

    found: list[tuple[Any, ...]] = []
    for where in stores:
        with opened(where) as store, store.read() as connection:
            radii = connection.execute(
                select(func.count(), func.max(schema.radii.c.finished)).select_from(schema.radii)
            )
            others = [connection.execute(select(func.count()).select_from(t)).scalar_one() for t in _WATCHED]
            found.append((*radii.one(), *others))
    return found


_WATCHED = (schema.plans, schema.alarms)
