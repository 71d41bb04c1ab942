"""Checkpoints: all that a run needs to go on, in one file that is always whole.

A checkpoint is written beside the old one, forced to the disk and then renamed over it, so that a run that is killed or
a disk that is full leaves the last one as it was.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from radii._files import read_bytes
from radii._torch import torch
from radii.errors import FormatError, TrainingError

FORMAT = 1
MOST = 2**34  # bytes of a checkpoint that is read


def write_atomically(path: Path, content: bytes) -> None:
    """Puts a file in place at once: readers see the old one or the new one, whatever happens."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        left = "; the last checkpoint is untouched, make room and resume" if path.exists() else "; nothing was kept"
        raise TrainingError(f"{path}: cannot be written ({error.strerror or error}){left}") from error
    if hasattr(os, "O_DIRECTORY"):  # the rename itself is on the disk only after its folder is
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a checkpoint: tensors, numbers, texts, lists and mappings."""
    stream = io.BytesIO()
    torch.save({"format": FORMAT, **state}, stream)
    write_atomically(path, stream.getvalue())


def load(path: Path) -> dict[str, Any]:
    """What a checkpoint holds; a file that is something else is refused, and never run."""

    def fail(message: str) -> FormatError:
        return FormatError(f"{path}: {message}")

    content = read_bytes(path, "a checkpoint of a training run", fail, MOST)
    try:
        found = torch.load(io.BytesIO(content), weights_only=True)
    except Exception as error:  # the pickle's own errors are of many kinds
        raise fail(f"expected a checkpoint, got a file that is none or is damaged ({type(error).__name__})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise fail("expected a checkpoint of this version of radii, got something else; train again in another folder")
    return found
