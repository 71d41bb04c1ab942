"""Study files: what a YAML file may say, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from radii._check import SEEDS, brief, byte_size, number
from radii._parts import Part, parsed
from radii._yaml import read_yaml
from radii.errors import InputError
from radii.problem import Property
from radii.problem.property import find, split, without_threshold
from radii.problem.tolerance import tolerance_of, written


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _kind(value: Any) -> Any:
    if isinstance(value, Mapping):
        # YAML reads the key `on` as true.
        found = {"on" if key is True else key: one for key, one in value.items()}
        strange = [key for key in found if "kind" not in found and key != "target"]
        if strange:
            raise InputError(f"property: expected a kind, such as {{kind: standard, delta: 10}}, got {strange[0]!r}")
        return found
    if not isinstance(value, str):
        return value
    kind, values = split(value)
    return {"kind": kind, **values}


def as_path(value: Any) -> Any:
    """A classifier named by its path alone."""
    return {"path": value} if isinstance(value, str) else value


def as_source(value: Any) -> Any:
    """A data part named by its source alone."""
    return {"source": value} if isinstance(value, str) else value


def as_method(value: Any) -> Any:
    """A search named by its method alone."""
    return {"method": value} if isinstance(value, str) else value


def _size(value: Any) -> Any:
    return None if value is None else byte_size(value, "budget memory")


def _above_zero(name: str) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else number(value, name, low=0.0, strict=True))


def _tolerance(value: Any) -> float | str | None:
    return None if value is None else written(tolerance_of(value, "search tolerance"))


def _measures(value: Any) -> list[float | None]:
    """What is measured: None for a radius, the ε of each reach."""
    found: list[float | None] = []
    for one in _many(value):
        if one == "radius":
            found.append(None)
        elif isinstance(one, Mapping) and set(one) == {"reach"} and _many(one["reach"]):
            found += [number(size, "measure reach", low=0.0, strict=True) for size in _many(one["reach"])]
        else:
            raise InputError(f"measure: expected radius or {{reach: ε}}, such as {{reach: 0.1}}, got {brief(one)}")
    if not found:
        raise InputError("measure: expected radius or {reach: ε}, got an empty list")
    return list(dict.fromkeys(found))


class ClassifierPart(Part):
    """One entry of `classifiers`: a file, a pattern such as nets/*.onnx, or zoo:NAME; with what the file omits.

    Or several as one: `combine` (mean, probability or vote) with `members`, entries like this one, and `weights`.
    """

    where: ClassVar[str] = "classifiers"
    path: str = ""
    name: str | None = None
    combine: Literal["mean", "probability", "vote"] | None = None
    members: list[Annotated[ClassifierPart, BeforeValidator(as_path)]] = Field(default_factory=list)
    weights: list[float] = Field(default_factory=list)
    preprocessing: dict[str, Any] | None = None
    domain: tuple[float | None, float | None] | None = (0.0, 1.0)
    input_shape: tuple[int, ...] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.combine is None) == (not self.path):
            raise InputError("classifiers: expected path, or combine with members, got both or neither")
        if (self.combine is None) == bool(self.members or self.weights):
            raise InputError("classifiers: expected members (and weights) with combine and only there")
        return self


class DataPart(Part):
    """Which inputs: a data set by name or path, and the part of it; `options` go to the source."""

    where: ClassVar[str] = "data"
    source: str
    root: str | None = None
    split: str | None = None
    indices: str | int | list[int] | None = None
    first: int | None = None
    per_class: int | None = None
    stratified: int | None = None
    only: Literal["correct", "all"] = "all"
    options: dict[str, Any] = Field(default_factory=dict)


class PropertyPart(BaseModel):
    """What must hold in the ball: a kind of the table in `radii.problem.property`, and the values of its fields."""

    model_config = ConfigDict(extra="allow", frozen=True)
    kind: str = "classification"

    def properties(self, classes: int | None, reach: bool = False) -> list[Property]:
        """The properties that the entry means for a network with that many classes (None: not known yet).

        For a `reach` its threshold must be left out: how far the quantity gets is what is asked.
        """
        kind, values = find(self.kind, "property kind"), self.model_extra or {}
        return list(kind.each(without_threshold(kind, values) if reach else values, classes))


class SearchPart(Part):
    """How radii are found: `direct` with a tolerance and a limit, or over a grid with k queries at once."""

    where: ClassVar[str] = "search"
    method: Literal["direct", "kbinary", "iterative"] = "direct"
    tolerance: Annotated[float | str | None, BeforeValidator(_tolerance)] = None
    limit: Annotated[float | None, _above_zero("search limit")] = None
    k: int | None = None
    grid: Any = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        direct = self.method == "direct"
        for name in ("k", "grid") if direct else ("tolerance", "limit"):
            if getattr(self, name) is not None:
                raise InputError(f"search: expected no {name} for method {self.method}; remove it")
        if not direct and self.grid is None:
            raise InputError(f"search: expected a grid {{start, stop, step}} for method {self.method}, got none")
        return self


class BudgetPart(Part):
    """What an instance (direct) or a query (over a grid) may cost; with `nodes`, no seconds unless they are given."""

    where: ClassVar[str] = "budget"
    seconds: Annotated[float | None, _above_zero("budget seconds")] = None
    memory: Annotated[int | None, BeforeValidator(_size)] = None
    nodes: int | None = Field(default=None, ge=1)

    def values(self) -> dict[str, Any]:
        """The budget's three values; 60 seconds when nothing else ends a search."""
        said = "seconds" in self.model_fields_set or self.nodes is not None
        return {"seconds": self.seconds if said else 60.0, "memory": self.memory, "nodes": self.nodes}


_Parts = BeforeValidator(_many)


class StudyFile(Part):
    """A whole study: everything that is a list makes a product."""

    name: str = Field(min_length=1)
    classifiers: Annotated[list[Annotated[ClassifierPart, BeforeValidator(as_path)]], _Parts, Field(min_length=1)]
    data: Annotated[list[Annotated[DataPart, BeforeValidator(as_source)]], _Parts, Field(min_length=1)]
    property: Annotated[list[Annotated[PropertyPart, BeforeValidator(_kind)]], _Parts, Field(min_length=1)] = Field(
        default_factory=lambda: [PropertyPart()]
    )
    measure: Annotated[list[float | None], BeforeValidator(_measures)] = Field(
        default_factory=lambda: list[float | None]([None])
    )
    norm: Annotated[list[str], _Parts, Field(min_length=1)] = Field(default_factory=lambda: ["linf"])
    search: Annotated[list[Annotated[SearchPart, BeforeValidator(as_method)]], _Parts, Field(min_length=1)] = Field(
        default_factory=lambda: [SearchPart()]
    )
    verifier: Annotated[list[str | dict[str, Any]], _Parts, Field(min_length=1)] = Field(
        default_factory=lambda: list[str | dict[str, Any]](["native"])
    )
    budget: BudgetPart = BudgetPart()
    seed: int = Field(default=0, ge=0, le=SEEDS)
    evidence: bool = False

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for reach in {size is not None for size in self.measure}:
            for part in self.property:
                part.properties(None, reach)
        if any(size is not None for size in self.measure):
            self._fits_reaches()
        return self

    def _fits_reaches(self) -> None:
        """Refuses what means nothing for reaches."""
        for search in self.search:
            if search.method != "direct":
                raise InputError(f"measure: expected search direct for reaches, got {search.method}: a grid has none")
            if search.limit is not None:
                raise InputError("search: expected no limit for reaches, which are measured at one ε; remove it")
        if self.evidence:
            raise InputError("evidence: expected none for reaches: their proofs are not recorded yet; remove it")
        if any(part.only == "correct" for part in self.data):
            raise InputError(
                "data: expected only: all for reaches, got only: correct; every input has one, and exports, reports "
                "and guarantees tell the correct ones apart (--among correct)"
            )


def read_study(path: str | Path) -> StudyFile:
    """The study in a YAML file; what is wrong with it is said in one line with the file's name."""
    file = Path(path)
    return parse_study(read_yaml(file, "a study file with classifiers and data"), str(file), file.stem)


def parse_study(body: Mapping[str, Any], where: str = "study", name: str = "study") -> StudyFile:
    """The study that a mapping says; `name` is used when it gives none."""
    return parsed(StudyFile, body, where, name)
