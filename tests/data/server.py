"""A real HTTP server on this machine that serves bytes, with ranges, and breaks off on demand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Files(ThreadingHTTPServer):
    """Serves `content` by path; `cut` bodies are broken off after that many bytes, the next `cuts` times."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content: dict[str, bytes] = {}
        self.cut, self.cuts = 0, 0
        self.ranges = True
        self.asked: list[str | None] = []

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: Files

    def do_GET(self) -> None:
        body = self.server.content.get(self.path.lstrip("/"))
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if body is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        if start and start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if self.server.cuts > 0:
            self.server.cuts -= 1
            body = body[: start + self.server.cut]
            self.close_connection = True
        self.wfile.write(body[start:])

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


@contextmanager
def serving() -> Iterator[Files]:
    with Files() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
