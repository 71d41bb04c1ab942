"""Study files: what a YAML file may say, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from radii._check import byte_size, nearest, number
from radii.errors import FormatError, InputError
from radii.problem import Property
from radii.problem.property import find, split


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _kind(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    kind, values = split(value)
    return {"kind": kind, **values}


def _path(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


def _source(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


def _method(value: Any) -> Any:
    return {"method": value} if isinstance(value, str) else value


def _size(value: Any) -> Any:
    return None if value is None else byte_size(value, "budget memory")


def _above_zero(name: str) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else number(value, name, low=0.0, strict=True))


class _Part(BaseModel):
    """A part of a study file; a key that it does not know is refused with the nearest one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    where: ClassVar[str] = "study"

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    known = tuple(cls.model_fields)
                    hint = nearest(str(key), known)
                    raise InputError(f"{cls.where}: expected keys among {', '.join(known)}, got {str(key)!r}{hint}")
        return value


class ClassifierPart(_Part):
    """One entry of `classifiers`: a file, a pattern such as nets/*.onnx, or zoo:NAME; with what the file omits."""

    where: ClassVar[str] = "classifiers"
    path: str
    name: str | None = None
    preprocessing: dict[str, Any] | None = None
    domain: tuple[float | None, float | None] | None = (0.0, 1.0)
    input_shape: tuple[int, ...] | None = None


class DataPart(_Part):
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

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.properties(None)
        return self

    def properties(self, classes: int | None) -> list[Property]:
        """The properties that the entry means for a network with that many classes (None: not known yet)."""
        return list(find(self.kind, "property kind").each(self.model_extra or {}, classes))


class SearchPart(_Part):
    """How radii are found: `direct` with a tolerance and a limit, or over a grid with k queries at once."""

    where: ClassVar[str] = "search"
    method: Literal["direct", "kbinary", "iterative"] = "direct"
    tolerance: Annotated[float | None, _above_zero("search tolerance")] = None
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


class BudgetPart(_Part):
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


class StudyFile(_Part):
    """A whole study: everything that is a list makes a product."""

    name: str = Field(min_length=1)
    classifiers: Annotated[list[Annotated[ClassifierPart, BeforeValidator(_path)]], _Parts, Field(min_length=1)]
    data: Annotated[list[Annotated[DataPart, BeforeValidator(_source)]], _Parts, Field(min_length=1)]
    property: Annotated[list[Annotated[PropertyPart, BeforeValidator(_kind)]], _Parts, Field(min_length=1)] = Field(
        default_factory=lambda: [PropertyPart()]
    )
    norm: Annotated[list[str], _Parts, Field(min_length=1)] = Field(default_factory=lambda: ["linf"])
    search: Annotated[list[Annotated[SearchPart, BeforeValidator(_method)]], _Parts, Field(min_length=1)] = Field(
        default_factory=lambda: [SearchPart()]
    )
    verifier: Annotated[list[str | dict[str, Any]], _Parts, Field(min_length=1)] = Field(
        default_factory=lambda: list[str | dict[str, Any]](["native"])
    )
    budget: BudgetPart = BudgetPart()
    seed: int = Field(default=0, ge=0)
    evidence: bool = False


def read_study(path: str | Path) -> StudyFile:
    """The study in a YAML file; what is wrong with it is said in one line with the file's name."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{file}: expected a study as YAML text, got bytes that are not text") from None
    except OSError as error:
        raise InputError(f"{file}: expected a study file, got {error.strerror}") from None
    try:
        body = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        raise FormatError(f"{file}: expected YAML, got {error.problem}", *place) from None
    except yaml.YAMLError as error:
        raise FormatError(f"{file}: expected YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(body, dict):
        raise FormatError(f"{file}: expected a study with name, classifiers and data, got {type(body).__name__}")
    return parse_study(body, str(file), file.stem)


def parse_study(body: Mapping[str, Any], where: str = "study", name: str = "study") -> StudyFile:
    """The study that a mapping says; `name` is used when it gives none."""
    try:
        return StudyFile.model_validate({"name": name, **body})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(piece) for piece in first["loc"] if not str(piece).startswith("function-"))
        got = "nothing" if first["type"] == "missing" else repr(first["input"])
        raise InputError(f"{where}: {place}: {_said(first)}, got {got}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _said(first: Any) -> str:
    if first["type"] == "missing":
        return "expected a value"
    text = str(first["msg"])
    return "expected " + text.removeprefix("Input should be ")[:1].lower() + text.removeprefix("Input should be ")[1:]


_INT, _WHOLE = "tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: 10:20 is a range and not minutes, and a key given twice is a slip."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as its base class has it)
        first: [(tag, _WHOLE if tag == _INT else pattern) for tag, pattern in pairs]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)
