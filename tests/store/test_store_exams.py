"""Every kind of store sits the exam: SQLite in a file and in memory, and a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from radii.testing.store_exam import StoreExam


class TestFile(StoreExam):
    def fresh(self, tmp_path: Path) -> str:
        return str(tmp_path / "study.db")


class TestMemory(StoreExam):
    shared = False

    def fresh(self, tmp_path: Path) -> str:
        return ":memory:"


class TestPostgres(StoreExam):
    create: Callable[[], str]

    @pytest.fixture(autouse=True)
    def _server(self, fresh_database: Callable[[], str]) -> None:
        self.create = fresh_database

    def fresh(self, tmp_path: Path) -> str:
        return self.create()
