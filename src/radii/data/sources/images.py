"""A folder of pictures: one subfolder per class, or a CSV file that lists files and labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radii._files import read_bytes
from radii.data.dataset import Dataset
from radii.data.scale import UNIT, DomainLike, scaled
from radii.data.sources.pictures import SUFFIXES, Region, Treatment, read_pictures
from radii.errors import DataError
from radii.problem import Domain

_FILE = ("file", "filename", "path", "image")
_LABEL = ("label", "classid", "class", "target")
_REGION = ("roi.x1", "roi.y1", "roi.x2", "roi.y2")
MOST_BYTES = 2**28  # of a list of pictures: some millions of rows
_SPLITS = ("train", "test", "val", "valid")


@dataclass(frozen=True, slots=True)
class Listing:
    """Files with labels, and the region of each where the list names one."""

    files: tuple[Path, ...]
    labels: tuple[int, ...]
    class_names: tuple[str, ...] = ()
    regions: tuple[Region, ...] | None = None


def load(
    root: Path,
    split: str | None = None,
    *,
    resize: int | Sequence[int] | None = None,
    grayscale: bool = False,
    crop: str | None = None,
    domain: DomainLike = UNIT,
    class_names: Sequence[str] = (),
) -> Dataset:
    """The pictures of a folder, pixel / 255, as channels x height x width."""
    listing = list_csv(root / "labels.csv", split) if (root / "labels.csv").is_file() else list_folders(root, split)
    pixels = read_pictures(listing.files, Treatment.of(resize, grayscale, crop), listing.regions)
    space, title = Domain.of(domain), root.resolve().name
    names = tuple(class_names) or listing.class_names
    return Dataset(scaled(pixels, space, None, title), np.array(listing.labels), title, split or "all", names, space)


def list_folders(root: Path, split: str | None = None) -> Listing:
    """The pictures of root/[split/]CLASS/, classes and files in the order of their names."""
    if not root.is_dir():
        raise DataError(f"{root}: expected a folder with one subfolder of pictures per class")
    base = root / split if split and (root / split).is_dir() else root
    folders = sorted(entry for entry in base.iterdir() if entry.is_dir())
    if base == root and folders and all(folder.name in _SPLITS for folder in folders):
        raise DataError(f"{root}: expected split {' or '.join(f.name for f in folders)}, got {split or 'none'}")
    files, labels = [], []
    for label, folder in enumerate(folders):
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
        files += found
        labels += [label] * len(found)
    if not files:
        raise DataError(
            f"{base}: expected one subfolder of pictures ({', '.join(SUFFIXES[:4])}, …) a class, found none"
        )
    return Listing(tuple(files), tuple(labels), tuple(folder.name for folder in folders))


def list_csv(path: Path, split: str | None = None, folder: Path | None = None) -> Listing:
    """The pictures that a CSV file lists: columns file and label, and optionally split and Roi.X1 … Roi.Y2."""

    def fail(message: str) -> DataError:
        return DataError(f"{path}: {message}")

    try:
        text = read_bytes(path, "a CSV file of pictures", fail, MOST_BYTES).decode("utf-8-sig")
        head = text.partition("\n")[0]
        delimiter = ";" if head.count(";") > head.count(",") else ","
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise fail(f"expected a CSV file of pictures, got: {error}") from None
    rows = [{(key or "").strip().lower(): (value or "") for key, value in row.items()} for row in rows]
    columns = list(rows[0]) if rows else []
    file, label = (next((name for name in names if name in columns), None) for names in (_FILE, _LABEL))
    if file is None or label is None:
        raise DataError(
            f"{path}: expected columns file and label and at least one row, got {', '.join(columns) or 'none'}"
        )
    if "split" in columns and split not in (None, "all"):
        known = sorted({row["split"] for row in rows})
        rows = [row for row in rows if row["split"] == split]
        if not rows:
            raise DataError(f"{path}: expected split {' or '.join(known)}, got {split!r}")
    try:
        labels = tuple(int(row[label]) for row in rows)
        has_regions = all(name in columns for name in _REGION)
        regions = tuple(_region(row) for row in rows) if has_regions else None
    except ValueError as error:
        raise DataError(f"{path}: expected whole numbers as labels and regions: {error}") from None
    base = folder or path.parent
    return Listing(tuple(base / row[file] for row in rows), labels, (), regions)


def _region(row: dict[str, str]) -> Region:
    left, top, right, bottom = (int(row[name]) for name in _REGION)
    return left, top, right + 1, bottom + 1  # the last row and column belong to the region
