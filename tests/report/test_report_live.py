"""`radii serve` as a process of its own, under uvicorn, while a store grows; in a real browser where there is one."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from browser import SHOTS, SLOW, open_browser, watched
from filled import HOSTILE, Plan, fill, records

from radii.errors import InputError
from radii.report.watch import Served
from radii.store import Store

TOKEN = "0123456789abcdef"


class Server:
    """`radii serve` on a free port; `ask` sends one request with any headers."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "radii.cli.main", "serve", *map(str, words), "--port", "0"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("http://"), line + self.process.stderr.read()
        self.port = int(line.split("/")[2].rsplit(":", 1)[1])
        self.address = f"http://127.0.0.1:{self.port}/"

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.getheaders()}
        connection.close()
        return found

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live <b>")
    fill(folder / "growing.db", Plan(networks=("first",), inputs=6))
    fill(folder / "other.db", Plan(networks=("first", HOSTILE), inputs=12, dataset="<img src=x onerror=alert(1)>"))
    with Store(folder / "other.db") as store:
        units = [record.unit for record in store.records()]
        store.plan("half", units[:12], {"name": "half"})
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    served = Server(folder / "growing.db", folder / "other.db")
    yield served
    served.end()


def test_the_real_server_refuses_what_it_should(server: Server) -> None:
    status, page, headers = server.ask()
    assert status == 200
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    port = server.port
    for host in (
        *("evil.example", "127.0.0.1.evil.example", f"evil.example:{port}", "localhost@evil.example", ""),
        *("127.0.0.1]", "[127.0.0.1", "127.0.0.1[", f"127.0.0.1:{port}@evil.com", "127.0.0.1:x", "[::1]evil.com"),
        *("localhost:80:80", "127.0.0.1/", "[::1", "::1", "[localhost]"),
    ):
        assert server.ask(Host=host)[0] == 400, host
    for host in (f"localhost:{port}", "LOCALHOST", "127.0.0.1", "[::1]", f"[::1]:{port}"):
        assert server.ask(Host=host)[0] == 200, host
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/static/../growing.db"):
        assert server.ask(path)[0] == 404, path
    for question in ("store=/etc/passwd", "store=2", "store=-1", "store=1.9", "store=1.0'--"):
        assert server.ask(f"/?{question}")[0] == 404, question
        assert server.ask(f"/events?{question}")[0] == 404, question
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert server.ask(method=method)[0] == 405
    hostile = server.ask("/?store=1")[1]
    assert "<script>alert" not in hostile
    assert "<img src=x" not in hostile
    assert "<b>" not in page


def test_studies_of_a_store_can_be_chosen(server: Server) -> None:
    whole, part = server.ask("/?store=1")[1], server.ask("/?store=1.1")[1]
    assert "other.db: half" in whole
    assert whole.count('"name":') == 2
    assert part.count('"name":') == 1
    both = server.ask("/?store=1.0&store=1.1")[1]
    assert both.count('"name":') == 3


def test_a_witness_is_sent_on_demand(server: Server) -> None:
    assert server.ask("/witness?store=0&series=0&row=999&index=0")[0] == 404
    assert server.ask("/witness?store=0&series=-1&row=x&index=0")[0] == 404
    found = [server.ask(f"/witness?store=0&series=0&row={row}&index={row}") for row in range(6)]
    assert any(status == 200 and '"iVBOR' in body for status, body, _ in found)
    assert server.ask("/witness?store=0&series=0&row=1&index=2")[0] == 404


