"""Readers of large stores leave evidence where it is: their memory does not grow with it."""

from __future__ import annotations

import sqlite3
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.report.filled import Plan, fill, records

from radii.report.content import gather
from radii.report.page import write_page
from radii.store import Evidence, Store, _examine

EVIDENCE = 1_000_000  # bytes per radius, which do not pack


def peak(where: Path, page: Path) -> int:
    """The most memory, in bytes, that the page of a store takes."""
    tracemalloc.start()
    try:
        write_page(gather([where]), page)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_page_does_not_load_evidence(tmp_path: Path) -> None:
    plan, rng = Plan(networks=("net",), inputs=12), np.random.default_rng(0)
    fill(tmp_path / "light.db", plan)
    heavy = [
        replace(record, evidence=Evidence(kind="tree", data=rng.bytes(EVIDENCE)))
        for record in records(plan, 0, "net", "test")
    ]
    with Store(tmp_path / "heavy.db") as store:
        store.put_many(heavy)
        store.plan("a study", [record.unit for record in heavy], {"name": "a study"})
    assert (tmp_path / "heavy.db").stat().st_size > len(heavy) * EVIDENCE
    write_page(gather([tmp_path / "light.db"]), tmp_path / "warm.html")  # what is loaded once
    more = peak(tmp_path / "heavy.db", tmp_path / "b.html") - peak(tmp_path / "light.db", tmp_path / "a.html")
    assert more < 2 * EVIDENCE


def test_records_are_read_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many at once as their evidence allows, all of them, in order."""
    plan = Plan(networks=("net",), inputs=40)
    fill(tmp_path / "s.db", plan)
    with Store(tmp_path / "s.db") as store:
        whole = [record.unit.key for record in store.records()]
        monkeypatch.setattr(_examine, "PORTION", 20)
        assert [record.unit.key for record in store.records()] == whole
        assert len(whole) == 40
        assert all(item.record is not None and item.record.evidence is None for item in store.examine(evidence=False))


def test_blobs_that_unpack_to_a_thousand_times_their_size_are_damaged(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", Plan(networks=("net",), inputs=4))
    bomb = zlib.compress(bytes(65 * 2**20), 9)
    with sqlite3.connect(tmp_path / "s.db") as database:
        assert database.execute("UPDATE witnesses SET x = ?", [bomb]).rowcount
        assert database.execute("UPDATE evidence SET data = ?", [bomb]).rowcount
    database.close()
    with Store(tmp_path / "s.db") as store:
        faults = "".join("".join(item.faults) for item in store.examine())
    assert "evidence: expected compressed bytes, got damaged ones (cut off, or more than 200 times its size)" in faults
    assert "witness: expected a compressed array, got damaged bytes" in faults
