"""What can go wrong with a store, as a user of the command line meets it: one line, the right code, nothing lost."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.command import refused_here
from tests.study.build import events, start, table, toy_study

from radii.cli.main import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of one network; its store is study.db beside it."""
    path = toy_study(tmp_path_factory.mktemp("trouble"), nets=1)
    assert run(["run", str(path), "--runner", "serial"]) == 0
    return path


@pytest.fixture
def store(study: Path, tmp_path: Path) -> Path:
    """A copy of its store to be mistreated."""
    return Path(shutil.copy(study.with_suffix(".db"), tmp_path / "study.db"))


def partial(capfd: Capture, *words: object) -> str:
    """The last line of a run that was ended before its time: exit code 3 and how to go on."""
    capfd.readouterr()
    assert run([str(word) for word in words]) == 3
    line = capfd.readouterr().err.splitlines()[-1]
    assert line.startswith("radii: partial: ")
    assert line.endswith("run the same command again to go on")
    return line


def state(path: Path) -> tuple[str, int, list[str]]:
    beside = sorted(one.name for one in path.parent.iterdir() if one.name.startswith(path.name))
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, beside


def test_readers_write_nothing(study: Path, store: Path, tmp_path: Path, capfd: Capture) -> None:
    before = state(store)
    for words in (
        ["status", store],
        ["export", store],
        ["export", store, "--what", "queries", "--format", "json"],
        ["export", store, "--format", "vnnlib", "-o", tmp_path / "bundle"],
        ["check", store],
        ["gate", store, "--robust-accuracy", "0@0"],
        ["store", "info", store],
        ["run", study, "--store", store, "--dry-run"],
    ):
        assert run([str(word) for word in words]) == 0
        assert state(store) == before, words


@pytest.mark.parametrize("words", [["status"], ["export"], ["check"], ["store", "info"], ["store", "vacuum"]])
def test_an_empty_file_is_refused_and_left_empty(words: list[str], tmp_path: Path, capfd: Capture) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    assert "got an empty database" in refused_here(capfd, *words, empty)
    assert (empty.stat().st_size, os.listdir(tmp_path)) == (0, ["empty.db"])


def test_a_dry_run_on_an_empty_database_counts_everything(
    study: Path, tmp_path: Path, capfd: Capture, fresh_database: Callable[[], str]
) -> None:
    url = fresh_database()
    for where in (url, f"sqlite:///{tmp_path}/absent.db"):
        assert run(["run", str(study), "--dry-run", "--store", where]) == 0
        assert "6 units, 6 to do" in capfd.readouterr().out
    assert "got an empty database" in refused_here(capfd, "status", url)  # so the dry run made no tables
    assert os.listdir(tmp_path) == []


def test_a_corrupt_store(study: Path, store: Path, capfd: Capture) -> None:
    pages = store.stat().st_size // 4096
    with store.open("r+b") as file:
        for page in range(2, pages):
            file.seek(page * 4096)
            file.write(os.urandom(2048))
    damaged = store.read_bytes()
    for words in (["run", study, "--store"], ["export"], ["status"], ["check"]):
        assert "is corrupt; restore a copy" in refused_here(capfd, *words, store)
    assert store.read_bytes() == damaged


@pytest.fixture
def holder(store: Path) -> Iterator[Path]:
    """Another program that holds the lock for writing."""
    with sqlite3.connect(store, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        yield store
        other.execute("ROLLBACK")
    other.close()


def test_a_store_that_another_program_has_locked(study: Path, holder: Path, capfd: Capture, tmp_path: Path) -> None:
    url = f"sqlite:///{holder}?timeout=0.3"
    more = toy_study(tmp_path / "more", inputs=8, nets=1, name="more")
    line = refused_here(capfd, "run", more, "--store", url, "--runner", "serial")
    assert "is locked by another program; close it or wait, then run the same command again" in line
    capfd.readouterr()
    assert run(["status", str(holder)]) == 0  # readers need not wait
    assert "toys" in capfd.readouterr().out


def test_a_lock_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """What was finished stays, and the same command goes on once the lock is gone."""
    path, store = toy_study(tmp_path / "s", inputs=6), tmp_path / "study.db"
    process = start(path, f"sqlite:///{store}?timeout=0.3", "--workers", 1)
    assert process.stdout is not None
    lines = []
    with sqlite3.connect(store, isolation_level=None, timeout=30) as other:
        for line in process.stdout:
            lines.append(line)
            if len(lines) == 4:
                other.execute("BEGIN IMMEDIATE")
        assert process.wait() == 3
        assert process.stderr is not None
        last = process.stderr.read().splitlines()[-1]
        other.execute("ROLLBACK")
    other.close()
    process.communicate()
    assert "is locked by another program" in last
    assert last.endswith("run the same command again to go on")
    said = {one["key"] for one in events("".join(lines))}
    assert 3 <= len(said) < 12
    assert said <= set(table(store)["key"])
    assert run(["run", str(path), "--store", str(store), "--runner", "serial"]) == 0
    assert len(table(store)) == 12


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=320k", "tmpfs", disk]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("A SMALL DISK CANNOT BE MADE HERE: mounting tmpfs needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path, capfd: Capture) -> None:
    path, store = toy_study(tmp_path / "s", inputs=10), small_disk / "study.db"
    (small_disk / "ballast").write_bytes(bytes(40_000))
    line = partial(capfd, "run", path, "--store", store, "--runner", "serial")
    assert "the disk is full; free some space" in line
    stored = table(store)
    assert 0 < len(stored) < 20
    subprocess.run(["mount", "-o", "remount,size=8m", small_disk], check=True)
    assert run(["run", str(path), "--store", str(store), "--runner", "serial"]) == 0
    found = table(store)
    assert len(found) == 20
    assert set(stored["key"]) < set(found["key"])


