"""Files that a user names, read with care: only regular files, unpacked when gzipped, never more than fits.

Every reader takes `fail`, which makes the error of a message; so the caller says where the file was named.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from radii._memory import free_memory, shown
from radii.errors import InputError

Fail = Callable[[str], InputError]
# Weights and pixels rarely pack to a tenth; what packs better than this and is large was made to fill memory.
RATIO, HARMLESS = 200, 2**26
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_GZIP = b"\x1f\x8b"


@contextmanager
def regular(path: Path, kind: str, fail: Fail) -> Iterator[tuple[BinaryIO, int]]:
    """The file as a stream, and its size; a pipe, a device or a folder is refused without a wait."""
    try:
        # A pipe without a writer would keep a plain `open` waiting for ever.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise fail(f"expected {kind}, got {_trouble(error)}") from None
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode):
        os.close(number)
        got = next((name for test, name in _KINDS if test(found.st_mode)), "something else")
        raise fail(f"expected {kind}, got {got}" + ("" if got == "a folder" else "; write its content to a file"))
    with open(number, "rb") as stream:
        try:
            yield stream, found.st_size
        except OSError as error:
            if error.errno is None:  # a reader's own error, not the system's
                raise
            raise fail(f"expected {kind}, got {_trouble(error)}") from None


@contextmanager
def unpacked(path: Path, kind: str, fail: Fail, most: int | None = None) -> Iterator[BinaryIO]:
    """What the file holds, or what the gzip file holds that it is by its first bytes: at most `most` bytes.

    Without `most` the free memory is the limit, for those who keep all that they read.
    """
    limit = free_memory() if most is None else most
    with regular(path, kind, fail) as (stream, size):
        if size > limit:
            raise fail(f"expected {kind} of at most {shown(limit)}, got {shown(size)}")
        head = stream.read(len(_GZIP))
        stream.seek(0)
        with gunzipped(stream, size, fail, limit) if head == _GZIP else stream as found:
            yield found


def read_bytes(path: Path, kind: str, fail: Fail, most: int | None = None) -> bytes:
    """All that the file holds, unpacked."""
    with unpacked(path, kind, fail, most) as stream:
        return stream.read()


def unzipped(data: bytes, fail: Fail, most: int | None = None) -> bytes:
    """All that bytes hold, unpacked when they are a gzip file."""
    if data[: len(_GZIP)] != _GZIP:
        return data
    return gunzipped(io.BytesIO(data), len(data), fail, free_memory() if most is None else most).read()


def gunzipped(packed: Any, size: int, fail: Fail, most: int) -> BinaryIO:
    """What a gzip stream of that size holds, as a stream that ends with an error when it gives too much."""
    return cast(BinaryIO, io.BufferedReader(_Unpacking(packed, size, fail, most), 2**16))


class _Unpacking(io.RawIOBase):
    """A gzip stream that counts what it gives: an archive of a few megabytes can hold more than any memory."""

    def __init__(self, packed: Any, size: int, fail: Fail, most: int) -> None:
        self._stream, self._size, self._fail, self._most = gzip.GzipFile(fileobj=packed), size, fail, most
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._fail(f"expected a whole gzip file, got a truncated or damaged archive ({error})") from None
        self._given += len(piece)
        if self._given > self._most:
            raise self._fail(f"expected at most {shown(self._most)} in a gzip file, got more")
        refuse_bomb(self._given, self._size, self._fail)
        buffer[: len(piece)] = piece
        return len(piece)


def refuse_bomb(size: int, packed: int, fail: Fail) -> None:
    """Refuse an archive that unpacks to far more than data do; `size` may be what was unpacked so far."""
    if size > HARMLESS and size > RATIO * packed:
        raise fail(
            f"expected an archive that unpacks to at most {RATIO} times its size, got {shown(packed)} that unpack to"
            f" {shown(size)} or more; unpack it by hand if that is what you mean"
        )


def _trouble(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "a name that no file can have"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "a path where nothing is"
    return "a socket" if error.errno == errno.ENXIO else (error.strerror or str(error))
