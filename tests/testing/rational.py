"""Radii of ReLU networks with two inputs in exact rational arithmetic: every activation pattern, every candidate point.

On a polygon the nearest point in L∞, L2 or L1 is the centre, a corner, or where an edge meets a line on which the norm
has a kink (the diagonals, or the axes) or a foot of a perpendicular: finitely many, all rational. L2 gives the square.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

Line = tuple[Fraction, Fraction, Fraction]  # a z1 + b z2 <= c


def rational_radius(layers: list[tuple[Any, Any]], x: Any, label: int, norm: str, domain: Any) -> Fraction | None:
    """The exact radius (its square for L2) of a ReLU network given as (weight, bias) pairs; None when there is none."""
    center = [Fraction(float(v)) for v in x]
    exact = [([[Fraction(float(w)) for w in row] for row in W], [Fraction(float(v)) for v in b]) for W, b in layers]
    best = None
    for pattern in product(*(product((0, 1), repeat=len(b)) for _, b in exact[:-1])):
        lines = _sides(center, domain)
        form = [[Fraction(1), Fraction(0), center[0]], [Fraction(0), Fraction(1), center[1]]]
        for (weight, bias), signs in zip(exact, (*pattern, None)):
            form = [
                [sum((w * f[k] for w, f in zip(row, form)), Fraction(0)) + (b if k == 2 else 0) for k in range(3)]
                for row, b in zip(weight, bias)
            ]
            if signs is not None:
                lines += [(-f[0], -f[1], f[2]) if on else (f[0], f[1], -f[2]) for f, on in zip(form, signs)]
                form = [f if on else [Fraction(0)] * 3 for f, on in zip(form, signs)]
        for other in range(len(form)):
            if other != label:
                difference = [a - b for a, b in zip(form[label], form[other])]
                found = _nearest([*lines, (difference[0], difference[1], -difference[2])], norm)
                if found is not None and (best is None or found < best):
                    best = found
    return best


def _sides(center: list[Fraction], domain: Any) -> list[Line]:
    if domain is None:
        return []
    low, high = (Fraction(float(v)) for v in domain)
    one, zero = Fraction(1), Fraction(0)
    return [
        (one, zero, high - center[0]),
        (-one, zero, center[0] - low),
        (zero, one, high - center[1]),
        (zero, -one, center[1] - low),
    ]


def _nearest(lines: list[Line], norm: str) -> Fraction | None:
    zero, one = Fraction(0), Fraction(1)
    kinks = {"linf": [(one, one, zero), (one, -one, zero)], "l1": [(one, zero, zero), (zero, one, zero)], "l2": []}[
        norm
    ]
    points = [(zero, zero)]
    for first, second in [*combinations(lines, 2), *product(lines, kinks)]:
        corner = _meet(first, second)
        if corner is not None:
            points.append(corner)
    for a, b, c in lines:  # feet of perpendiculars
        if a or b:
            points.append((a * c / (a * a + b * b), b * c / (a * a + b * b)))
    sizes = [_size(p, norm) for p in points if all(a * p[0] + b * p[1] <= c for a, b, c in lines)]
    return min(sizes, default=None)


def _meet(first: Line, second: Line) -> tuple[Fraction, Fraction] | None:
    (a, b, c), (d, e, f) = first, second
    det = a * e - b * d
    return None if det == 0 else ((c * e - b * f) / det, (a * f - c * d) / det)


def _size(point: tuple[Fraction, Fraction], norm: str) -> Fraction:
    a, b = abs(point[0]), abs(point[1])
    return {"linf": max(a, b), "l1": a + b, "l2": a * a + b * b}[norm]


def float_radius(value: Fraction | None, norm: str) -> float:
    """The radius as a float: the root of the square for L2, inf for none."""
    if value is None:
        return float("inf")
    return float(np.sqrt(float(value))) if norm == "l2" else float(value)
