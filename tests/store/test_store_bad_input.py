"""What can go wrong with a store gives one clear line, and nothing that was stored is lost."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from radii.errors import InputError, StoreError
from radii.store import Store, open_store, radii_frame, schema
from radii.store.frame import export
from radii.testing.store_exam import record, unit


def one_line(where: str | Path, match: str, **options: float) -> None:
    with pytest.raises(StoreError, match=match) as caught:
        open_store(where, **options).close()  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_missing_store_is_not_made_by_readers(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected an existing file, got none"):
        open_store(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()


def test_not_a_database(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("name: mnist-mlps\n" * 100)
    one_line(path, "study.yaml is not an SQLite database")
    assert path.read_text().startswith("name")


def test_another_programs_database(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE units (x)")
    other.close()
    one_line(path, "expected a radii store, got a database with other tables")


def read_all(path: Path) -> None:
    with open_store(path) as store:
        list(store.records())


def test_a_corrupt_store(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_store(path) as store:
        store.put_many([record(unit(i)) for i in range(300)])
        store.vacuum()
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(2, size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(2048))
    with pytest.raises(StoreError, match="is corrupt") as caught:
        read_all(path)
    assert "\n" not in str(caught.value)


def test_a_locked_store(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_store(path, timeout=0.2) as store:
        store.put(record(unit(0)))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="is locked by another program"):
            store.put(record(unit(1)))
        assert len(radii_frame(store)) == 1
        other.execute("COMMIT")
        other.close()
        store.put(record(unit(1)))
        assert len(radii_frame(store)) == 2


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    one_line(tmp_path / "file" / "study.db", "cannot be opened or created")
    one_line(tmp_path / "missing" / "study.db", "cannot be opened or created")
    one_line(tmp_path, "cannot be opened or created")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("A SMALL DISK CANNOT BE MADE HERE: mounting tmpfs needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


def fill(store: Store) -> None:
    for i in range(2000):
        store.put(record(unit(i)))
        assert store.get(unit(i).key) is not None


def test_a_full_disk_loses_nothing(small_disk: Path) -> None:
    with open_store(small_disk / "study.db") as store:
        with pytest.raises(StoreError, match="the disk is full"):
            fill(store)
        stored = len(radii_frame(store))
        assert stored > 0
    with open_store(small_disk / "study.db") as store:
        assert [found.unit.instance.index for found in store.records()] == list(range(stored))


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("mysql://host/db", "expected a path, sqlite:///FILE or postgresql://HOST/NAME, got mysql"),
        ("postgresql://host:port/db", "expected a path, sqlite:///FILE or postgresql"),
    ],
)
def test_addresses_that_mean_nothing(where: str, match: str) -> None:
    one_line(where, match)


def test_unreachable_postgres() -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(StoreError, match="nothing listens there; check host and port") as caught:
        open_store(f"postgresql://me:secret@127.0.0.1:{port}/radii", timeout=2)
    assert "secret" not in str(caught.value)


def test_sqlite_urls_and_bare_paths_are_the_same_store(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_store(path) as store:
        store.put(record(unit(0)))
    for where in (str(path), f"sqlite:///{path}"):
        with open_store(where, create=False) as store:
            assert open_store(store) is store
            assert len(radii_frame(store)) == 1


def test_kill_minus_nine_while_writing_loses_no_finished_unit(tmp_path: Path) -> None:
    code = """
