"""Evidence from a study to its check: what is kept, what is confirmed, what is refused."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest
from tests.study.build import toy_study

from radii.cli.main import run
from radii.evidence import read_claim
from radii.store import open_store
from radii.study.audit import audit
from radii.testing.toys import relu_toy

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a study that kept evidence."""
    path = toy_study(tmp_path_factory.mktemp("kept") / "s", evidence=True)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    return path.with_suffix(".db")


def copy(store: Path, to: Path) -> Path:
    to.write_bytes(store.read_bytes())
    return to


def test_every_proof_of_a_study_is_confirmed(store: Path, capfd: Capture) -> None:
    with open_store(store, create=False) as opened:
        records = list(opened.records())
        found = audit(opened)
    proofs = [r for r in records if r.radius.lower is not None and not r.radius.misclassified]
    assert len(proofs) > 3
    assert found.proofs == found.evidence == found.confirmed == len(proofs)
    assert all(read_claim(r.evidence.data).radius == r.radius.lower for r in proofs if r.evidence)
    capfd.readouterr()
    assert run(["check", str(store)]) == 0
    assert f"{len(proofs)} with stored evidence: {len(proofs)} confirmed, 0 refused" in capfd.readouterr().out


def test_a_raised_radius_is_refused(store: Path, tmp_path: Path, capfd: Capture) -> None:
    forged = copy(store, tmp_path / "forged.db")
    with sqlite3.connect(forged) as database:
        database.execute("UPDATE radii SET lower = lower + 1e-9 WHERE lower > 0")
    database.close()
    assert run(["check", str(forged)]) == 1
    out = capfd.readouterr().out
    assert "expected a proof of radius" in out
    assert " 0 confirmed" in out


def test_swapped_and_damaged_evidence_is_refused(store: Path, tmp_path: Path) -> None:
    forged = copy(store, tmp_path / "swapped.db")
    with sqlite3.connect(forged) as database:
        rows = database.execute("SELECT units_id, data FROM evidence ORDER BY units_id").fetchall()
        for (unit, _), (_, data) in zip(rows, rows[1:] + rows[:1], strict=True):
            database.execute("UPDATE evidence SET data = ? WHERE units_id = ?", (data, unit))
        damaged = bytearray(zlib.decompress(rows[0][1]))
        damaged[-1] ^= 1
        database.execute("UPDATE evidence SET data = ? WHERE units_id = ?", (zlib.compress(damaged), rows[0][0]))
    database.close()
    with open_store(forged, create=False) as opened:
        found = audit(opened)
    assert found.confirmed == 0
    assert found.refused == len(rows) == len(found.wrong)


def test_unknown_kinds_are_not_doubted(store: Path, tmp_path: Path) -> None:
    newer = copy(store, tmp_path / "newer.db")
    with sqlite3.connect(newer) as database:
        database.execute("UPDATE evidence SET kind = 'groves'")
    database.close()
    with open_store(newer, create=False) as opened:
        found = audit(opened)
    assert not found.wrong
    assert len(found.unchecked) == found.evidence > 0


def test_one_file(tmp_path: Path, capfd: Capture, store: Path) -> None:
    """`radii radius --evidence` writes what `radii check` reads, and nothing else is needed."""
    net = store.parent / "nets" / "toy0.onnx"
    points = store.parent / "points.npz"
    target = tmp_path / "a.evidence"
    words = ["radius", net, "--data", points, "--index", "0", "--tolerance", "0.01", "--evidence", target]
    assert run([str(word) for word in words]) == 0
    assert run(["check", str(target), "--classifier", str(net)]) == 0
    assert "confirmed: no input within" in capfd.readouterr().out
    target.write_bytes(target.read_bytes()[:-3])
    assert run(["check", str(target), "--classifier", str(net), "--json"]) == 1
    assert '"confirmed": false' in capfd.readouterr().out
    assert run(["check", str(target)]) == 2
    assert "--classifier" in capfd.readouterr().err
    several = [*words[:5], "0:4", *words[6:9], tmp_path / "many"]
    assert run([str(word) for word in several]) == 0
    files = sorted((tmp_path / "many").iterdir())
    assert files
    assert all(run(["check", str(file), "--classifier", str(net)]) == 0 for file in files)
    relu_toy(9).save(tmp_path / "other.onnx")
    assert run(["check", str(files[0]), "--classifier", str(tmp_path / "other.onnx")]) == 1
    assert "refused: evidence: expected a classifier with fingerprint" in capfd.readouterr().out


def test_what_cannot_record_is_refused(tmp_path: Path, capfd: Capture) -> None:
    path = toy_study(tmp_path / "s", evidence=True, verifier="milp")
    assert run(["run", str(path)]) == 2
    assert "expected a verifier that records it" in capfd.readouterr().err
    grid = {"method": "kbinary", "grid": {"start": 0.01, "stop": 0.1, "step": 0.01}}
    path = toy_study(tmp_path / "t", evidence=True, search=grid)
    assert run(["run", str(path)]) == 2
    assert "expected search direct" in capfd.readouterr().err
