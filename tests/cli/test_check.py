"""`radii check` believes nothing that a forward pass or arithmetic can refute, and one bad row hides no other."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import sqlite3
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.study.build import toy_study

from radii.cli.main import run
from radii.engine.radius_search import RadiusSearch
from radii.errors import InputError
from radii.problem import Instance
from radii.store import open_store
from radii.study.recall import Recall

Capture = pytest.CaptureFixture[str]
Forge = Callable[..., Path]

CLOSED = "(SELECT units_id FROM radii WHERE status = 'closed' ORDER BY units_id LIMIT 1)"
WRONG = "(SELECT units_id FROM radii WHERE status = 'misclassified' ORDER BY units_id LIMIT 1)"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study with evidence and with misclassified inputs."""
    path = toy_study(tmp_path_factory.mktemp("trusted") / "s", evidence=True)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    return path.with_suffix(".db")


@pytest.fixture
def forge(store: Path, tmp_path: Path) -> Forge:
    """A copy of the store after some SQL."""

    def forged(*statements: str, **values: Any) -> Path:
        copy = Path(shutil.copy(store, tmp_path / "forged.db"))
        with sqlite3.connect(copy) as database:
            assert all(database.execute(statement, values).rowcount for statement in statements)
        database.close()
        return copy

    return forged


def checked(capfd: Capture, store: Path, code: int) -> dict[str, Any]:
    """The result of `radii check --json`."""
    capfd.readouterr()
    assert run(["check", str(store), "--json"]) == code, capfd.readouterr()
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def lines(found: dict[str, Any]) -> str:
    return "\n".join(one["message"] for one in found["wrong"])


def test_an_honest_store(store: Path, capfd: Capture) -> None:
    found = checked(capfd, store, 0)
    assert (found["wrong"], found["unchecked"], found["missing"]) == ([], [], [])
    assert found["predicted"] == found["records"] == len(found["rows"]) == 12
    assert 0 < found["misclassified"] < 12
    assert {row["rests_on"] for row in found["rows"]} == {"evidence", None}


