"""A reader for the tables published with the JAIR paper (one row per network and image)."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from radii._check import choice, whole
from radii._files import unpacked
from radii.errors import FormatError, InputError
from radii.stats.distribution import Distribution

_NEEDED = ("network", "split", "image_id", "label", "lower", "upper", "seconds")
_DOUBTED = ("lower_unproven", "lower_refuted", "inverted")
TRUST = {
    "published": "the ends as published; rows whose upper end is not above the lower one are left out and counted",
    "checked": "lower ends marked unproven, refuted or inverted become absent; a replayed attack may lower `upper`",
}


@dataclass(frozen=True)
class Published:
    """Distributions by network (a repeated measurement is named "network (run 2)") and what was left out of each.

    The tables hold only correctly classified images, so robust accuracy over all inputs cannot be had from them.
    """

    distributions: dict[str, Distribution]
    left_out: dict[str, int]
    trust: str


def read_published(
    path: str | Path, trust: str = "published", split: str = "train", images: int | None = None
) -> Published:
    """The distributions in a published table, one per network and run.

    `images` keeps the first so many images of the data set: 100 are the sample of the paper's Table 5, while the
    published table goes on beyond them (Table 6).
    """
    how = choice(trust, "trust", TRUST)
    most = math.inf if images is None else whole(images, "images", low=1)
    rows: dict[str, list[dict[str, str]]] = {}

    def fail(message: str) -> FormatError:
        return FormatError(f"{path}: {message}")

    try:
        with unpacked(Path(path), "a published table", fail) as raw, TextIOWrapper(raw, "utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise FormatError(f"{path}: expected the columns {', '.join(_NEEDED)}, got none named {missing}")
            for row in reader:
                if row["split"] == split and _number(row["image_id"]) < most:
                    run = row.get("run") or "1"
                    rows.setdefault(row["network"] if run == "1" else f"{row['network']} (run {run})", []).append(row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise fail(f"expected a CSV table, got: {error}") from None
    if not rows:
        raise InputError(f"{path}: expected rows of the split {split!r}, got none")
    read = {name: _distribution(name, part, how) for name, part in rows.items()}
    return Published({k: v[0] for k, v in read.items()}, {k: v[1] for k, v in read.items()}, how)


def _distribution(name: str, rows: list[dict[str, str]], trust: str) -> tuple[Distribution, int]:
    ends = [_ends(row, trust) for row in rows]
    kept = [k for k, (low, high) in enumerate(ends) if not low >= high or low == 0 == high]
    if not kept:
        raise InputError(f"network {name!r}: expected a row with upper above lower, got {len(rows)} rows without one")
    dist = Distribution.from_arrays(
        lower=[ends[k][0] for k in kept],
        upper=[ends[k][1] for k in kept],
        label=[rows[k]["label"] for k in kept],
        ids=[rows[k]["image_id"] for k in kept],
        cpu_seconds=[_number(rows[k]["seconds"]) for k in kept],
        name=name,
        tolerance=0.0039 if rows[0].get("dataset", "MNIST") != "MNIST" else 0.002,
    )
    return dist, len(rows) - len(kept)


def _ends(row: dict[str, str], trust: str) -> tuple[float, float]:
    low, high = _number(row["lower"]), _number(row["upper"])
    if trust == "checked":
        if row.get("status") in _DOUBTED:
            low = math.nan
        attack = _number(row.get("attack_eps", ""))
        high = attack if math.isnan(high) or attack < high else high
    return low, high


def _number(text: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise FormatError(f"expected a number or an empty cell, got {text!r}") from None
