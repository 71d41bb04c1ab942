"""The verifiers by name: what each proves, what it needs, whether it is here, and how to get it.

Another package adds a verifier with an entry point of the group `radii.verifiers`: its name, and a callable that makes
the decider from keyword options.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from radii._check import nearest
from radii.decide import Decider
from radii.errors import InputError, ToolMissing

GROUP = "radii.verifiers"


@dataclass(frozen=True)
class Entry:
    """One line of the list: the name, what its ROBUST and BROKEN rest on, what it needs and whether that is here."""

    name: str
    summary: str
    proves: str
    needs: str = ""
    here: bool = True
    install: str = ""


@dataclass(frozen=True)
class _Builtin:
    name: str
    where: str  # module:class, loaded on first use
    summary: str
    proves: str
    package: str = ""
    extra: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def here(self) -> bool:
        return not self.package or find_spec(self.package) is not None

    @property
    def install(self) -> str:
        return f"pip install 'radii[{self.extra}]'" if self.extra else ""

    def make(self, **options: Any) -> Decider:
        if not self.here:
            raise ToolMissing(self.package, self.install, f"the {self.name} verifier")
        return self.plain(**options)

    def plain(self, **options: Any) -> Decider:
        """The decider, whether or not what it needs to answer is here."""
        module, _, attribute = self.where.partition(":")
        return _build(self.name, getattr(import_module(module), attribute), options)


_EXACT = "robust (over the reals) and broken"
_BUILTINS = (
    _Builtin("native", "radii.engine.native:Native", "radii's own attack and branch and bound", _EXACT),
    _Builtin(
        "milp", "radii.verifiers.milp:Milp", "mixed-integer programs (HiGHS; solver: scip, gurobi); L∞, L1", _EXACT,
        package="highspy",
    ),
    _Builtin(
        "smt", "radii.verifiers.smt:Smt", "exact rationals with Z3, for tiny networks; L∞, L1, L2", _EXACT,
        package="z3", extra="smt",
    ),
    _Builtin(
        "marabou", "radii.verifiers.marabou:Marabou", "Marabou in a child process; L∞, L1",
        "robust (its claim) and broken", package="maraboupy", extra="marabou",
    ),
    _Builtin(
        "envelope", "radii.verifiers.envelope:Envelope", "attack and linear bounds, no branching: whole data sets",
        _EXACT,
    ),
    _Builtin(
        "attack", "radii.attacks.names:attack_verifier", "an attack alone (see radii attacks): attack:pgd",
        "broken only", aliases=("attack-only",),
    ),
    _Builtin(
        "bounds", "radii.verifiers.bounds_only:BoundsOnly", "one pass of linear bounds alone",
        "robust only (over the reals)", aliases=("bounds-only",),
    ),
)  # fmt: skip
_CASCADE = ("attack", "bounds", "native")
_COMMAND_KEYS = ("command", "prepare", "name", "cwd", "version")


def available() -> list[Entry]:
    """Every verifier that radii knows of, here or not: its own, those of other packages, and known commands."""
    own = [Entry(b.name, b.summary, b.proves, b.package, b.here, b.install) for b in _BUILTINS]
    own[2:2] = [
        Entry(f"milp ({solver})", f"the same with {{name: milp, solver: {solver}}}", _EXACT, package, here, install)
        for solver, package in (("scip", "pyscipopt"), ("gurobi", "gurobipy"))
        for here, install in [(find_spec(package) is not None, f"pip install 'radii[{solver}]'")]
    ]
    own.append(Entry("portfolio", f"a cascade, by default {' > '.join(_CASCADE)}", "what its members prove"))
    claim = "robust (its claim) and broken"
    own.append(Entry("command", "any program with the VNN-LIB solver interface: {command: ...}", claim))
    own += [_foreign(point) for point in _points().values()]
    from radii.verifiers.command import TEMPLATES

    for name, line in TEMPLATES.items():
        program = line.split()[0]
        here = program != "python" and shutil.which(program) is not None
        note = "" if here else _GET.get(name, "")
        own.append(Entry(name, line, claim, name, here, note))
    return own


def everyone() -> dict[str, tuple[Decider, bool]]:
    """Every verifier that has a name and needs no options, and whether what it needs is here."""
    found = {b.name: (b.plain(), b.here) for b in _BUILTINS}
    found["portfolio"] = (_portfolio(_CASCADE), True)
    for name, point in _points().items():
        try:
            found[name] = (_build(name, _load(point), {}), True)
        except InputError:
            continue
    return found


_GET = {
    "vibecheck": "pip install vibecheck-nn (in an environment of its own)",
    "alpha-beta-crown": "clone it, then verifier: {command: alpha-beta-crown, cwd: <its complete_verifier folder>}",
    "neuralsat": "clone it, then verifier: {command: neuralsat, cwd: <its folder with main.py>}",
    "nnenum": "clone it, then verifier: {command: nnenum, cwd: <its src folder>}",
}


def make(what: Any) -> Decider:
    """The decider for a name, a mapping such as {name: milp, solver: scip} or {command: "..."}, or itself.

    >>> make("milp").identity.startswith("milp(solver=highs")
    True
    """
    if isinstance(what, Mapping):
        return _from_mapping({str(key): value for key, value in what.items()})
    if isinstance(what, str):
        if "{network}" in what:
            return _from_mapping({"command": what})
        return _named(what, {})
    if isinstance(what, Decider):
        return what
    raise InputError(f"verifier: expected a name, a mapping or a decider, got {what!r}")


def located(decider: Decider, base: Path) -> Decider:
    """The decider with the files of its external commands beside `base`; a program that is absent is refused."""
    from radii.verifiers.command import Command
    from radii.verifiers.portfolio import Portfolio

    if isinstance(decider, Command):
        return decider.located(base)
    if isinstance(decider, Portfolio):
        return Portfolio(tuple(located(member, base) for member in decider.members))
    return decider


def _from_mapping(options: dict[str, Any]) -> Decider:
    from radii.verifiers.command import Command

    if "command" in options:
        _known(options, _COMMAND_KEYS)
        return _build("command", Command, options)
    if "scripts" in options:
        _known(options, ("scripts", "category"))
        return Command.scripts(options["scripts"], str(options.get("category", "radii")))
    if "portfolio" in options:
        _known(options, ("portfolio",))
        members = options["portfolio"]
        if not isinstance(members, (list, tuple)):
            raise InputError(f"portfolio: expected a list of verifiers, got {members!r}")
        return _portfolio(members)
    if "name" in options:
        return _named(str(options.pop("name")), options)
    raise InputError(
        f"verifier: expected a key name, command, scripts or portfolio, got {', '.join(options) or 'none'}"
    )


def _named(name: str, options: dict[str, Any]) -> Decider:
    from radii.verifiers.command import TEMPLATES, Command

    if name.startswith("attack:"):
        return _named("attack", {**options, "attack": name.removeprefix("attack:")})
    for builtin in _BUILTINS:
        if name in (builtin.name, *builtin.aliases):
            return builtin.make(**options)
    if name == "portfolio":
        _known(options, ())
        return _portfolio(_CASCADE)
    points = _points()
    if name in points:
        return _build(name, _load(points[name]), options)
    if name in TEMPLATES:
        _known(options, _COMMAND_KEYS)
        return _build(name, Command, {**options, "command": name})
    known = [*(b.name for b in _BUILTINS), "portfolio", *points, *TEMPLATES]
    raise InputError(f"verifier: expected one of {', '.join(known)}, got {name!r}{nearest(name, known)}")


def _portfolio(members: Any) -> Decider:
    from radii.verifiers.portfolio import Portfolio

    return Portfolio(tuple(make(member) for member in members))


def _known(options: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in options:
        if key not in keys:
            raise InputError(f"verifier: unknown key {key!r}, expected {', '.join(keys) or 'none'}{nearest(key, keys)}")


def _build(name: str, maker: Callable[..., Any], options: dict[str, Any]) -> Decider:
    try:
        decider = maker(**options)
    except TypeError as error:
        fields = tuple(getattr(maker, "__dataclass_fields__", ()))
        for key in options:
            if fields and key not in fields:
                hint = f"expected {', '.join(fields) or 'none'}{nearest(key, fields)}"
                raise InputError(f"verifier {name}: unknown option {key!r}, {hint}") from None
        raise InputError(f"verifier {name}: {error}") from error
    if not isinstance(decider, Decider):
        raise InputError(
            f"verifier {name}: expected something with identity, proves, refutes and decide, got {decider!r}"
        )
    return decider


def _points() -> dict[str, metadata.EntryPoint]:
    """The verifiers that other packages offer; a built-in name cannot be taken."""
    own = {name for b in _BUILTINS for name in (b.name, *b.aliases)} | {"portfolio", "command"}
    return {point.name: point for point in metadata.entry_points(group=GROUP) if point.name not in own}


def _load(point: metadata.EntryPoint) -> Callable[..., Any]:
    try:
        maker: Callable[..., Any] = point.load()
    except (ImportError, AttributeError) as error:
        raise ToolMissing(point.name, f"its package is there but {point.value} does not load ({error})") from error
    return maker


def _foreign(point: metadata.EntryPoint) -> Entry:
    package = point.dist.name if point.dist is not None else "another package"
    try:
        maker = _load(point)
    except ToolMissing as error:
        return Entry(point.name, f"from {package}", "not known", package, False, str(error))
    summary = (maker.__doc__ or "").strip().splitlines()
    return Entry(point.name, summary[0] if summary else f"from {package}", "as its package says", package)
