"""A real PostgreSQL server for the tests, from the binaries that pgserver carries."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fresh_database() -> Iterator[Callable[[], str]]:
    """Makes an empty database on the server and gives its URL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pgserver", reason="POSTGRESQL ABSENT: pip install pgserver")
    pytest.importorskip("psycopg", reason="PSYCOPG ABSENT: pip install 'psycopg[binary]'")
    # Not under pytest's own folder: a server started by root runs as another user, who may not enter that one.
    with tempfile.TemporaryDirectory(prefix="radii-pg-", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        # The data are thrown away: no need to wait for the disk.
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")

        def create() -> str:
            name = f"radii_{uuid.uuid4().hex[:12]}"
            server.psql(f"CREATE DATABASE {name}")
            return str(server.get_uri(name))

        yield create
        server.cleanup()
