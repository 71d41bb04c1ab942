"""Parts of files that a user wrote in YAML: keys and values checked, and what is wrong said in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from radii._check import brief, nearest
from radii.errors import InputError


class Part(BaseModel):
    """A part of a file; a key that it does not know is refused with the nearest one that it does."""

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
                    raise InputError(
                        f"{cls.where}: expected keys among {', '.join(known)}, got {brief(str(key))}{hint}"
                    )
        return value


File = TypeVar("File", bound=Part)


def parsed(kind: type[File], body: Mapping[str, Any], where: str, name: str) -> File:
    """What a mapping says, as a file of a kind; what is wrong is said in one line that begins with `where`."""
    try:
        return kind.model_validate({"name": name, **body})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(piece) for piece in first["loc"] if not str(piece).startswith("function-"))
        missing = first["type"] == "missing"
        got = "nothing" if missing else brief(first["input"])
        text = "a value" if missing else str(first["msg"]).removeprefix("Input should be ")
        raise InputError(f"{where}: {place}: expected {text[:1].lower()}{text[1:]}, got {got}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
