"""`load_dataset`: one call for every source, by name, by path, or from a torch data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from radii._check import nearest
from radii.data.dataset import Dataset
from radii.data.sources.place import default_root
from radii.data.sources.registry import SOURCES, Source, source
from radii.errors import DataError, InputError

_SUFFIXES = {".npz": "arrays", ".npy": "arrays", ".csv": "table", ".tsv": "table"}
_PICTURES = (".png", ".ppm", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


def load_dataset(
    what: Any, split: str | None = None, root: str | os.PathLike[str] | None = None, **options: Any
) -> Dataset:
    """The data set of this name, file, folder or torch data set.

    `split` is "test" unless said otherwise, for sources that have splits. `root` is the folder of the files, for names;
    without it $RADII_DATA/NAME or the user's cache is used. The options are those of the source: see `docs/data.md`.

    >>> data = load_dataset("digits", split="test")
    >>> data[:100]
    Dataset(digits test: 100 inputs of 1x8x8, 10 classes)
    """
    if isinstance(what, Dataset):
        return what
    if not isinstance(what, (str, os.PathLike)):
        from radii.data.sources import torch_set

        _refuse_unknown(options, ("domain", "scale", "class_names", "name"), "a torch data set")
        return torch_set.load(what, split or "all", **options)
    chosen, place = _resolve(what, root)
    _refuse_unknown(options, chosen.options, chosen.name)
    if chosen.splits:
        split = split or "test"
        if split not in chosen.splits:
            raise DataError(f"{chosen.name}: expected split {' or '.join(chosen.splits)}, got {split!r}")
    load = chosen.loader()
    return load(split, **options) if chosen.embedded else load(place, split, **options)


def _resolve(what: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> tuple[Source, Path]:
    """The source and the folder or file it reads."""
    text = os.fspath(what)
    if text in SOURCES:
        chosen = SOURCES[text]
        if chosen.format and root is None:
            raise DataError(f"{text}: expected the file or folder to read as root=… (--root), got none")
        place = default_root(text) if root is None else Path(root).expanduser()
        if not chosen.embedded and not place.exists():
            hint = (
                f"; give its folder as root=… (--root) or run 'radii datasets fetch {text}'" if chosen.downloads else ""
            )
            raise DataError(f"{text}: expected its files in {place}, found no such folder{hint}")
        return chosen, place
    place = Path(text).expanduser() if root is None else Path(root).expanduser() / text
    if not place.exists():
        if not place.suffix and os.sep not in text:
            source(text)  # an unknown name: says which are known
        raise DataError(f"data set: expected a file or folder, got {str(place)!r}, which does not exist")
    return SOURCES[_format(place)], place


def _format(place: Path) -> str:
    """Which format a file or folder is in."""
    if not place.is_dir():
        if place.suffix.lower() in _SUFFIXES:
            return _SUFFIXES[place.suffix.lower()]
        raise DataError(f"{place}: expected a folder or a file that ends in {', '.join(_SUFFIXES)}")
    names = [entry.name for entry in place.iterdir()]
    if any("-idx3-ubyte" in name or ".idx3-ubyte" in name for name in names):
        return "idx"
    if any(name.startswith(("data_batch_", "test_batch")) for name in names):
        return "cifar10"
    if {"x.npy", "y.npy"} <= set(names):
        return "arrays"
    if "labels.csv" in names or any(entry.is_dir() and _has_pictures(entry) for entry in place.iterdir()):
        return "images"
    raise DataError(
        f"{place}: expected idx files, CIFAR-10 batches, x.npy and y.npy, a labels.csv,"
        " or one subfolder of pictures per class"
    )


def _has_pictures(folder: Path) -> bool:
    return any(entry.suffix.lower() in _PICTURES or entry.is_dir() for entry in folder.iterdir())


def _refuse_unknown(options: dict[str, Any], known: tuple[str, ...], name: str) -> None:
    for option in options:
        if option not in known:
            expected = f"one of {', '.join(known)}" if known else "none"
            raise InputError(f"{name}: expected {expected} as an option, got {option!r}{nearest(option, known)}")
