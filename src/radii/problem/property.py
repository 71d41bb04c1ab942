"""Property: what must hold everywhere in the ball; and the one table from a property's name to its class.

Study files, commands, stores, exports and reports know properties by this table alone. A property is one frozen
dataclass that extends `Property`; `register` puts it into the table, an entry point of the group `radii.properties`
(its name is the kind) does so for another package. Its fields are its parameters:

    in Python  Standard(delta=10)
    as text    standard:delta=10 or standard:10    (the fields in their order; lists as JSON: rows:[[1,-1,0]])
    in YAML    {kind: standard, delta: 10}
"""

from __future__ import annotations

import builtins
import json
import re
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from importlib import metadata
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from radii._check import nearest, number
from radii.errors import InputError, ToolMissing
from radii.problem.quantity import Quantity
from radii.problem.spec import OutputSpec

GROUP = "radii.properties"
SUBJECTS = ("classes", "outputs", "distance", "probabilities")


class Property(ABC):
    """What must hold in the ball around an input; outputs are the logits.

    `speaks_of` is what its conditions are about, so that a decider can say what it takes without knowing kinds:
    "classes" (the label's output stays above that of `target`, or of every other class where `target` is None; such a
    property has `targets` too), "outputs" (any linear conditions on outputs), "distance" (on outputs and the distance
    moved) or "probabilities" (on the softmax).
    """

    __slots__ = ()
    kind: ClassVar[str]  # its name in study files, commands, stores and tables
    needs_label: ClassVar[bool] = True  # whether an input without a label cannot be asked about
    speaks_of: ClassVar[str] = "outputs"
    threshold: ClassVar[str | None] = None  # the field that its quantity is held against; None where that is fixed

    @property
    def ordinal(self) -> bool:
        """Whether it only compares outputs with each other, which a softmax leaves as they are."""
        return self.speaks_of == "classes"

    @abstractmethod
    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        """The values that break the property; `reference` are those at the centre of the ball.

        Values are the outputs; for a property that speaks of probabilities they are their softmax.
        """

    @property
    def quantity_name(self) -> str:
        """What people call the number that the property bounds, for axes and tables."""
        return f"{self.kind} quantity"

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """The number that the property bounds, whose reach in a ball can be measured."""
        raise InputError(f"{self.kind}: expected a property with a quantity, got one that has none: it has no reach")

    def check(self, classes: int, label: int) -> None:
        """Raises `InputError` where the property cannot be asked of an input with that label."""
        self.violations(classes, label, np.zeros(classes))

    @property
    def caution(self) -> str:
        """What the property does not mean although people may read it so; empty where there is nothing to say."""
        return ""

    def implies(self, other: Property, epsilon: float) -> bool:
        """Whether a ball of size ε that keeps this property keeps the other one too; False where that is not known."""
        return self == other

    def asks(self, label: int) -> bool:
        """Whether there is something to ask of inputs with that label; a study leaves the others out."""
        return True

    @classmethod
    def each(cls, values: Mapping[str, Any], classes: int | None) -> list[Self]:
        """The properties that one entry of a study means for a network with that many classes (None: not known yet)."""
        return [made(cls, values)]

    @classmethod
    def example(cls) -> Self:
        """One property of the kind, for tables of what verifiers take: 1 for each number that has no default."""
        return made(cls, {field.name: 1 for field in _fields(cls) if _is_needed(field)})

    def __str__(self) -> str:
        """The property as text that `parse` reads: kind:field=value,…; a field that has its default is left out."""
        return printed(self.kind, parameters(self))


def target_of(property: Property) -> int | None:
    """The one class that counts, of a property that speaks of classes; None where every other one does."""
    target: int | None = getattr(property, "target", None)
    return target


Class = TypeVar("Class", bound=type[Property])
_registered: dict[str, type[Property]] = {}


def register(new: Class) -> Class:
    """Puts a property's class into the table of this process; a decorator. Another package uses an entry point."""
    kind = _checked(new).kind
    known = _registered.setdefault(kind, new)
    if (known.__module__, known.__qualname__) != (new.__module__, new.__qualname__):
        raise InputError(f"property {kind}: expected one class of that name, got {known!r} and {new!r}")
    return new


def kinds() -> dict[str, type[Property]]:
    """The table: every property by its name, those of other packages last; one that does not load is left out."""
    found = dict(_registered)
    for name in _points():
        try:
            found.setdefault(name, find(name))
        except InputError:
            continue
    return found


def find(kind: str, where: str = "property") -> type[Property]:
    """The class of a name; an unknown one is refused with the nearest that there is."""
    if kind in _registered:
        return _registered[kind]
    point = _points().get(kind)
    if point is None:
        known = [*_registered, *_points()]
        raise InputError(f"{where}: expected a kind among {', '.join(known)}, got {kind!r}{nearest(str(kind), known)}")
    try:
        loaded = _checked(point.load())
    except (ImportError, AttributeError) as error:
        raise ToolMissing(kind, f"its package is there but {point.value} does not load ({error})") from error
    if loaded.kind != kind:
        raise InputError(f"property {kind}: expected {point.value} to have this kind, got {loaded.kind!r}")
    return loaded


def make(kind: str, values: Mapping[str, Any], where: str = "property") -> Property:
    """The property of a kind with these values for its fields."""
    return made(find(kind, where), values, where)


def parse(text: str, where: str = "property") -> Property:
    """The property that a text says, such as "classification", "standard:10" or "strong:eta=0.52,on=probability"."""
    return make(*split(text, where), where)


