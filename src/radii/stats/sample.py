"""Sample: what distributions of radii and of reaches share: one row per input, with two ends, a label and costs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from radii.errors import InputError
from radii.stats._arrays import BoolArray, Ends, FloatArray, IntArray, booleans, column, definition

if TYPE_CHECKING:
    import pandas as pd

Texts = npt.NDArray[np.str_]

COSTS = ("cpu_seconds", "wall_seconds", "ids", "contents", "keys")  # columns that may be absent


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of n inputs. `lower` and `upper` hold NaN for an absent end, `label` holds -1 where there is none."""

    columns: ClassVar[tuple[str, ...]]  # the fields that hold one value per input

    lower: FloatArray
    upper: FloatArray
    label: IntArray
    correct: BoolArray
    status: Texts
    ids: Texts | None = None
    contents: Texts | None = None
    cpu_seconds: FloatArray | None = None
    wall_seconds: FloatArray | None = None
    keys: Texts | None = None
    name: str = ""
    class_names: tuple[str, ...] = ()

    @classmethod
    def _checked(cls, size: int, correct: Any, details: dict[str, Any], *given: str) -> dict[str, Any]:
        """The columns that all distributions take, checked; keywords that are no fields beyond `given` are refused."""
        known = {one.name for one in fields(cls)} - {"lower", "upper", "label", "correct"} - set(given)
        if unknown := set(details) - known:
            raise InputError(f"from_arrays: expected only {', '.join(sorted(known))}, got {sorted(unknown)}")
        found = dict(details)
        for key in ("cpu_seconds", "wall_seconds"):
            if found.get(key) is not None:
                found[key] = column(found[key], key, size)
        for key in ("ids", "contents", "keys"):
            if found.get(key) is not None:
                found[key] = _texts(found[key], key, size)
        found["class_names"] = tuple(map(str, found.get("class_names") or ()))
        found["correct"] = np.ones(size, np.bool_) if correct is None else booleans(correct, "correct", size)
        return found

    def __len__(self) -> int:
        return int(self.lower.size)

    def select(self, rows: npt.ArrayLike) -> Self:
        """The distribution of some rows (a mask or indices)."""
        index = np.arange(len(self))[np.asarray(rows)]
        if index.size == 0:
            raise InputError(f"select: expected at least one of the {len(self)} instances, got none")
        return replace(self, **{key: values[index] for key, values in self._present().items()})

    def by_class(self) -> dict[int, Self]:
        """The distribution of each class of the inputs, by label."""
        if np.all(self.label < 0):
            raise InputError("by_class: expected a label for every instance, got none; give label=... to from_arrays")
        return {int(key): self.select(self.label == key) for key in np.unique(self.label)}

    def to_frame(self) -> pd.DataFrame:
        """One row per input, as a pandas frame (NaN marks an absent end)."""
        import pandas as pd

        return pd.DataFrame({**self._facts(), **self._present()}, index=range(len(self)))

    def one_row_each(self, purpose: str) -> None:
        """Raises where an input is there twice: counted again it says nothing new."""
        if self.ids is not None and np.unique(self.ids).size < len(self):
            names, counts = np.unique(self.ids, return_counts=True)
            raise InputError(
                f"{purpose}: expected every input once, got {names[counts.argmax()]} {counts.max()} times; an input "
                "that is counted again says nothing new, so leave the others out"
            )

    @property
    def repeated(self) -> int:
        """How many inputs have the same values as another one, where that is known."""
        return 0 if self.contents is None else len(self) - int(np.unique(self.contents).size)

    def _among(self, both: Ends, among: str) -> Ends:
        """The ends of all inputs, or of the correctly classified ones."""
        if definition(among) == "all":
            return both
        if not self.correct.any():
            raise InputError(
                f"among='correct': expected a correctly classified input, got {len(self)} misclassified ones; "
                "use among='all'"
            )
        return both.take(self.correct)

    def _facts(self) -> dict[str, Any]:
        """What `to_frame` repeats in every row."""
        return {"name": self.name}

    def _present(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in self.columns if getattr(self, key) is not None}


def _texts(values: Any, name: str, size: int) -> Texts:
    array = np.asarray(values).astype(np.str_)
    if array.shape != (size,):
        raise InputError(f"{name}: expected {size} values, one per instance, got an array of shape {array.shape}")
    return array
