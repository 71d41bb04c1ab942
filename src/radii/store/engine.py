"""From an address to a database connection, and from its failures to one clear line."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool, StaticPool

from radii import _check
from radii.errors import StoreError

_SCHEMES = ("sqlite", "postgresql", "postgres")
_HINTS = {
    "locked": "is locked by another program; close it or wait, then run the same command again",
    "not a database": "is not an SQLite database; give another file",
    "malformed": "is corrupt; restore a copy, or save what can be read with `sqlite3 FILE .recover`",
    "disk is full": "cannot grow: the disk is full; free some space and run the same command again",
    "disk i/o error": "cannot be read or written (disk error or disk full); check the disk and run again",
    "readonly": "cannot be written; check the permissions of the file and its folder",
    "unable to open": "cannot be opened or created; check that the folder exists and is writable",
    "connection refused": "cannot be reached: nothing listens there; check host and port",
    "timeout expired": "cannot be reached in time; check host, port and network",
    "could not translate host": "cannot be reached: the host name is unknown",
    "failed to resolve host": "cannot be reached: the host name is unknown",
    "password authentication": "refuses this user and password",
    "does not exist": "does not hold this database or role; create it first",
}


def address(where: str | Path) -> URL:
    """The database URL for a path or URL; a bare path is an SQLite file."""
    text = os.fspath(where)
    if "://" not in text:
        return URL.create("sqlite", database=None if text == ":memory:" else text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"store: expected a path, sqlite:///FILE or postgresql://HOST/NAME, got {error}") from None
    scheme = url.get_backend_name()
    if scheme not in _SCHEMES:
        raise StoreError(f"store: expected a path, sqlite:///FILE or postgresql://HOST/NAME, got {scheme}://")
    return url if scheme == "sqlite" else url.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """How a store is named in messages: the path of a file, or the URL without its password."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def connect(url: URL, timeout: float, create: bool = True) -> Engine:
    """An engine for the URL; `timeout` is how many seconds to wait for a lock or a server."""
    if url.get_backend_name() == "sqlite":
        pool = QueuePool if url.database else StaticPool
        options = {"timeout": _patience(url, timeout), "check_same_thread": False}
        engine = create_engine(_still(url), connect_args=options, poolclass=pool)
        event.listen(engine, "connect", _tune_sqlite if create else _tune_reader)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    _check.optional("psycopg", "postgres", "PostgreSQL stores")
    return create_engine(url, connect_args={"connect_timeout": max(2, int(timeout))}, pool_pre_ping=True)


def _still(url: URL) -> URL:
    """The URL, marked as never changing when the file's folder cannot be written and nothing waits beside the file.

    SQLite keeps two small files beside a store in use; where it cannot, it would refuse to read at all.
    """
    file = Path(url.database or "")
    if not url.database or not file.is_file() or _writable(file.parent) or Path(f"{file}-wal").exists():
        return url
    return URL.create("sqlite", database=f"file:{quote(str(file.absolute()))}", query={"immutable": "1", "uri": "true"})


def _patience(url: URL, timeout: float) -> float:
    """How many seconds to wait for a lock: what the URL says (sqlite:///study.db?timeout=5), or the default."""
    said = url.query.get("timeout")
    return timeout if said is None else _check.number(str(said), "store timeout", low=0.0)


def file_of(url: URL) -> str:
    """The path of an SQLite file, empty for a store in memory."""
    return unquote((url.database or "").removeprefix("file:")) if url.query.get("immutable") else url.database or ""


def _writable(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        effective = os.access in os.supports_effective_ids  # whose rights count, where they differ from the caller's
        return os.access(folder, os.W_OK, effective_ids=effective) and not os.statvfs(folder).f_flag & os.ST_RDONLY
    return False


def _tune_reader(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin_sqlite`
    connection.text_factory = _text  # one damaged text must not hide every row of its query
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _tune_sqlite(connection: Any, record: Any) -> None:
    _tune_reader(connection, record)
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete":
        # Another process may be switching just now, or the file may be read-only: it works without, only slower.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode=WAL")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: a reader that later wants to write could not wait its turn.
    options = connection.get_execution_options()
    if not options.get("plain", False):
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("write", False) else "BEGIN")


@contextmanager
def guarded(where: str) -> Iterator[None]:
    """Turns what a database driver raises into a `StoreError` of one line."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = " ".join(str(cause).split())
        hint = next((hint for sign, hint in _HINTS.items() if sign in text.lower()), None)
        raise StoreError(f"store {where} {hint}" if hint else f"store {where}: {text}") from error