def split(text: str, where: str = "property") -> tuple[str, dict[str, Any]]:
    """The kind and the values of its fields in a text; a value without a name belongs to the next field."""
    kind, colon, rest = text.strip().partition(":")
    names = [field.name for field in _fields(find(kind, where))]
    values: dict[str, Any] = {}
    for place, piece in enumerate(_pieces(rest) if colon else ()):
        name, equals, value = piece.partition("=")
        if not equals:
            if place >= len(names):
                many = f"at most {len(names)}" if names else "no"
                raise InputError(f"{where}: expected {many} values for kind {kind}, got {text!r}")
            name, value = names[place], piece
        if name.strip() in values:
            raise InputError(f"{where}: expected {name.strip()} once, got {text!r}")
        values[name.strip()] = value.strip()
    return kind, values


def without_threshold(kind: type[Property], values: Mapping[str, Any], where: str = "property") -> dict[str, Any]:
    """The values of a property whose reach is asked for; a threshold among them means nothing, and is refused."""
    name = kind.threshold
    if name is not None and name in values:
        raise InputError(
            f"{where}: expected {kind.kind} without {name} where its reach is measured, got {name}: {values[name]!r}"
        )
    return {**values, **({} if name is None else {name: 0.5})}


def measured(value: Any, where: str = "property") -> Property:
    """A property whose reach is asked for: its threshold, which does not count, may be left out."""
    if isinstance(value, Property):
        return value
    kind, values = split(value, where) if isinstance(value, str) else (str(value.get("kind")), dict(value))
    values.pop("kind", None)
    name = find(kind, where).threshold
    if name is not None:
        values.setdefault(name, 0.5)
    return make(kind, values, where)


def known_property(value: Any, where: str = "property") -> Property:
    """A property from itself, from text, or from a mapping with its kind and values."""
    if isinstance(value, Property):
        return value
    if isinstance(value, str):
        return parse(value, where)
    if isinstance(value, Mapping) and "kind" in value:
        return make(str(value["kind"]), {key: one for key, one in value.items() if key != "kind"}, where)
    raise InputError(f"{where}: expected a property such as Classification() or standard:delta=10, got {value!r}")


def printed(kind: str, values: Mapping[str, Any]) -> str:
    """A kind and its values as text; it need not be known here, as where a store of another machine is read."""
    said = ",".join(f"{name}={_text(value)}" for name, value in values.items())
    return f"{kind}:{said}" if said else kind


def parameters(property: Property) -> dict[str, Any]:
    """The fields of a property by name; one that has its default is left out, so that new ones change no key."""
    found = {field.name: (getattr(property, field.name), field) for field in _fields(type(property))}
    return {name: value for name, (value, field) in found.items() if not _is_default(field, value)}


Made = TypeVar("Made", bound=Property)


def made(cls: type[Made], values: Mapping[str, Any], where: str = "property") -> Made:
    """A property of this class; an unknown or missing field is refused by name, texts become numbers where wanted."""
    known = {field.name: field for field in _fields(cls)}
    for key in values:
        if key not in known:
            names = ", ".join(known) or "no values"
            raise InputError(f"{where}: expected {names} for kind {cls.kind}, got {key!r}{nearest(str(key), known)}")
    for name, field in known.items():
        if _is_needed(field) and values.get(name) is None:
            raise InputError(f"{where}: expected {name} for kind {cls.kind}, got none")
    hints = _hints(cls)
    given = {name: _value(value, hints.get(name), f"{where} {name}") for name, value in values.items()}
    try:
        return cls(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _checked(new: Any) -> type[Property]:
    if not (isinstance(new, type) and issubclass(new, Property)) or "__dataclass_fields__" not in vars(new):
        raise InputError(f"property: expected a dataclass that extends radii.problem.Property, got {new!r}")
    kind = getattr(new, "kind", None)
    if not re.fullmatch(r"[\w-]+", str(kind)):
        raise InputError(f"property {new.__name__}: expected a kind of letters and digits, got {kind!r}")
    speaks_of: Any = new.speaks_of  # a property where it depends on a field
    if not isinstance(speaks_of, builtins.property) and speaks_of not in SUBJECTS:
        raise InputError(f"property {kind}: expected speaks_of among {', '.join(SUBJECTS)}, got {new.speaks_of!r}")
    return new


def _points() -> dict[str, metadata.EntryPoint]:
    """The properties that other packages offer; a name of our own cannot be taken."""
    return {point.name: point for point in metadata.entry_points(group=GROUP) if point.name not in _registered}


def _fields(cls: type[Property]) -> tuple[Field[Any], ...]:
    return tuple(field for field in fields(typing.cast(Any, cls)) if field.init)


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_default(field: Field[Any], value: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return default is not MISSING and bool(value == default)


def _hints(cls: type[Property]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):  # a class whose annotations cannot be resolved takes its values as they come
        return {}


def _value(value: Any, hint: Any, name: str) -> Any:
    """The value as the field's type wants it: numbers from text or fractions, lists from JSON."""
    united = typing.get_origin(hint) in (typing.Union, types.UnionType)
    wanted = typing.get_args(hint) if united else (hint,)
    if isinstance(value, str):
        if int in wanted and re.fullmatch(r"[-+]?\d+", value):
            return int(value)
        if value[:1] in ("[", "{"):
            try:
                return json.loads(value)
            except ValueError:
                raise InputError(f"{name}: expected a list as JSON, got {value!r}") from None
    if float in wanted and value is not None:
        return number(value, name)
    return value


def _pieces(text: str) -> list[str]:
    """The text cut at its commas, those within brackets aside."""
    depth, pieces = 0, [""]
    for sign in text:
        depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    return pieces


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_short(value), separators=(",", ":"))


def _short(value: Any) -> Any:
    """The value with whole numbers without their point, also within lists."""
    if isinstance(value, (list, tuple)):
        return [_short(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
