"""Where files of a data set lie: the folder given, or the usual folders below it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from radii.errors import DataError

_BELOW = {
    "mnist": ("mnist", "MNIST/raw", "raw"),
    "fashion-mnist": ("fashion-mnist", "FashionMNIST/raw", "fashion", "raw"),
    "cifar10": ("cifar10", "cifar-10-batches-py", "cifar-10-batches-bin", "cifar10/cifar-10-batches-py"),
    "gtsrb": ("gtsrb", "gtsrb/GTSRB", "GTSRB"),
}


def default_root(name: str) -> Path:
    """Where data sets are kept when no root is given: $RADII_DATA/name, or the user's cache."""
    base = os.environ.get("RADII_DATA")
    if base:
        return Path(base).expanduser() / name
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "radii" / "data" / name


def folders(root: Path, name: str) -> Iterator[Path]:
    """The root and the usual folders below it, those that exist."""
    for folder in (root, *(root / below for below in _BELOW.get(name, ()))):
        if folder.is_dir():
            yield folder


def look_for(root: Path, names: Iterable[str], source: str) -> Path | None:
    """The first of the named files (or folders) under the root, None when there is none."""
    wanted = list(names)
    return next((folder / n for folder in folders(root, source) for n in wanted if (folder / n).exists()), None)


def find_file(root: Path, names: Iterable[str], source: str) -> Path:
    """The first of the named files under the root, or one line that says what was looked for."""
    wanted = list(names)
    found = look_for(root, wanted, source)
    if found is None:
        raise DataError(
            f"{source}: expected {wanted[0]} in {root}, found none; give its folder as root=… (--root) or run"
            f" 'radii datasets fetch {source}'"
        )
    return found
