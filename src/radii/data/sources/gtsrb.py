"""GTSRB, the German traffic signs: as published, or as pictures with a labels.csv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from radii.data.dataset import Dataset
from radii.data.scale import UNIT, DomainLike, scaled
from radii.data.sources.images import Listing, list_csv
from radii.data.sources.pictures import Treatment, read_pictures
from radii.data.sources.place import folders
from radii.errors import DataError
from radii.problem import Domain

_LIMITS = (20, 30, 50, 60, 70, 80)
CLASSES = (
    *(f"speed limit {limit}" for limit in _LIMITS),
    "end of speed limit 80",
    "speed limit 100",
    "speed limit 120",
    "no overtaking",
    "no overtaking by lorries",
    "priority at next crossing",
    "priority road",
    "give way",
    "stop",
    "no vehicles",
    "no lorries",
    "no entry",
    "danger",
    "bend left",
    "bend right",
    "double bend",
    "uneven road",
    "slippery road",
    "road narrows",
    "road works",
    "traffic lights",
    "pedestrians",
    "children",
    "bicycles",
    "snow",
    "wild animals",
    "end of all limits",
    "turn right ahead",
    "turn left ahead",
    "straight ahead",
    "straight or right",
    "straight or left",
    "keep right",
    "keep left",
    "roundabout",
    "end of no overtaking",
    "end of no overtaking by lorries",
)


def load(
    root: Path,
    split: str,
    *,
    resize: int | Sequence[int] | None = 32,
    grayscale: bool = False,
    crop: str | None = None,
    domain: DomainLike = UNIT,
) -> Dataset:
    """One split, pixel / 255, resized to 32 x 32 unless said otherwise; crop="region" cuts to the sign itself.

    A labels.csv with columns file, label, split comes first; otherwise the published folders are read.
    """
    listing = _listing(root, split)
    pixels = read_pictures(listing.files, Treatment.of(resize, grayscale, crop), listing.regions)
    space = Domain.of(domain)
    return Dataset(scaled(pixels, space, None, "gtsrb"), np.array(listing.labels), "gtsrb", split, CLASSES, space)


def _listing(root: Path, split: str) -> Listing:
    for folder in folders(root, "gtsrb"):
        if (folder / "labels.csv").is_file():
            return list_csv(folder / "labels.csv", split)
        published = _published_test(folder) if split == "test" else _published_train(folder)
        if published is not None:
            return published
    raise DataError(
        f"gtsrb: expected labels.csv, GT-final_test.csv or Training/ in {root}, found none; "
        "give its folder as root=… (--root) or run 'radii datasets fetch gtsrb'"
    )


def _published_test(folder: Path) -> Listing | None:
    for truth in (folder / "GT-final_test.csv", folder / "GTSRB" / "GT-final_test.csv"):
        if truth.is_file():
            images = (truth.parent / "Final_Test" / "Images", folder / "GTSRB" / "Final_Test" / "Images", truth.parent)
            return list_csv(truth, None, next(place for place in images if place.is_dir()))
    return None


def _published_train(folder: Path) -> Listing | None:
    for below in ("Training", "GTSRB/Training", "Final_Training/Images", "GTSRB/Final_Training/Images"):
        lists = sorted((folder / below).glob("*/GT-*.csv"))
        if lists:
            parts = [list_csv(path) for path in lists]
            regions = tuple(r for part in parts for r in part.regions or ())
            files = tuple(f for part in parts for f in part.files)
            return Listing(
                files,
                tuple(label for part in parts for label in part.labels),
                (),
                regions if len(regions) == len(files) else None,
            )
    return None