import sys
from radii.store import open_store
from radii.testing.store_exam import record, unit
with open_store(sys.argv[1]) as store:
    for i in range(10000):
        store.put(record(unit(i)))
        print(i, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path / "s.db"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 30:
            process.kill()
            break
    rest = process.stdout.read().split()
    process.communicate()
    last = max(30, *map(int, rest)) if rest else 30
    with open_store(tmp_path / "s.db") as store:
        found = [one.unit.instance.index for one in store.records()]
    # At most the unit in flight is more than was reported.
    assert found[: last + 1] == list(range(last + 1))
    assert len(found) <= last + 2


def test_older_stores_are_migrated_step_by_step(tmp_path: Path) -> None:
    def add(connection: Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE classifiers ADD COLUMN colour TEXT DEFAULT 'blue'")

    def paint(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE classifiers SET colour = 'red'")

    with open_store(tmp_path / "study.db") as store:
        store.put(record(unit(0)))
        newest = schema.VERSION + 2
        with store.write() as connection:
            schema.migrate(connection, "here", {schema.VERSION: add, schema.VERSION + 1: paint}, newest)
        with store.read() as connection:
            assert schema.version_of(connection) == newest
            assert connection.exec_driver_sql("SELECT colour FROM classifiers").scalar_one() == "red"
    one_line(tmp_path / "study.db", f"got schema {newest}; upgrade radii")


def test_a_failed_migration_changes_nothing(tmp_path: Path) -> None:
    def broken(connection: Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE classifiers ADD COLUMN colour TEXT")
        connection.exec_driver_sql("UPDATE nowhere SET x = 1")

    path = tmp_path / "study.db"
    with open_store(path) as store:
        store.put(record(unit(0)))
        with pytest.raises(StoreError, match="no such table"), store.write() as connection:
            schema.migrate(connection, "here", {schema.VERSION: broken}, schema.VERSION + 1)
    with open_store(path) as store, store.read() as connection:
        columns = connection.exec_driver_sql("PRAGMA table_info(classifiers)").all()
        assert "colour" not in [column[1] for column in columns]


def test_exports(tmp_path: Path) -> None:
    import pandas as pd

    with open_store(":memory:") as store:
        store.put_many([record(unit(0), 1 / 30, 0.2), record(unit(1), None, 0.1 + 0.2), record(unit(2), None, None)])
        frame = radii_frame(store)
    for format in ("csv", "json", "parquet"):
        export(frame, format, tmp_path / f"radii.{format}")
    back = [
        pd.read_csv(tmp_path / "radii.csv", float_precision="round_trip"),
        pd.read_json(tmp_path / "radii.json", precise_float=True),
        pd.read_parquet(tmp_path / "radii.parquet"),
    ]
    for table in back:
        assert list(table.columns) == list(frame.columns)
        assert table["lower"].isna().tolist() == [False, True, True]
        assert table["lower"][0] == 1 / 30
        assert table["upper"][1] == 0.1 + 0.2
        assert list(table["index"]) == [0, 1, 2]
    with pytest.raises(InputError, match="expected one of csv, parquet, json, got 'cvs'; did you mean 'csv'"):
        export(frame, "cvs")
    with pytest.raises(InputError, match="expected a file to write to"):
        export(frame, "parquet")
    with pytest.raises(StoreError, match="expected a file that can be written"):
        export(frame, "csv", tmp_path / "none" / "radii.csv")


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose every row is still in its log, as a killed process leaves it."""
    folder = tmp_path_factory.mktemp("logged")
    with open_store(folder / "live.db") as store:
        store.put_many([record(unit(i)) for i in range(40)])
        store.put_many([record(unit(i)) for i in range(40, 50)])
        for end in ("", "-wal"):
            (folder / f"study.db{end}").write_bytes((folder / f"live.db{end}").read_bytes())
    return folder / "study.db"


@pytest.mark.parametrize("harm", ["nothing", "head", "first page", "zeros", "noise"])
def test_a_damaged_log_is_not_taken_for_an_empty_one(harm: str, logged: Path, tmp_path: Path) -> None:
    """SQLite would read an empty store and remove the log, with all that it held."""
    path, log = tmp_path / "study.db", tmp_path / "study.db-wal"
    path.write_bytes(logged.read_bytes())
    data = bytearray(Path(f"{logged}-wal").read_bytes())
    if harm in ("head", "first page"):
        data[9 if harm == "head" else 2000] ^= 4
    elif harm != "nothing":
        data[:] = bytes(len(data)) if harm == "zeros" else os.urandom(len(data))
    log.write_bytes(data)
    if harm == "nothing":
        with open_store(path, create=False) as store:
            assert len(radii_frame(store)) == 50
        return
    for create in (False, True):
        with pytest.raises(StoreError, match=r"expected a write-ahead log that can be read.*study\.db-wal"):
            open_store(path, create=create)
        assert log.read_bytes() == data
    log.rename(tmp_path / "aside")
    open_store(path).close()


def test_a_log_whose_end_is_damaged_gives_what_came_before(logged: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    path.write_bytes(logged.read_bytes())
    data = bytearray(Path(f"{logged}-wal").read_bytes())
    data[-100] ^= 4
    Path(f"{path}-wal").write_bytes(data)
    with open_store(path, create=False) as store:
        assert len(radii_frame(store)) == 40
        assert len(list(store.records())) == 40