FORGERIES = {
    "a misclassified input made robust": (
        (
            f"UPDATE radii SET lower = 0.5, upper = NULL, \"limit\" = 0.5, status = 'robust', misclassified = 0, "
            f"proof = 'branch', arithmetic = 'real', tool = 'radii' WHERE units_id = {WRONG}"
        ),
        ["gets the input itself wrong", "but the study asked for"],
    ),
    "a correct input made misclassified": (
        (
            "UPDATE radii SET lower = 0, upper = 0, status = 'misclassified', misclassified = 1, proof = NULL "
            f"WHERE units_id = {CLOSED}"
        ),
        ["stored as misclassified, but the original model gets it right"],
    ),
    "a larger upper end": (
        f"UPDATE radii SET upper = 3 * upper, status = 'open' WHERE units_id = {CLOSED}",
        ["but its witness lies", "smallest ε that its search broke"],
    ),
    "a smaller upper end": (
        f"UPDATE radii SET upper = lower + 1e-9 WHERE units_id = {CLOSED}",
        ["does not replay on the original model: it lies"],
    ),
    "a status": (f"UPDATE radii SET status = 'open' WHERE units_id = {CLOSED}", ["its ends say 'closed'"]),
    "a prediction": (
        f"UPDATE radii SET prediction = (prediction + 1) % 3 WHERE units_id = {CLOSED}",
        ["but the original model says"],
    ),
    "the prediction of a misclassified input": (
        (
            "UPDATE radii SET prediction = (SELECT label FROM instances JOIN units ON instances.id = instances_id "
            f"WHERE units.id = radii.units_id) WHERE units_id = {WRONG}"
        ),
        ["but the original model says"],
    ),
    "a distance": (f"UPDATE witnesses SET distance = distance / 2 WHERE units_id = {CLOSED}", ["of the witness, but"]),
    "what a witness is taken for": (
        (
            f"UPDATE witnesses SET prediction = (SELECT prediction FROM radii WHERE units_id = {CLOSED}) "
            f"WHERE units_id = {CLOSED}"
        ),
        ["the witness is taken for"],
    ),
    "a lower end without a proof's evidence": (
        f"UPDATE radii SET lower = lower * 1.0001 WHERE units_id = {CLOSED}",
        ["expected a proof of radius"],
    ),
    "a tolerance": (
        f"UPDATE radii SET tolerance = 10 WHERE units_id = {CLOSED}",
        ["tolerance 10.0, but the study asked for 0.01"],
    ),
    "a deleted witness": (f"DELETE FROM witnesses WHERE units_id = {CLOSED}", ["without a witness"]),
    "a proof without a lower end": (
        f"UPDATE radii SET lower = NULL, status = 'open' WHERE units_id = {CLOSED}",
        ["without a lower end", "expected a proof of radius None"],
    ),
    "a label": (
        f"UPDATE instances SET label = (label + 1) % 3 WHERE id = (SELECT instances_id FROM units WHERE id = {CLOSED})",
        ["expected the content that its key"],
    ),
    "a norm": ("UPDATE settings SET norm = 'l2'", ["expected the content that its key"]),
    "a network": (
        "UPDATE units SET classifiers_id = 3 - classifiers_id",
        ["expected the content that its key"],
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_can_be_refuted_is_refuted(name: str, forge: Forge, capfd: Capture) -> None:
    statement, expected = FORGERIES[name]
    found = checked(capfd, forge(statement), 1)
    for line in expected:
        assert line in lines(found)
    assert found["records"] == len(found["rows"]) == 12
    bad = {one["key"] for one in found["wrong"]}
    assert {row["key"] for row in found["rows"] if row["wrong"]} == bad
    if "LIMIT 1" in statement and name != "a label":  # an input belongs to both networks
        assert len(bad) == 1


def test_a_label_whose_hashes_were_made_anew(store: Path, tmp_path: Path, capfd: Capture) -> None:
    """A forger who knows how keys are made: only the data set can tell."""
    x = np.load(store.parent / "points.npz")["x"]
    copy = tmp_path / "relabelled.db"
    with open_store(store, create=False) as source, open_store(copy) as target:
        for record in source.records():
            place = record.unit.instance
            if place.index == 2:
                label = (place.label + 1) % 3
                print_ = Instance(x[2], label).fingerprint
                unit = replace(record.unit, instance=replace(place, label=label, fingerprint=print_))
                record = replace(record, unit=unit, evidence=None)
            target.put(record)
        target.plan("toys", [], {"data": source.studies()["toys"]["data"]})
    found = checked(capfd, copy, 1)
    assert sum("but the data set says" in one["message"] and one["index"] == 2 for one in found["wrong"]) == 2


def test_every_bad_row_is_listed(forge: Forge, store: Path, capfd: Capture) -> None:
    """Ends that crossed, damaged blobs and text for a number: each row is named, and the others are checked."""
    with sqlite3.connect(store) as database:
        rows = [row[0] for row in database.execute("SELECT units_id FROM radii WHERE status = 'closed'")]
        data = bytearray(database.execute("SELECT data FROM evidence WHERE units_id = ?", rows[1:2]).fetchone()[0])
        x = bytearray(database.execute("SELECT x FROM witnesses WHERE units_id = ?", rows[2:3]).fetchone()[0])
    database.close()
    data[len(data) // 2] ^= 4
    x[len(x) // 2] ^= 4
    copy = forge(
        f"UPDATE radii SET lower = upper + 0.1 WHERE units_id = {rows[0]}",
        f"UPDATE evidence SET data = :data WHERE units_id = {rows[1]}",
        f"UPDATE witnesses SET x = :x WHERE units_id = {rows[2]}",
        f"UPDATE radii SET cpu_seconds = 'long' WHERE units_id = {rows[3]}",
        data=bytes(data),
        x=bytes(x),
    )
    found = checked(capfd, copy, 1)
    assert len({one["key"] for one in found["wrong"]}) == 4
    for line in (
        "proven robust up to",
        "evidence: expected compressed bytes, got damaged ones",
        "witness: expected a compressed array, got damaged bytes",
        "radii cpu_seconds: expected a finite number, got 'long'",
    ):
        assert line in lines(found)
    assert found["confirmed"] == sum(row["rests_on"] == "evidence" for row in found["rows"]) == len(rows) - 3
    capfd.readouterr()
    assert run(["check", str(copy)]) == 1
    said = capfd.readouterr().out.splitlines()
    assert sum(line.startswith("wrong: toy") for line in said) == len(found["wrong"])


def test_what_rests_on_nothing_is_counted(forge: Forge, capfd: Capture) -> None:
    copy = forge("DELETE FROM evidence", f"UPDATE radii SET arithmetic = 'claim', tool = 'x' WHERE units_id = {CLOSED}")
    found = checked(capfd, copy, 0)
    assert found["claims"] == 1
    assert found["unsupported"] == found["proofs"] - 1 > 1
    capfd.readouterr()
    assert run(["check", str(copy)]) == 0
    assert f"{found['unsupported']} lower ends rest on nothing stored" in capfd.readouterr().out


def test_deleted_rows_are_missing_from_the_plan(forge: Forge, capfd: Capture) -> None:
    gone = f"DELETE FROM radii WHERE units_id = {CLOSED}"
    found = checked(capfd, forge(gone), 1)
    assert "its radius was deleted, parts of it are still there" in lines(found)
    tables = ("witnesses", "evidence", "queries", "radii")
    clean = [f"DELETE FROM {table} WHERE units_id = {CLOSED}" for table in tables]
    found = checked(capfd, forge(*clean), 3)
    assert [one["message"] for one in found["missing"]] == ["no result, though study 'toys' plans one"]
    unplanned = checked(capfd, forge(*clean[:-1], f"DELETE FROM plans WHERE units_id = {CLOSED}", clean[-1]), 1)
    assert "the plan of study 'toys' is not the one it began with" in lines(unplanned)


def test_data_that_changed_since_is_not_checked(tmp_path: Path, capfd: Capture) -> None:
    """Other values where the study had some: what the store says of the old ones cannot be looked at."""
    path = toy_study(tmp_path / "s", nets=1)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    points = path.parent / "points.npz"
    kept = dict(np.load(points))
    np.savez(points, x=kept["x"] * np.float32(0.5), y=kept["y"])
    found = checked(capfd, path.with_suffix(".db"), 3)
    assert len(found["unchecked"]) == 6
    assert "expected the input that the store speaks of" in found["unchecked"][0]["message"]


def test_paths_of_a_foreign_store(store: Path, forge: Forge, tmp_path: Path, capfd: Capture) -> None:
    """A store names files to open: that waits for nothing, runs nothing and tells nothing of what is in them."""
    pipe, secret, ran = tmp_path / "pipe", tmp_path / "secret.csv", tmp_path / "ran"
    os.mkfifo(pipe)
    secret.write_text("user,word\nroot,swordfish\n")
    batches = tmp_path / "cifar-10-batches-py"
    batches.mkdir()

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (ran,))

    (batches / "test_batch").write_bytes(pickle.dumps(Evil()))
    with sqlite3.connect(store) as database:
        ((body,),) = database.execute("SELECT body FROM studies").fetchall()
    database.close()
    for place in (pipe, "/dev/zero", "/proc/self/mem", secret, batches, "https://example.com/x.npz", tmp_path):
        text = json.dumps({**json.loads(body), "data": [{"source": str(place)}]})
        for change in ("classifiers SET path = :path", "studies SET body = :body"):
            copy = forge(f"UPDATE {change}", path=str(place), body=text)
            capfd.readouterr()
            assert run(["check", str(copy)]) == 3
            out, err = capfd.readouterr()
            assert "not checked (" in err
            assert "internal error" not in err
            assert "swordfish" not in out + err
    assert not ran.exists()


def test_rows_of_a_network_that_is_gone_are_not_kept_in_memory(forge: Forge) -> None:
    """One error for all rows, raised again and again, kept every record that it was raised for."""
    copy = forge("UPDATE classifiers SET path = '/nowhere.onnx'")
    seen = []
    with open_store(copy, create=False) as opened:
        recall = Recall(opened.studies())
        for record in opened.records():
            seen.append(weakref.ref(record))
            with pytest.raises(InputError, match="nowhere"):
                recall.classifier(record.unit.classifier)
            del record
    gc.collect()
    assert [one() for one in seen] == [None] * 12


def test_a_grid_search(tmp_path: Path, capfd: Capture) -> None:
    """Upper ends are values of the grid, above their witnesses; a value off the grid is none."""
    grid = {"method": "kbinary", "grid": {"start": 0.05, "stop": 0.4, "step": 0.05}}
    path = toy_study(tmp_path / "s", inputs=2, nets=1, search=grid)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    store = path.with_suffix(".db")
    assert checked(capfd, store, 0)["wrong"] == []
    with sqlite3.connect(store) as database:
        database.execute(f"UPDATE radii SET upper = 0.4, status = 'open' WHERE units_id = {CLOSED}")
    database.close()
    assert "smallest ε that its search broke" in lines(checked(capfd, store, 1))


DAMAGE = {
    "text for a number": ("radii", "SET lower = 'abc'"),
    "an infinite end": ("radii", "SET upper = 9e999"),
    "crossed ends": ("radii", "SET lower = upper + 1 WHERE upper > 0"),
    "text for a count": ("radii", "SET queries = 'abc'"),
    "a time beyond all calendars": ("radii", "SET finished = 1e300"),
    "bytes for text": ("radii", "SET status = x'ff00'"),
    "a text that is none": ("radii", "SET note = CAST(x'ff41' AS TEXT)"),
    "text for a position": ("instances", "SET \"index\" = 'abc'"),
    "parameters that are no JSON": ("settings", "SET search_parameters = '{'"),
    "an unknown key of an environment": ("environments", 'SET body = \'{"colour": "red"}\''),
    "an environment of other types": ("environments", "SET body = '{\"versions\": 3}'"),
    "proof fields without a proof": ("radii", "SET proof = NULL"),
    "a proof without arithmetic": ("radii", "SET proof = 'x', arithmetic = NULL WHERE status = 'misclassified'"),
    "a proof of no known arithmetic": ("radii", "SET proof = 'x', arithmetic = 'roman'"),
    "a study that is no JSON": ("studies", "SET body = 'nonsense'"),
    "a study of nothing": ("studies", "SET body = '{\"data\": 3}'"),
    "unknown options of a network": ("classifiers", 'SET metadata = \'{"options": {"x": 1}}\''),
    "a network that is not there": ("units", "SET classifiers_id = 77 WHERE id = 1"),
    "a query about no number": ("queries", "SET epsilon = 'abc'"),
    "a picture that is text": ("witnesses", "SET x = 'hello'"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_one_line_for_every_reader(name: str, forge: Forge, tmp_path: Path, capfd: Capture) -> None:
    """No reader fails without a reason: it works, or says in one line what is wrong with the store."""
    table, change = DAMAGE[name]
    copy = forge(f"UPDATE {table} {change}")
    harmless = ("an unknown key of an environment", "a text that is none")  # nothing rests on a note
    assert run(["check", str(copy)]) in ((0,) if name in harmless else (1, 3))
    assert "internal error" not in capfd.readouterr().err
    report = ("report", copy, "-o", tmp_path / "report.md")
    readers = (("status", copy), ("export", copy), ("export", copy, "--what", "queries"), ("stats", copy), report)
    for words in (*readers, ("guarantee", copy, "--eps", "0.01")):
        capfd.readouterr()
        code = run([str(word) for word in words])
        error = capfd.readouterr().err
        assert code in (0, 2), error
        if code == 2:
            assert error.count("\n") == 1
            assert "internal error" not in error


def test_a_damaged_row_is_not_overwritten(tmp_path: Path, capfd: Capture) -> None:
    """A run that tries open units again keeps a row that it cannot read, and raises an alarm."""
    path = toy_study(
        tmp_path / "s", inputs=2, nets=1, budget={"nodes": 1}, search={"method": "direct", "tolerance": 1e-9}
    )
    assert run(["run", str(path), "--runner", "serial"]) == 0
    store = path.with_suffix(".db")
    with sqlite3.connect(store) as database:
        assert database.execute("UPDATE radii SET lower = upper + 1 WHERE status = 'open'").rowcount == 2
    database.close()
    changed = path.read_text().replace("nodes: 1", "nodes: 2")
    path.write_text(changed)
    capfd.readouterr()
    assert run(["run", str(path), "--runner", "serial", "--retry"]) == 3
    with sqlite3.connect(store) as database:
        assert database.execute("SELECT count(*) FROM radii WHERE lower > upper").fetchone() == (2,)
        assert "damaged" in database.execute("SELECT message FROM alarms").fetchone()[0]
    database.close()


def test_a_contradiction_inside_one_search(tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prover that goes wrong on one input: the run says so and does the rest; reports and checks show it."""
    search, marked = RadiusSearch.run, []

    def wrong(self: RadiusSearch) -> None:
        search(self)
        if self.upper is not None and not marked:
            self.lower, self.proven = 2.0 * self.upper, True
            marked.append(self)

    path = toy_study(tmp_path / "s")
    monkeypatch.setattr(RadiusSearch, "run", wrong)
    assert run(["run", str(path), "--runner", "serial"]) == 3
    said = capfd.readouterr().err
    assert "1 contradiction (radii check" in said
    assert "but a witness at" in said
    found = checked(capfd, path.with_suffix(".db"), 1)
    assert found["records"] == 12
    assert [one["message"].startswith("contradiction: proven robust up to") for one in found["wrong"]] == [True]
    with open_store(path.with_suffix(".db")) as opened:
        assert len(opened.alarms()) == 1
