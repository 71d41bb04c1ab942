"""The attacks by name, for studies, commands and the engine: `radii attacks` lists them.

Another package adds one with an entry point of the group `radii.attacks`: its name, and a callable that makes the
attack (a decider that can only answer BROKEN or UNKNOWN) from keyword options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any, cast

from radii._check import nearest
from radii.decide import Decider
from radii.errors import InputError, ToolMissing

GROUP = "radii.attacks"
DEFAULT = "minimum_norm"
_OWN = {  # name -> module:class, the package it needs, loaded on first use
    "minimum_norm": ("radii.attacks.min_norm:MinimumNorm", ""),
    "pgd": ("radii.attacks.pgd:Pgd", ""),
    "fgsm": ("radii.attacks.fgsm:Fgsm", ""),
    "boundary_projection": ("radii.attacks.boundary_projection:BoundaryProjection", ""),
    "foolbox": ("radii.attacks.foolbox:Foolbox", "foolbox"),
}


@dataclass(frozen=True)
class Listed:
    """One line of the list: name, what it is, its options with their defaults, and whether what it needs is here."""

    name: str
    summary: str
    options: str
    takes: str
    here: bool = True
    install: str = ""


def available() -> list[Listed]:
    """Every attack that radii knows of, here or not."""
    return [_listed(name) for name in (*_OWN, *_points())]


def make_attack(what: Any, **options: Any) -> Decider:
    """The attack for a name with its options, for a mapping such as {name: pgd, steps: 100}, or itself.

    >>> make_attack("pgd", steps=100).identity
    'pgd(steps=100, restarts=4, step=0.5, momentum=0.75, leak=0.1, seed=0)'
    """
    if isinstance(what, Mapping):
        given = {str(key): value for key, value in what.items()}
        return make_attack(given.pop("name", DEFAULT), **given, **options)
    if isinstance(what, str):
        return _built(what, options)
    if isinstance(what, Decider) and not options:
        return what
    raise InputError(f"attack: expected a name, a mapping or an attack, got {what!r}")


def seeded(attack: Decider, asked: Any, seed: int) -> Decider:
    """The attack with this seed, if it has one and what was asked for does not give its own."""
    own = not isinstance(asked, (str, Mapping)) or (isinstance(asked, Mapping) and "seed" in asked)
    if own or "seed" not in getattr(attack, "__dataclass_fields__", {}):
        return attack
    return cast(Decider, replace(cast(Any, attack), seed=seed))


def attack_verifier(attack: Any = DEFAULT, **options: Any) -> Decider:
    """The verifier `attack`: {name: attack, attack: pgd, steps: 100}; the minimum-norm attack unless it names one."""
    return make_attack(attack, **options)


def _built(name: str, options: Mapping[str, Any]) -> Decider:
    maker = _maker(name)
    known = tuple(field.name for field in fields(maker)) if is_dataclass(maker) else ()
    for key in options:
        if known and key not in known:
            raise InputError(f"attack {name}: expected {', '.join(known)}, got {key!r}{nearest(key, known)}")
    if name in _OWN and (package := _OWN[name][1]) and find_spec(package) is None:
        raise ToolMissing(package, f"pip install 'radii[{package}]'", f"the attack {name}")
    try:
        found = maker(**options)
    except TypeError as error:
        raise InputError(f"attack {name}: {error}") from None
    if not isinstance(found, Decider) or found.proves:
        raise InputError(f"attack {name}: expected a decider that proves nothing, got {found!r}")
    return found


def _maker(name: str) -> Any:
    if name in _OWN:
        module, _, attribute = _OWN[name][0].partition(":")
        return getattr(import_module(module), attribute)
    points = _points()
    if name not in points:
        known = [*_OWN, *points]
        raise InputError(f"attack: expected one of {', '.join(known)}, got {name!r}{nearest(name, known)}")
    try:
        return points[name].load()
    except (ImportError, AttributeError) as error:
        raise ToolMissing(name, f"its package is there but {points[name].value} does not load ({error})") from error


def _points() -> dict[str, metadata.EntryPoint]:
    """The attacks that other packages offer; a name of our own cannot be taken."""
    return {point.name: point for point in metadata.entry_points(group=GROUP) if point.name not in _OWN}


def _listed(name: str) -> Listed:
    try:
        maker = _maker(name)
    except InputError as error:
        return Listed(name, "", "", "", False, str(error))
    package = _OWN[name][1] if name in _OWN else ""
    known = list(fields(maker)) if is_dataclass(maker) else []
    options = ", ".join(f"{f.name}={f.default}" if isinstance(f.default, (int, float, str)) else f.name for f in known)
    return Listed(
        name,
        " ".join((maker.__doc__ or "").strip().partition("\n")[0].split()),
        options,
        " and ".join(getattr(maker, "takes", ())),
        not package or find_spec(package) is not None,
        f"pip install 'radii[{package}]'" if package else "",
    )
