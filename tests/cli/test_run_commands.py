"""`radii run` and what reads its store, as a user types them."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest
import yaml
from tests.cli.command import refused_here
from tests.study.build import toy_study, written

from radii.cli.main import run
from radii.formats import read_vnnlib
from radii.store import open_store
from radii.testing.toys import relu_toy

CONTRACT = [
    *("classifier", "dataset", "split", "index", "label", "prediction", "property", "target", "norm", "lower", "upper"),
    *("status", "search", "verifier", "queries", "timeouts", "memory_errors", "cancelled", "cpu_seconds"),
    *("wall_seconds", "seed"),
]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study; its store is study.db beside it."""
    path = toy_study(tmp_path_factory.mktemp("finished"))
    assert run(["run", str(path), "--runner", "serial"]) == 0
    return path


def said(capfd: Capture, *words: object, code: int = 0) -> str:
    capfd.readouterr()
    assert run([str(word) for word in words]) == code
    return capfd.readouterr().out


def test_export(study: Path, capfd: Capture, tmp_path: Path) -> None:
    store = study.with_suffix(".db")
    rows = list(csv.DictReader(io.StringIO(said(capfd, "export", store))))
    assert list(rows[0])[: len(CONTRACT)] == CONTRACT
    assert len(rows) == 12
    assert {row["classifier"] for row in rows} == {"toy0", "toy1"}
    assert json.loads(said(capfd, "export", store, "--format", "json", "--classifier", "toy1"))[0]["norm"] == "linf"
    assert said(capfd, "export", store, "--what", "queries").startswith("classifier,")
    said(capfd, "export", store, "--format", "vnnlib", "-o", tmp_path / "bundle")
    listed = list(csv.reader((tmp_path / "bundle" / "expected.csv").read_text().splitlines()))
    ends = sum(
        (row["lower"] not in ("", "0.0")) + (row["upper"] != "") for row in rows if row["status"] != "misclassified"
    )
    assert len(listed) == ends
    network, query, _ = listed[0]
    assert (tmp_path / "bundle" / network).read_bytes() == (study.parent / "nets" / Path(network).name).read_bytes()
    assert len(read_vnnlib(tmp_path / "bundle" / query).queries) == 1


def test_status_and_dry_run(study: Path, capfd: Capture, tmp_path: Path) -> None:
    listed = json.loads(said(capfd, "status", study.with_suffix(".db"), "--json"))["studies"]
    assert [(row["classifier"], row["planned"], row["done"]) for row in listed] == [("toy0", 6, 6), ("toy1", 6, 6)]
    foretold = json.loads(said(capfd, "run", study, "--dry-run", "--json"))
    assert foretold["missing"] == {"toy0": 0, "toy1": 0}
    elsewhere = tmp_path / "absent.db"
    assert "12 to do" in said(capfd, "run", study, "--store", elsewhere, "--dry-run")
    assert not elsewhere.exists()


def test_merge(study: Path, capfd: Capture, tmp_path: Path) -> None:
    target = tmp_path / "all.db"
    said(capfd, "store", "merge", target, study.with_suffix(".db"))
    assert json.loads(said(capfd, "store", "info", target, "--json"))["rows"]["radii"] == 12
    said(capfd, "store", "vacuum", target)
    assert said(capfd, "export", target) == said(capfd, "export", study.with_suffix(".db"))


def test_gate(study: Path, capfd: Capture) -> None:
    store = study.with_suffix(".db")
    assert "pass" in said(capfd, "gate", store, "--robust-accuracy", "0.01@0", "--classifier", "toy0")
    failed = json.loads(said(capfd, "gate", store, "--robust-accuracy", "0.99@0.5", "--json", code=1))
    assert [row["passed"] for row in failed] == [False, False]
    assert "SHARE@EPSILON" in refused_here(capfd, "gate", store, "--robust-accuracy", "0.9")


