"""Method: a loss that a recipe can name, with its parameters; one table from names to classes.

A method is one frozen dataclass; its fields are its parameters, and it writes one function of the network, a batch, the
sizes of the balls and the state of the run. `register` puts it into the table, an entry point of the group
`radii.methods` (its name is the method's) does so for another package.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import metadata
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, get_type_hints

from radii._check import brief, choice, nearest, number, whole
from radii._torch import Tensor, functional, torch
from radii.errors import InputError, ToolMissing
from radii.problem import Domain
from radii.train.network import Network

GROUP = "radii.methods"


class Lost(NamedTuple):
    """What a method gives for a batch."""

    losses: Tensor  # (batch,): the loop averages them, weighted by class where a recipe balances classes
    outputs: (
        Tensor  # (batch, classes): of the attacked inputs, or worst-case outputs: what robust errors are counted on
    )
    penalty: Tensor | float = 0.0  # added once per step, such as a regulariser


@dataclass
class State:
    """Where a run is: what a method may know besides the batch."""

    generator: torch.Generator  # every random number of a method comes from here, so that a resumed run repeats
    domain: Domain = field(default_factory=Domain)
    share: float = 1.0  # the ε of now as a share of the full one: 0 before the ramp, 1 after it

    def between(self, ends: tuple[float, float]) -> float:
        """A parameter that goes from one value to another while ε grows, such as κ."""
        return ends[0] + (ends[1] - ends[0]) * self.share


class Method(ABC):
    """One way to train; see `docs/training.md` for what each does and the paper it comes from."""

    name: ClassVar[str]
    about: ClassVar[str] = ""  # a line for `radii train --list`
    bounds: ClassVar[str] = ""  # "", "interval" or "backward": the bounds of the network that it needs
    judged: ClassVar[str] = "clean"  # the accuracy that the best epoch is chosen by: clean, attacked or certified
    epsilon: float  # the full size of the L∞ balls

    @abstractmethod
    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        """The loss of a batch whose balls have the sizes `epsilon`, shaped to be subtracted from x."""

    def check(self, classes: int) -> None:
        """Raises `InputError` where the method cannot train a network of so many classes."""
        return


def box(x: Tensor, epsilon: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
    """The least and greatest inputs of the balls, cut to the domain."""
    return (x - epsilon).clamp_min(domain.low), (x + epsilon).clamp_max(domain.high)


def cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """The cross entropy of each input: (batch,)."""
    return functional.cross_entropy(outputs, y, reduction="none")


Class = TypeVar("Class", bound=type[Method])
_registered: dict[str, type[Method]] = {}


def register(new: Class) -> Class:
    """Puts a method's class into the table of this process; a decorator."""
    known = _registered.setdefault(new.name, new)
    if (known.__module__, known.__qualname__) != (new.__module__, new.__qualname__):
        raise InputError(f"method {new.name}: expected one class of that name, got {known!r} and {new!r}")
    return new


def methods() -> dict[str, type[Method]]:
    """The table: every method by its name, those of other packages last."""
    importlib.import_module("radii.train.methods")  # our own register themselves
    found = dict(_registered)
    for point in metadata.entry_points(group=GROUP):
        if point.name not in found:
            found[point.name] = _loaded(point)
    return found


def make(values: Mapping[str, Any], where: str = "method") -> Method:
    """The method that a recipe says: its name, and values for its fields; what is unknown is refused by name."""
    known = methods()
    if "name" not in values:
        raise InputError(f"{where}: expected a name among {', '.join(known)}, got none")
    cls = known[choice(values["name"], f"{where} name", known)]
    parts = {one.name: one for one in fields(cast(Any, cls)) if one.init}
    given = {key: value for key, value in values.items() if key != "name"}
    for key in given:
        if key not in parts:
            names = ", ".join(("name", *parts))
            hint = nearest(str(key), parts)
            raise InputError(f"{where}: expected {names} for {cls.name}, got {brief(str(key))}{hint}")
    for name, one in parts.items():
        if one.default is MISSING and one.default_factory is MISSING and name not in given:
            raise InputError(f"{where}: expected {name} for {cls.name}, got none")
    hints = get_type_hints(cls)
    return cls(**{key: _value(value, hints.get(key), f"{where} {key}") for key, value in given.items()})


def described(method: Method) -> dict[str, Any]:
    """The method's name and all its values, defaults included: what a card says, and `make` takes."""
    parts = fields(cast(Any, method))
    return {"name": method.name, **{one.name: _plain(getattr(method, one.name)) for one in parts if one.init}}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _value(value: Any, hint: Any, name: str) -> Any:
    """The value as the field's type wants it; fractions are numbers, two numbers are a way from one to the other."""
    if hint is float:
        return number(value, name, low=0.0)
    if hint is int:
        return whole(value, name, low=1)
    if hint == tuple[float, float]:
        ends = value if isinstance(value, (list, tuple)) else (value, value)
        if len(ends) != 2:
            raise InputError(f"{name}: expected one number or two (first and last), got {brief(value)}")
        return number(ends[0], name, low=0.0), number(ends[1], name, low=0.0)
    return value


def _loaded(point: metadata.EntryPoint) -> type[Method]:
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise ToolMissing(point.name, f"its package is there but {point.value} does not load ({error})") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Method)) or loaded.name != point.name:
        raise InputError(f"method {point.name}: expected {point.value} to be a Method of this name, got {loaded!r}")
    return loaded
