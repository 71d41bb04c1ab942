"""The monolithic SMT encoding of Gross et al. (2021) for Z3: is there a randomised attack that gets α?

Its equations 4 to 8 over the rationals: the loss is an if-then-else of the classifier's answer, and its product with a
probability is one as well (the probability, or 0), so that the formula stays linear. Networks and balls are those of
the verifier (`verifiers/smt.py`), one copy per attack and point.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

from radii.decide import Clock
from radii.ensembles.encoded import Asked, Encoded
from radii.ensembles.game import DENOMINATOR, ROUNDING
from radii.problem.answer import Reason

_NAMES = re.compile(r"\b([xyzmo]\d+)\b")
_VALUE = re.compile(r"\(([a-z]\w+) (\(- [\d.?]+\)|[\d.?]+)\)")


def solve(asked: Asked, seconds: float | None, memory: int | None = None) -> Encoded:
    """Z3's answer within so many CPU seconds of this process and Z3's."""
    from radii.verifiers.smt import DEPTHS, z3_program

    clock, child, high, best, claimed = Clock(), 0.0, 1.0, None, None
    alpha = asked.form.alpha
    assert alpha is not None
    program, level = z3_program(), Fraction(alpha).limit_denominator(DENOMINATOR)
    networks, scale = formula(asked)
    why: tuple[Reason, str] | None = (Reason.INCOMPLETE, "the solver's attack does not replay on the original models")
    for depth in DEPTHS:
        left = None if seconds is None else seconds - clock.cpu - child
        if left is not None and left <= 0:
            why = (Reason.TIME, "the budget went into the formula")
            break
        said, values, used = _ask(program, asked, networks + losses(asked, level, depth * scale), left, memory)
        child += used
        if said == "sat":
            size = asked.merged.size
            inputs = [
                [[values[f"x{k}_{i}_{j}"] for k in range(size)] for j in range(len(asked.instances))]
                for i in range(asked.form.attacks)
            ]
            chances = np.array([values[f"p_{i}"] for i in range(asked.form.attacks)])
            found = asked.replay(inputs, chances)
            claimed = alpha if claimed is None else claimed
            best = found if best is None or found.value > best.value else best
            if best.value >= alpha - ROUNDING:
                why = None
                break
        elif said == "unsat" and depth == 0:
            high, why = float(np.nextafter(alpha - 2 * ROUNDING, 0.0)), None
            break
        elif said != "unsat" and depth == 0:
            why = said if isinstance(said, tuple) else (Reason.ERROR, said)
            break
        else:
            break
    reason, detail = why if why is not None else (None, "")
    return Encoded(asked.form, asked.epsilon, best, high, claimed, why is None, reason, detail, clock.cpu + child)


def formula(asked: Asked) -> tuple[str, Fraction]:
    """The networks, balls and probabilities of all attacks and points, and the size of the outputs."""
    from radii.verifiers._relax import crown, over
    from radii.verifiers.encode import encode
    from radii.verifiers.smt import network_text, region_text, total

    texts, scale = [], 1e-6
    for region in asked.regions:
        encoding = encode(
            asked.merged.graph, region.low, region.high, crown(over(region)) if asked.form.bounds == "crown" else None
        )
        scale = max([scale, *(float(np.max(np.abs(side)[encoding.outputs])) for side in encoding.bounds)])
        outputs = [f"(define-fun o{k} () Real y{at})" for k, at in enumerate(encoding.outputs)]
        texts.append(network_text(encoding) + region_text(region) + "\n".join(outputs) + "\n")
    lines = [f"(declare-const p_{i} Real)(assert (>= p_{i} 0.0))" for i in range(asked.form.attacks)]
    lines.append(f"(assert (= {total([f'p_{i}' for i in range(asked.form.attacks)])} 1.0))")
    copies = [_NAMES.sub(rf"\1_{i}_{j}", text) for i in range(asked.form.attacks) for j, text in enumerate(texts)]
    return "\n".join([*lines, *copies]) + "\n", Fraction(scale)


def losses(asked: Asked, level: Fraction, depth: Fraction) -> str:
    """Equation 4: every member loses at least the level; a member is fooled where its label leads by −depth or less."""
    from radii.verifiers.smt import number, total

    lines = []
    for start, member in zip(asked.order, asked.members):
        terms = []
        for j, instance in enumerate(asked.instances):
            for i in range(asked.form.attacks):
                own = f"o{start + instance.label}_{i}_{j}"
                leads = [
                    f"(> (- {own} o{start + t}_{i}_{j}) {number(-depth)})"
                    for t in range(member.classes)
                    if t != instance.label
                ]
                right = leads[0] if len(leads) == 1 else f"(and {' '.join(leads)})"
                terms.append(f"(ite {right} 0.0 p_{i})")
        lines.append(f"(assert (>= {total(terms)} {number(level * len(asked.instances))}))")
    return "\n".join(lines) + "\n"


def _ask(
    program: str, asked: Asked, text: str, left: float | None, memory: int | None
) -> tuple[Any, dict[str, float], float]:
    """Z3's word ("sat", "unsat" or why neither), the values of a model, and its CPU seconds."""
    from radii.verifiers.process import Limits, run

    points, attacks = range(len(asked.instances)), range(asked.form.attacks)
    names = [f"x{k}_{i}_{j}" for i in attacks for j in points for k in range(asked.merged.size)]
    wanted = " ".join([*names, *(f"p_{i}" for i in attacks)])
    logic = "QF_NRA" if asked.norm.name == "l2" else "QF_LRA"
    head = f"(set-option :pp.decimal true)(set-option :pp.decimal_precision 24)(set-logic {logic})\n"
    script = f"{head}{text}(check-sat)\n(get-value ({wanted}))\n"
    wall = None if left is None else 4 * left + 5  # CPU time is the limit; this ends a program that waits forever
    limits = Limits(cpu=left, wall=wall, memory=memory, output=2**26)
    done = run([program, "-smt2", "-in"], limits, stdin=script.encode())
    if done.end in ("time", "memory"):
        reason = Reason.TIME if done.end == "time" else Reason.MEMORY
        return (reason, f"z3 was stopped at the {done.end} limit"), {}, done.cpu_seconds
    word, _, rest = done.stdout.lstrip().partition("\n")
    values = {name: _decimal(value) for name, value in _VALUE.findall(rest)}
    said: Any = word.strip()
    if said not in ("sat", "unsat") or (said == "sat" and len(values) != len(names) + len(attacks)):
        said = (Reason.ERROR, f"z3 ended with code {done.code} and said {(done.stdout + done.stderr)[:200]!r}")
    return said, values, done.cpu_seconds


def _decimal(text: str) -> float:
    value = float(re.sub(r"[^\d.]", "", text))
    return -value if "-" in text else value
