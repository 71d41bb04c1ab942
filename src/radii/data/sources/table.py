"""CSV tables: one row per input, one column of labels, the other columns numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radii._check import data_option, nearest, whole
from radii._files import unpacked
from radii.data.dataset import Dataset
from radii.data.scale import UNIT, DomainLike, scaled
from radii.errors import DataError
from radii.problem import Domain

if TYPE_CHECKING:
    import pandas as pd

MOST_COLUMNS, MOST_HEADER = 200_000, 2**24  # an image of 224 × 224 in colour has 150,528 values
_LABELS = ("label", "class", "target", "y")


def load(
    path: Path,
    split: str | None = None,
    *,
    label: str | int | None = None,
    shape: Sequence[int] | None = None,
    domain: DomainLike = UNIT,
    scale: float | None = None,
    class_names: Sequence[str] = (),
    separator: str | None = None,
) -> Dataset:
    """The rows of a table (those of one split, where it has a column "split").

    `label` is the name or position of the label column: "label", "class", "target" or "y" when it is not said. Labels
    that are words are numbered in the order of the alphabet. `shape` makes each row an array such as (1, 28, 28).
    `separator` stands between columns: a comma, or a tab in .tsv files, unless it is said.
    """
    frame = _read(path, separator)
    column = _label_column([str(name) for name in frame.columns], label, path)
    if "split" in frame.columns and column != "split":
        frame = _only(frame, split, path)
    values = frame.drop(columns=column)
    words = [str(name) for name, kind in zip(values.columns, values.dtypes) if kind.kind not in "iufb"]
    if words or values.empty:
        got = f"text in {', '.join(words[:5])}" if words else f"{values.shape[1]} columns and {values.shape[0]} rows"
        if words and values[words[0]].astype(str).str.fullmatch(r"[+-]?\d+,\d+").any():
            got += " with decimal commas; write 0.5 for 0,5"
        raise DataError(f"{path}: expected rows of numbers beside the label, got {got}")
    labels, names = _labels(frame[column].to_numpy(), tuple(class_names), path)
    space = Domain.of(domain)
    x = _shaped(scaled(values.to_numpy(dtype=np.float64), space, scale, path.stem), shape, path)
    return Dataset(x, labels, path.stem, split or "all", names, space)


def _read(path: Path, separator: str | None) -> pd.DataFrame:
    import pandas as pd

    def fail(message: str) -> DataError:
        return DataError(f"{path}: {message}")

    between = separator or ("\t" if path.suffix.lower() == ".tsv" else ",")
    try:
        with unpacked(path, "a CSV table", fail) as stream:
            head = stream.readline(MOST_HEADER)
        if len(head) == MOST_HEADER or head.count(between.encode()) >= MOST_COLUMNS:
            raise fail(f"expected a CSV table of at most {MOST_COLUMNS} columns, got more; save it as .npz")
        with unpacked(path, "a CSV table", fail) as stream:
            frame = pd.read_csv(stream, sep=between)
    except (OSError, ValueError) as error:  # pandas' own parser errors are ValueErrors
        first = str(error).splitlines()[0]
        raise DataError(f"{path}: expected a CSV table with a header row, got: {first}") from None
    header = str(frame.columns[0])
    if separator is None and frame.shape[1] == 1 and (other := next((s for s in ";\t|" if s in header), None)):
        named = {";": "semicolons", "\t": "tabs", "|": "bars"}[other]
        hint = data_option(f"separator='{other}'")
        raise DataError(f"{path}: expected {between!r} between columns, got {named} in {header[:40]!r}; {hint}")
    return frame


def _label_column(columns: list[str], label: str | int | None, path: Path) -> str:
    if isinstance(label, int):
        return columns[whole(label, "label", high=len(columns) - 1)]
    chosen = label if label is not None else next((name for name in _LABELS if name in columns), None)
    if chosen is None or chosen not in columns:
        wanted = repr(label) if label is not None else f"one of {', '.join(_LABELS)}"
        close = nearest(label or "label", columns)
        got = f"{', '.join(columns[:8])}{close}"
        raise DataError(f"{path}: expected a label column {wanted}, got {got}; {data_option('label=NAME')}")
    return chosen


def _only(frame: pd.DataFrame, split: str | None, path: Path) -> pd.DataFrame:
    if split not in (None, "all"):
        known = sorted(str(name) for name in frame["split"].unique())
        if split not in known:
            raise DataError(f"{path}: expected split {' or '.join(known)}, got {split!r}")
        frame = frame[frame["split"].astype(str) == split]
    return frame.drop(columns="split")


def _labels(raw: NDArray[Any], names: tuple[str, ...], path: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Numbers as they are, words as their places among the class names."""
    if raw.dtype.kind in "iufb":
        return raw, names
    words = [str(value) for value in raw]
    names = names or tuple(sorted(set(words)))
    unknown = sorted(set(words) - set(names))
    if unknown:
        raise DataError(f"{path}: expected labels {', '.join(names)}, got {unknown[0]!r}{nearest(unknown[0], names)}")
    return np.array([names.index(word) for word in words]), names


def _shaped(x: NDArray[np.float32], shape: Sequence[int] | None, path: Path) -> NDArray[np.float32]:
    if shape is None:
        return x
    sizes = tuple(whole(size, "shape", low=1) for size in shape)
    if int(np.prod(sizes)) != x.shape[1]:
        raise DataError(f"{path}: expected {int(np.prod(sizes))} columns for shape {sizes}, got {x.shape[1]}")
    return x.reshape(-1, *sizes)