def test_an_input_that_was_measured_twice(tmp_path: Path, capfd: Capture) -> None:
    """A gate counts it once, with its best ends; a proof of one row beyond the witness of the other is found."""
    ways = [{"method": "direct", "tolerance": tolerance} for tolerance in (0.01, 0.1)]
    path = toy_study(tmp_path / "s", nets=1, search=ways)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    store = path.with_suffix(".db")
    words = ("gate", store, "--robust-accuracy", "0@0", "--json")
    judged = json.loads(said(capfd, *words))
    rows = list(csv.DictReader(io.StringIO(said(capfd, "export", store))))
    assert len(rows) == 12
    assert [one["inputs"] for one in judged] == [len({row["content"] for row in rows})] == [6]
    with sqlite3.connect(store) as database:
        database.execute("UPDATE radii SET lower = 0.9, upper = NULL, status = 'open' WHERE tolerance = 0.1")
        database.execute("DELETE FROM witnesses WHERE units_id IN (SELECT units_id FROM radii WHERE tolerance = 0.1)")
    database.close()
    found = json.loads(said(capfd, "check", store, "--json", code=1))["wrong"]
    assert sum("proven up to 0.9 but broken at" in one["message"] for one in found) == 6


def test_check_finds_a_false_witness(study: Path, capfd: Capture, tmp_path: Path) -> None:
    assert "0 wrong" in said(capfd, "check", study.with_suffix(".db"))
    forged = tmp_path / "forged.db"
    said(capfd, "store", "merge", forged, study.with_suffix(".db"))
    with sqlite3.connect(forged) as database:
        # A witness farther away than the radius claims.
        database.execute("UPDATE radii SET upper = lower + 1e-9 WHERE status = 'closed'")
    database.close()
    assert "does not replay" in said(capfd, "check", forged, code=1)


def test_a_changed_network_is_refused(tmp_path: Path, capfd: Capture) -> None:
    path = toy_study(tmp_path / "s", nets=1)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    relu_toy(7).save(path.parent / "nets" / "toy0.onnx")
    capfd.readouterr()
    assert run(["run", str(path), "--runner", "serial"]) == 2
    assert "has changed since the store was made" in capfd.readouterr().err
    assert run(["check", str(path.with_suffix(".db"))]) == 3
    assert "expected the network that the study began with" in capfd.readouterr().err


def test_bad_stores_and_addresses(study: Path, tmp_path: Path, capfd: Capture) -> None:
    corrupt = tmp_path / "corrupt.db"
    corrupt.write_bytes(b"no database at all" * 100)
    assert "not an SQLite database" in refused_here(capfd, "run", study, "--store", corrupt)
    newer = tmp_path / "newer.db"
    open_store(newer).close()
    with sqlite3.connect(newer) as database:
        database.execute("UPDATE radii_store SET value = '99' WHERE name = 'schema'")
    database.close()
    assert "upgrade radii" in refused_here(capfd, "run", study, "--store", newer)
    assert "expected an existing file" in refused_here(capfd, "status", tmp_path / "absent.db")
    assert "did you mean 'local'?" in refused_here(capfd, "run", study, "--runner", "locl")
    assert "--runner ray" in refused_here(capfd, "run", study, "--address", "auto")
    pytest.importorskip("psycopg")
    nobody = "postgresql://radii@127.0.0.1:9/none"
    assert "cannot be reached" in refused_here(capfd, "run", study, "--store", nobody)


@pytest.mark.filterwarnings("ignore")
def test_an_unreachable_cluster(study: Path, capfd: Capture, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="RAY ABSENT: pip install 'radii[ray]'")
    words = ("run", study, "--runner", "ray", "--address", "127.0.0.1:9", "--store", tmp_path / "new.db")
    assert "expected a cluster at 127.0.0.1:9" in refused_here(capfd, *words)


def test_bad_study_files(study: Path, tmp_path: Path, capfd: Capture) -> None:
    body = yaml.safe_load(study.read_text())
    folder = study.parent
    for change, hint in (
        ({"budgt": {}}, "did you mean 'budget'?"),
        ({"classifiers": "nets/none*.onnx"}, "got none"),
        ({"classifiers": "absent.onnx"}, "absent.onnx"),
        ({"verifier": "nativ"}, "did you mean 'native'?"),
        ({"norm": "l7"}, "l7"),
        ({"data": {"source": "points.npz", "indices": "0:700"}}, "expected positions"),
    ):
        (tmp_path / "x").mkdir(exist_ok=True)
        path = written(tmp_path / "x", {**body, **change})
        (folder / "bad.yaml").write_text(path.read_text())
        assert hint in refused_here(capfd, "run", folder / "bad.yaml")