def test_a_read_only_disk(study: Path, small_disk: Path, tmp_path: Path, capfd: Capture) -> None:
    store = Path(shutil.copy(study.with_suffix(".db"), small_disk / "study.db"))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for words in (["status"], ["export"], ["check"], ["store", "info"]):
        assert run([*words, str(store)]) == 0
    assert "cannot be written" in refused_here(capfd, "store", "vacuum", store)
    more = toy_study(tmp_path / "more", inputs=8, nets=1, name="more")
    assert "cannot be written" in refused_here(capfd, "run", more, "--store", store, "--runner", "serial")
    absent = small_disk / "new.db"
    assert "cannot be opened or created" in refused_here(capfd, "run", study, "--store", absent, "--runner", "serial")


def test_a_server_that_goes_away_in_the_middle(tmp_path: Path, fresh_database: Callable[[], str]) -> None:
    """The server ends the connections of a run and lets nobody in; what was stored stays, and the run resumes."""
    import psycopg

    url, path = fresh_database(), toy_study(tmp_path / "s", inputs=6)
    name = url.partition("?")[0].rpartition("/")[2]
    process = start(path, url, "--workers", 1)
    assert process.stdout is not None
    lines = []
    with psycopg.connect(url.replace(f"/{name}", "/postgres"), autocommit=True) as server:
        for line in process.stdout:
            lines.append(line)
            if len(lines) == 4:
                server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        _, err = process.communicate()
        server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert process.returncode == 3, err
    assert "radii: partial: store postgresql://" in err.splitlines()[-1]
    assert {one["key"] for one in events("".join(lines))} <= set(table(url)["key"])
    assert run(["run", str(path), "--store", url, "--runner", "serial"]) == 0
    assert len(table(url)) == 12


@pytest.fixture
def nobody(study: Path, capfd: Capture) -> Iterator[Path]:
    """A folder of root's that anyone may look into, while this process has nobody's rights."""
    if os.geteuid() != 0:
        pytest.skip("ONLY ROOT CAN BECOME NOBODY FOR A WHILE")
    store = str(study.with_suffix(".db"))
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        for words in (["status", store], ["export", store], ["report", store, "-o", str(folder / "first.md")]):
            assert run(words) == 0  # loads what nobody could not
        shutil.copy(store, folder / "study.db")
        os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(0)


def test_files_of_somebody_else(nobody: Path, capfd: Capture) -> None:
    """A store that may be read is read; what may not be read or written is refused in one line."""
    store = nobody / "study.db"
    assert run(["status", str(store)]) == 0
    assert run(["export", str(store)]) == 0
    assert "Permission denied" in refused_here(capfd, "export", store, "-o", nobody / "out.csv")
    assert "Permission denied" in refused_here(capfd, "report", store, "-o", nobody / "out.md")
    assert "cannot be written" in refused_here(capfd, "store", "vacuum", store)
    os.seteuid(0)
    store.chmod(0o600)
    os.seteuid(65534)
    assert "cannot be opened" in refused_here(capfd, "status", store)
    assert "Permission denied" in refused_here(capfd, "check", store)


def test_an_unreadable_store_is_refused_before_any_work(study: Path, tmp_path: Path, capfd: Capture) -> None:
    if sys.platform.startswith("win") or os.geteuid() == 0:
        folder = tmp_path / "study.db"
        folder.mkdir()  # root may read everything but a folder as a file
        assert "cannot be opened or created" in refused_here(capfd, "status", folder)
        return
    store = Path(shutil.copy(study.with_suffix(".db"), tmp_path / "study.db"))
    store.chmod(0)
    assert "cannot be opened" in refused_here(capfd, "status", store)