def test_events_tell_of_changes_only(server: Server, folder: Path) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(b"GET /events?store=1&seen=another HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        heard = b""
        while b"event: change" not in heard:
            heard += line.recv(4096)
    assert b"text/event-stream" in heard
    assert b"retry: 2000" in heard


def test_half_sent_requests_are_not_kept(server: Server) -> None:
    """Nothing at all, half a head, and half a head after a whole request: all are closed; a live page is not."""
    whole = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    places = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(401)]
    live, *slow = places
    live.sendall(b"GET /events?store=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    for number, line in enumerate(slow):
        line.sendall((b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", whole + whole[:20])[number % 3])
    for number, line in enumerate(slow):
        heard = b""
        while piece := line.recv(4096):
            heard += piece
        assert heard.startswith(b"HTTP/1.1 200") == (number % 3 == 2)
    assert server.ask("/health")[0] == 200
    assert b"text/event-stream" in live.recv(4096)
    assert live.recv(4096)  # still told something
    for line in places:
        line.close()


def test_a_damaged_store_is_told_with_every_header(folder: Path) -> None:
    """One line that says what is wrong, under the same policy as a page; also where nobody foresaw the failure."""
    fill(folder / "damaged.db", Plan(networks=("first",), inputs=6))
    with sqlite3.connect(folder / "damaged.db") as database:
        database.execute("UPDATE radii SET cpu_seconds = 'long' WHERE units_id = 3")
    database.close()
    served = Server(folder / "damaged.db")
    try:
        status, text, headers = served.ask()
        assert (status, text.count("\n")) == (500, 0)
        assert "column cpu_seconds, got 'long'; `radii check` lists the rows" in text
        (folder / "damaged.db").unlink()
        for path in ("/", "/events", "/witness?store=0&series=0&row=0&index=0"):
            status, text, headers = served.ask(path)
            assert status in (404, 500)
            assert "expected an existing file" in text or path.startswith("/witness")
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
    finally:
        served.end()


def test_an_unforeseen_failure_has_every_header(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient

    from radii.report import serve, watch

    monkeypatch.setattr(watch.Reader, "kept", lambda *_: 1 / 0)
    app = serve.make_app(watch.Served(stores=(str(folder / "growing.db"),)))
    answer = TestClient(app, base_url="http://localhost", raise_server_exceptions=False).get("/")
    assert answer.status_code == 500
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("token", ["sixteen letters;", "schlüsselschlüssel", "0123456789abcdef\n", ""])
def test_a_token_that_cannot_stand_in_an_address(token: str) -> None:
    with pytest.raises(InputError, match="--token: expected letters, digits"):
        Served(stores=("a.db",), token=token)


def test_a_token_is_needed_where_others_can_reach(folder: Path) -> None:
    served = Server(folder / "growing.db", "--host", "0.0.0.0", "--token", TOKEN)
    try:
        assert served.ask()[0] == served.ask("/events")[0] == served.ask("/witness")[0] == 403
        assert served.ask("/?token=wrong")[0] == 403
        status, _, headers = served.ask(f"/?token={TOKEN}")
        assert (status, headers["location"]) == (303, "/")
        assert "httponly" in headers["set-cookie"].lower()
        cookie = headers["set-cookie"].split(";")[0]
        assert served.ask(Cookie=cookie)[0] == 200
        assert served.ask(Cookie="radii-token=0123456789abcdeF")[0] == 403
    finally:
        assert served.end() in (0, -signal.SIGTERM)


def test_a_study_advances_in_an_open_page(server: Server, folder: Path) -> None:
    with open_browser() as browser:
        from playwright.sync_api import expect

        page, errors = watched(browser)
        page.goto(server.address)
        row = page.locator("#sharetable tbody tr td").first
        assert row.inner_text() == "6"
        page.locator("#epsnow").fill("0.05")
        page.locator("#epsnow").press("Enter")
        grow = threading.Thread(target=_grow, args=(folder / "growing.db",))
        grow.start()
        expect(page.locator("#sharetable tbody tr td:nth-child(2)")).to_have_text(["20", "20"], timeout=SLOW)
        grow.join()
        assert page.locator("#epsnow").input_value() == "0.05"
        assert "updated" in page.locator("#live").inner_text()
        page.screenshot(path=SHOTS / "live.png", full_page=True)
        _choose(page, ["store=0", "store=1"])
        assert page.locator("#sharetable tbody tr").count() == 4
        names = page.locator("#neta option").all_inner_texts()
        page.select_option("#neta", "first · digits · growing")
        page.select_option("#netb", "second · digits · growing")
        assert "Of 20 shared inputs" in page.locator("#comparetext").inner_text()
        page.select_option("#netb", next(name for name in names if name.startswith(HOSTILE)))
        assert "share no listed inputs" in page.locator("#comparetext").inner_text()
        page.screenshot(path=SHOTS / "live-two-stores.png", full_page=True)
        assert errors == []


def _choose(page: Any, asked: list[str]) -> None:
    for box in page.locator("#stores input").all():
        box.set_checked("store=" + str(box.get_attribute("value")) in asked)
    page.locator("#stores button").click()
    page.wait_for_selector("html[data-ready=yes]", state="attached")


def _grow(where: Path) -> None:
    """A second writer: the same study goes on, then a second network joins."""
    plan = Plan(networks=("first", "second"), inputs=20)
    with Store(where) as store:
        for number, name in enumerate(plan.networks):
            for start in range(0, 20, 5):
                store.put_many(records(plan, number, name, "test")[start : start + 5])
