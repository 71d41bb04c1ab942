"""A protocol for uvicorn that closes connections whose request does not come: uvicorn itself waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

SECONDS = 5.0  # from the first moment of a connection, or the first byte of a later request, to the whole request


def prompt(seconds: float = SECONDS) -> Any:
    """uvicorn's HTTP/1.1 protocol with a time-out for the head of a request."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Prompt(H11Protocol):
        """Closes a connection on which no request is whole in time; an answer may take as long as it needs."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._answering:
                self._end()
            elif self._timer is None:  # part of a later request; more parts win it no time
                self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end()
            super().connection_lost(exc)

        @property
        def _answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _begin(self) -> None:
            self._timer = self.loop.call_later(seconds, self._late)

        def _end(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if not self._answering:
                self.transport.close()

    return Prompt
