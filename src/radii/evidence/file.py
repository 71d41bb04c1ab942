"""Evidence files: a claim and arrays of numbers, compressed, with a digest over every byte. No pickle.

8 bytes   RADIIEV1
32 bytes  SHA-256 of all that follows
zlib      4 bytes: length of the head · the head as JSON · the arrays' bytes, one after the other
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import FormatError

MAGIC = b"RADIIEV1"
LARGEST = 2**31  # bytes that a file may unpack to
_TYPES = ("|u1", "<i4", "<f4", "<f8")

Arrays = dict[str, NDArray[Any]]


def pack(claim: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The file of a claim and its arrays."""
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    head = json.dumps({"claim": dict(claim), "arrays": layout}, sort_keys=True, allow_nan=False).encode()
    raw = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    body = zlib.compress(len(head).to_bytes(4, "little") + head + raw, 9)
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """The claim and the arrays of a file; anything that is not exactly such a file is refused."""
    if data[: len(MAGIC)] != MAGIC:
        what = "another version of one" if data[:7] == MAGIC[:7] else "something else"
        raise FormatError(f"evidence: expected a file that begins with {MAGIC.decode()}, got {what}")
    digest, body = data[len(MAGIC) : len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    if hashlib.sha256(body).digest() != digest:
        raise FormatError("evidence: expected the bytes its digest speaks of, got others: damaged or cut off")
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(body, LARGEST)
    except zlib.error as error:
        raise FormatError(f"evidence: expected compressed bytes, got {error}") from None
    if not inflater.eof or inflater.unused_data:
        raise FormatError("evidence: expected one compressed stream and nothing after it")
    return _parse(plain)


def _parse(plain: bytes) -> tuple[dict[str, Any], Arrays]:
    size = int.from_bytes(plain[:4], "little")
    try:
        head = json.loads(plain[4 : 4 + size])
        claim, layout = head["claim"], head["arrays"]
        shapes = [(str(name), str(kind), tuple(int(s) for s in shape)) for name, kind, shape in layout]
        arrays, at = {}, 4 + size
        for name, kind, shape in shapes:
            if kind not in _TYPES or min(shape, default=0) < 0 or name in arrays:
                raise ValueError(f"array {name}")
            length = np.dtype(kind).itemsize * math.prod(shape)
            if at + length > len(plain):
                raise ValueError(f"array {name} beyond the end")
            arrays[name] = np.frombuffer(plain, kind, math.prod(shape), at).reshape(shape)
            at += length
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise FormatError(f"evidence: expected a claim and arrays, got {type(error).__name__}: {error}") from None
    if at != len(plain) or not isinstance(claim, dict):
        raise FormatError("evidence: expected a claim and arrays and nothing after them")
    return claim, arrays
