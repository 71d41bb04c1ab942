"""What a live page is made from: the stores that are served, and the last pages made from them."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from radii.errors import InputError
from radii.report.content import Content, Part, gather, named, opened
from radii.report.page import Choice, Options, datasets_for, html
from radii.report.png import Originals

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)
LOOK_EVERY = 1.0  # seconds between two looks at a store
_SHARE = 5.0  # a page is not remade before this many times the seconds that making it took have passed
_MOST_KEPT = 4  # pages


@dataclass(frozen=True, kw_only=True)
class Served:
    """What is served to whom: stores are named by their number only, so no request can name a file."""

    stores: tuple[str, ...]
    host: str = "127.0.0.1"
    token: str | None = None
    data: str | None = None
    root: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.stores:
            raise InputError("serve: expected at least one store, got none")
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise InputError(
                "--token: expected letters, digits and . _ ~ - only, so that it can stand in an address; "
                "`openssl rand -hex 16` makes one"
            )
        if self.host not in LOOPBACK and len(self.token or "") < 16:
            raise InputError(
                f"--host {self.host}: expected a token of at least 16 characters for a host that others can reach; "
                "give one with --token"
            )


class Reader:
    """Reads what is asked for and keeps the last few pages, so that many readers cost no more than one."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._kept: dict[tuple[Part, ...], Kept] = {}
        self._lock = threading.Lock()

    def menu(self) -> dict[str, tuple[str, Part]]:
        """What can be chosen, by number: every store, and every study where a store holds several."""
        found: dict[str, tuple[str, Part]] = {}
        for i, where in enumerate(self.served.stores):
            with opened(where) as store:
                shown, studies = store.where, list(store.studies())
            found[str(i)] = (shown, Part(where))
            if len(studies) > 1:
                found |= {f"{i}.{j}": (f"{shown}: {name}", Part(where, name)) for j, name in enumerate(studies)}
        return found

    def asked(self, numbers: Sequence[str]) -> tuple[Part, ...]:
        """The stores and studies asked for, by number; the first store without a question."""
        numbers = numbers or ["0"]
        menu = self.menu()
        picked = [menu[number][1] for number in numbers if number in menu]
        if not picked:
            raise InputError(f"store: expected one of {', '.join(menu)}, got {numbers[0]!r}")
        return tuple(dict.fromkeys(picked))

    def kept(self, parts: tuple[Part, ...]) -> Kept:
        """The content and page of a choice, made anew when a store has changed."""
        now = state(parts)
        with self._lock:
            old = self._kept.pop(parts, None)
            if old is None or old.state != now:
                old = self._made(parts, now)
            self._kept[parts] = old  # the newest is the last
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return old

    def _made(self, parts: tuple[Part, ...], now: str) -> Kept:
        begun = time.perf_counter()
        content = gather(parts, title="Live robustness report")
        asked = self.served
        data = datasets_for(content, asked.data, asked.root, asked.options) if asked.data else ()
        if data:
            content = named(content, data[0].class_names)
        choices = tuple(Choice(value, text, part in parts) for value, (text, part) in self.menu().items())
        page = html(content, Options(live=True, state=now, choices=choices, data=data))
        return Kept(now, content, page, Originals(data), time.perf_counter() - begun)

    def pause(self, parts: tuple[Part, ...]) -> float:
        """Seconds until the next change may be told: pages that are costly to make are made less often."""
        old = self._kept.get(parts)
        return LOOK_EVERY if old is None else max(LOOK_EVERY, _SHARE * old.seconds)


@dataclass(frozen=True)
class Kept:
    """A page with what it was made from and how long that took."""

    state: str
    content: Content
    page: str
    originals: Originals
    seconds: float


def state(parts: Sequence[Part]) -> str:
    """A short text that changes whenever a result, a plan or an alarm is added."""
    found: list[object] = []
    for part in parts:
        with opened(part.store) as store:
            found += store.state()
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]
