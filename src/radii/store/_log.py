"""Whether SQLite's write-ahead log can be read: SQLite itself takes a damaged one for an empty one, and removes it.

The log is a head of 32 bytes and one frame per page: 24 bytes with the page's number, the size of the database after a
commit (0 inside a transaction), the head's two salts and a running checksum, then the page.
"""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # the byte order of checksums
_HEAD, _FRAME = 32, 24


def damaged(file: Path) -> bool:
    """Whether a log lies beside the database and its head, or all it begins with, cannot be read.

    Frames are only followed where the database itself still holds nothing, that is to the first commit.
    """
    log = Path(f"{file}-wal")
    try:
        with log.open("rb") as opened:
            head = opened.read(_HEAD)
            more = bool(opened.read(1))
    except OSError:
        return False  # no log, or one that SQLite will complain about
    if not more:
        return False
    magic, _, page, _ = struct.unpack(">4I", head[:16])
    order = _MAGIC.get(magic)
    if order is None or _checksum(head[:24], order) != struct.unpack(">2I", head[24:]):
        return True
    return _nothing_in(file) and _begins_badly(log.read_bytes(), order, page)


def _begins_badly(log: bytes, order: str, page: int) -> bool:
    """Whether transactions were committed to the log and the first of them cannot be read."""
    size = _FRAME + page
    frames = [log[start : start + size] for start in range(_HEAD, len(log) - size + 1, size)]
    salts = log[16:24]
    commits = [i for i, frame in enumerate(frames) if frame[8:16] == salts and frame[4:8] != b"\0\0\0\0"]
    if not commits:
        return False
    sums = struct.unpack(">2I", log[24:32])
    for frame in frames[: commits[0] + 1]:
        sums = _checksum(frame[:8] + frame[_FRAME:], order, sums)
        if frame[8:16] != salts or struct.unpack(">2I", frame[16:24]) != sums:
            return True
    return False


def _nothing_in(file: Path) -> bool:
    """Whether the database without its log has no tables: no page, or a first page alone."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    return int.from_bytes(head[28:32]) <= 1


def _checksum(data: bytes, order: str, sums: tuple[int, ...] = (0, 0)) -> tuple[int, ...]:
    """SQLite's running checksum of whole 8-byte words."""
    one, two = sums
    for a, b in struct.iter_unpack(f"{order}2I", data):
        one = (one + a + two) & 0xFFFFFFFF
        two = (two + b + one) & 0xFFFFFFFF
    return one, two
