"""Downloads: whole and checked, or not there; broken transfers are continued."""

from __future__ import annotations

import contextlib
import hashlib
import io
import socket
import tarfile
import zipfile

import numpy as np
import pytest
from tests.data.server import serving

from radii.data import fetch_dataset, load_dataset
from radii.data.fetch import fetch, unpack
from radii.data.sources import registry
from radii.data.sources.registry import Download, Source
from radii.errors import DataError, InputError

BODY = np.random.default_rng(0).bytes(300_000)
SUM = f"sha256:{hashlib.sha256(BODY).hexdigest()}"


@pytest.fixture
def server():
    with serving() as running:
        running.content["file.bin"] = BODY
        yield running


def only_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_fetches_and_reports_progress(server, tmp_path):
    seen = []
    path = fetch(server.url("file.bin"), tmp_path / "deep" / "file.bin", SUM, lambda *step: seen.append(step))
    assert path.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]


def test_a_whole_file_is_not_fetched_again(server, tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(BODY)
    fetch(server.url("file.bin"), path, SUM)
    assert server.asked == []


def test_a_broken_transfer_goes_on_where_it_stopped(server, tmp_path):
    server.cut, server.cuts = 100_000, 2
    path = fetch(server.url("file.bin"), tmp_path / "file.bin", SUM)
    assert path.read_bytes() == BODY
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_a_transfer_that_keeps_breaking_leaves_only_the_part(server, tmp_path):
    server.cut, server.cuts = 1_000, 3
    with pytest.raises(DataError, match="3000 bytes are kept, the same command continues") as caught:
        fetch(server.url("file.bin"), tmp_path / "file.bin", SUM)
    only_line(caught)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin.part"]
    path = fetch(server.url("file.bin"), tmp_path / "file.bin", SUM)
    assert server.asked[-1] == "bytes=3000-"
    assert path.read_bytes() == BODY
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.bin"]


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.ranges = False
    (tmp_path / "file.bin.part").write_bytes(b"an old beginning")
    assert fetch(server.url("file.bin"), tmp_path / "file.bin", SUM).read_bytes() == BODY


def test_a_part_that_is_whole_already_gets_its_name(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(BODY)
    assert fetch(server.url("file.bin"), tmp_path / "file.bin", SUM).read_bytes() == BODY


def test_a_wrong_checksum_keeps_nothing(server, tmp_path):
    server.content["file.bin"] = BODY[:-1] + b"?"
    with pytest.raises(DataError, match=f"expected {SUM}, got sha256:") as caught:
        fetch(server.url("file.bin"), tmp_path / "file.bin", SUM)
    only_line(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_stale_part_of_another_file_does_not_survive(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"?" * 1000)
    with pytest.raises(DataError, match="nothing was kept"):
        fetch(server.url("file.bin"), tmp_path / "file.bin", SUM)
    assert fetch(server.url("file.bin"), tmp_path / "file.bin", SUM).read_bytes() == BODY


def test_a_missing_file_is_one_line(server, tmp_path):
    with pytest.raises(DataError, match="the server said 404") as caught:
        fetch(server.url("other.bin"), tmp_path / "other.bin", SUM)
    only_line(caught)
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_line(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DataError, match="is there a network") as caught:
        fetch(f"http://127.0.0.1:{port}/file.bin", tmp_path / "file.bin", SUM)
    only_line(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_folder_is_one_line(server, tmp_path):
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(DataError, match="expected a folder that can be written to") as caught:
        fetch(server.url("file.bin"), tmp_path / "data" / "file.bin", SUM)
    only_line(caught)


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_unpacks_beside_the_archive_and_fills_up_folders(pack, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_bytes(b"old")
    archive = tmp_path / "all.archive"
    archive.write_bytes(pack({"a/new": b"new", "b/c": b"c", "top": b"top"}))
    unpack(archive, tmp_path)
    found = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p != archive}
    assert found == {"a/old": b"old", "a/new": b"new", "b/c": b"c", "top": b"top"}


def test_an_archive_cannot_write_outside(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    for pack, name in ((tarred, "all.tar.gz"), (zipped, "all.zip")):
        (tmp_path / name).write_bytes(pack({"../escaped": b"x"}))
        with contextlib.suppress(DataError):
            unpack(tmp_path / name, folder)
        assert not (tmp_path / "escaped").exists()


def test_a_damaged_archive_is_one_line(tmp_path):
    (tmp_path / "all.tar.gz").write_bytes(tarred({"a": b"a" * 5000})[:-40])
    with pytest.raises(DataError, match="tar or zip archive") as caught:
        unpack(tmp_path / "all.tar.gz", tmp_path)
    only_line(caught)
    assert [entry.name for entry in tmp_path.iterdir()] == ["all.tar.gz"]


def test_fetch_dataset_makes_it_loadable(server, tmp_path, monkeypatch):
    rows = np.random.default_rng(1).integers(0, 256, size=(7, 3073), dtype=np.uint8)
    rows[:, 0] %= 10
    archive = tarred({"cifar-10-batches-bin/test_batch.bin": rows.tobytes()})
    server.content["cifar.tar.gz"] = archive
    download = Download(server.url("cifar.tar.gz"), f"md5:{hashlib.md5(archive).hexdigest()}", unpack=True)
    known = registry.SOURCES["cifar10"]
    local = Source(known.name, known.about, known.module, files=known.files, downloads=(download,))
    monkeypatch.setitem(registry.SOURCES, "cifar10", local)
    monkeypatch.setenv("RADII_DATA", str(tmp_path))
    assert not local.present()
    assert local.how() == "radii datasets fetch cifar10"
    with pytest.raises(DataError, match="radii datasets fetch cifar10"):
        load_dataset("cifar10")
    assert fetch_dataset("cifar10") == tmp_path / "cifar10"
    assert local.present()
    data = load_dataset("cifar10")
    assert data.y.tolist() == rows[:, 0].tolist()
    assert data.x[0, 2, 31, 31] == np.float32(rows[0, -1]) / np.float32(255)


@pytest.mark.parametrize(("name", "says"), [("digits", "comes with a package"), ("table", "it is a format")])
def test_what_cannot_be_fetched_says_why(name, says):
    with pytest.raises(DataError, match=says):
        fetch_dataset(name)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'mnist'"):
        fetch_dataset("mnits")


def test_every_download_has_a_checksum():
    for source in registry.SOURCES.values():
        assert bool(source.downloads) == (not source.embedded and not source.format)
        for download in source.downloads:
            kind, _, digest = download.checksum.partition(":")
            assert len(digest) == {"md5": 32, "sha256": 64}[kind]
