"""Hulls in the checker: lines above relu(z) for any v, whatever is rounded; nothing untrue is proven through them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from tests.engine.tuned import SETTLING
from tests.evidence.proofs import proven, rewritten, shaken

from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.tuning import DEFAULT
from radii.errors import FormatError, InputError
from radii.evidence import check
from radii.evidence.ball import Ball
from radii.evidence.file import pack, unpack
from radii.evidence.hull import Hulls
from radii.evidence.network import Rows
from radii.evidence.sweep import Bound, Neurons, rule, sweep
from radii.problem import LINF, Classification, Domain
from radii.testing import exact_radius, random_instance, relu_toy

double = torch.float64


def first_layer(weights: np.ndarray, b: np.ndarray, ball: Ball) -> Neurons:
    """Neurons of one layer over a ball, some of them with slack."""
    rows = Rows(*(torch.from_numpy(part) for part in (weights, b)), torch.zeros((len(b), len(b)), dtype=double), b * 0)
    rows = replace(rows, slack=torch.arange(len(b), dtype=double) * 1e-3)
    reach = rows.a.abs() @ ball.reach + rows.slack
    return Neurons.of(rows, ((0, len(b)),), rows.b - reach - 1e-9, rows.b + reach + 1e-9, ball)


def corners(ball: Ball, count: int, rng: np.random.Generator) -> list[list[Fraction]]:
    """Corners of the box and points inside it."""
    down, up = ball.down.numpy(), ball.up.numpy()
    share = rng.random((count, len(down)))
    share[::2] = share[::2].round()
    return [[Fraction(float(v)) for v in -down + s * (down + up)] for s in share]


def cancelling(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and constants of very different sizes, of which every second row nearly cancels in pairs."""
    weights = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-8, 9, size=(n, d))
    weights[::2, 1::2] = -weights[::2, ::2] * (1.0 + 1e-15 * rng.integers(-2, 3, size=weights[::2, ::2].shape))
    return weights, rng.normal(size=n) * 10.0 ** rng.integers(-9, 9, size=n)


@pytest.mark.parametrize("kind", ["plain", "cancelling"])
def test_lines_hold_for_any_v_in_rational_arithmetic(kind: str) -> None:
    """At corners and inside, for random v, those that the checker finds, 0 and 1: relu(z + slack) ≤ G·δ + g exactly."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        n, d = 4, 6
        weights, b = (rng.normal(size=(n, d)), rng.normal(size=n)) if kind == "plain" else cancelling(rng, n, d)
        ball = Ball.around(torch.from_numpy(rng.random(d)), "linf", float(rng.random()) * 0.3, Domain())
        hulls = Hulls.of(first_layer(weights, b, ball), ball)
        which = torch.arange(n)[None].repeat(4, 1)
        found = hulls.shares(which[:1], torch.rand((1, n)).double(), torch.from_numpy(rng.normal(size=(1, d))))
        v = torch.stack([found[0], *torch.from_numpy(rng.random((3, n, d)))])
        v[2] = (v[2] > 0.5).double()
        slopes, offset = hulls.lines(which, v)
        for x in corners(ball, 12, rng):
            for i in range(n):
                z = sum((Fraction(w) * t for w, t in zip(weights[i].tolist(), x)), Fraction(float(b[i])))
                most = max(Fraction(0), z + Fraction(i * 1e-3))
                for k in range(4):
                    line = sum(
                        (Fraction(g) * t for g, t in zip(slopes[k, i].tolist(), x)), Fraction(float(offset[k, i]))
                    )
                    assert most <= line


def test_bounds_of_rows_hold_in_rational_arithmetic() -> None:
    """a·x + c less costs of neurons that nearly cancel: the bound stays below it, in exact arithmetic."""
    rng = np.random.default_rng(1)
    for _ in range(8):
        n, d = 5, 6
        weights, b = cancelling(rng, n, d)
        ball = Ball.around(torch.from_numpy(rng.random(d)), "linf", float(rng.random()) * 0.3, Domain())
        hulls = Hulls.of(first_layer(weights, b, ball), ball)
        a, c = (
            torch.from_numpy(rng.normal(size=(3, d)) * 10.0 ** rng.integers(-5, 6)),
            torch.from_numpy(rng.normal(size=3)),
        )
        cost = torch.from_numpy(rng.random((3, n)) * 10.0 ** rng.integers(-6, 6, size=(3, n)))
        cost[1, ::2] = 0.0
        cost[2] = 0.0
        bound = hulls.lowered(Bound(a, c, a.abs() @ ball.reach * (1 + 1e-9)), cost)
        assert torch.equal(bound.a[2], a[2])
        for x in corners(ball, 10, rng):
            z = [
                sum((Fraction(w) * t for w, t in zip(r, x)), Fraction(s)) for r, s in zip(weights.tolist(), b.tolist())
            ]
            for k in range(3):
                value = Fraction(float(c[k])) + sum(Fraction(w) * t for w, t in zip(a[k].tolist(), x))
                value -= sum(Fraction(m) * max(Fraction(0), t) for m, t in zip(cost[k].tolist(), z))
                line = Fraction(float(bound.c[k])) + sum(Fraction(w) * t for w, t in zip(bound.a[k].tolist(), x))
                assert line <= value


def test_hulls_are_tighter_than_chords_and_nearly_the_best() -> None:
    """Of one neuron beside inputs: a·x − relu(z) is least at a corner of the box, and most of the way there is gained.

    The function is concave, and so is the best that lines above relu(z) can do exact.
    """
    rng = np.random.default_rng(2)
    gained = 0
    for _ in range(20):
        d = 6
        ball = Ball.around(torch.full((d,), 0.5, dtype=double), "linf", 0.2, Domain())
        net = first_layer(rng.normal(size=(1, d)), 0.1 * rng.normal(size=1), ball)
        if not bool((net.low < 0) & (net.high > 0)):
            continue
        a = torch.from_numpy(rng.normal(size=(1, d)))
        rows = Rows(a, torch.zeros(1, dtype=double), torch.tensor([[-1.0]], dtype=double), torch.zeros(1, dtype=double))
        ends, asked = (net.low[None], net.high[None]), net.charged(rows)
        chord = sweep(net, asked, ends, rule(*ends)).least(ball)
        hull = Hulls.of(net, ball).sweep(asked, ends, rule(*ends)).least(ball)
        grid = torch.cartesian_prod(*[torch.tensor([-0.2, 0.2], dtype=double)] * d)
        least = (grid @ a[0] - (grid @ net.own.rows.a[0] + net.own.rows.b[0]).clamp_min(0.0)).min()
        assert chord - 1e-9 <= hull <= least
        gained += float(hull) > float(chord) + 0.5 * (float(least) - float(chord))
    assert gained > 5


def test_numbers_that_are_none_prove_nothing() -> None:
    ball = Ball.around(torch.full((3,), 0.5, dtype=double), "linf", 0.2, Domain())
    hulls = Hulls.of(first_layer(np.ones((2, 3)), np.zeros(2), ball), ball)
    for bad in (torch.nan, torch.inf):
        a = torch.full((1, 3), 1.0, dtype=double)
        cost = torch.tensor([[bad, 1.0]], dtype=double)
        bound = hulls.lowered(Bound(a, torch.full((1,), 1e9, dtype=double), a.abs() @ ball.reach), cost)
        assert not bool(bound.least(ball) > 0)
        a = torch.full((1, 3), bad, dtype=double)
        bound = hulls.lowered(
            Bound(a, torch.full((1,), 1e9, dtype=double), a.abs() @ ball.reach), cost.nan_to_num(1.0, 1.0)
        )
        assert not bool(bound.least(ball) > 0)


@pytest.fixture(scope="module")
def sample():
    """A network whose proof takes hulls in nodes, in hidden trees and for hidden ends; exact radius and evidence."""
    for seed in range(40):
        network = relu_toy(seed, (6, 10, 10, 10, 3))
        instance = random_instance(network, seed, reach=0.4)
        radius = proven(network, instance, tolerance=1e-4, tuning=SETTLING)
        arrays = {} if radius.evidence is None else unpack(radius.evidence)[1]
        ends = sum(array.size for name, array in arrays.items() if name.endswith("/ends"))
        flags = {name: int(array.sum()) for name, array in arrays.items() if name.endswith(("/hull", "/hull2"))}
        hidden = sum(count for name, count in flags.items() if not name.startswith("margin"))
        if ends and hidden and flags["margin/hull"] + flags["margin/hull2"]:
            return network, instance, exact_radius(network, instance.x, instance.label), radius.evidence
    pytest.fail("no proof takes hulls everywhere")


def test_proofs_with_hulls_are_confirmed_and_their_ends_are_those_without_evidence(sample) -> None:
    """The search is the same, node for node."""
    network, instance, exact, data = sample
    assert check(data, network).radius <= exact + 1e-9
    plain = Native(effort="fast", tuning=SETTLING)
    again = plain.measure(network, [instance], Classification(), LINF, Budget(seconds=20), tolerance=1e-4, limit=3.0)[0]
    assert again.lower == check(data, network).radius


def test_what_hulls_prove_is_lost_without_them(sample) -> None:
    """With all their uses struck out the file is refused: they are what it rests on."""
    network, _, _, data = sample
    arrays = unpack(data)[1]
    none = {name: array[:0] for name, array in arrays.items() if name.endswith("/ends")}
    none |= {name: 0 * array for name, array in arrays.items() if name.endswith(("/hull", "/hull2"))}
    with pytest.raises(InputError, match="evidence: expected"):
        check(rewritten(data, arrays=none), network)


def _of(share):
    """A way of finding v that looks at shapes alone."""
    return lambda hulls, which, cost, rest: share((*which.shape, rest.shape[1]))


def test_no_v_proves_more_than_is_so(sample, monkeypatch) -> None:
    """Whatever v the lines are made of: the offset follows, and a claim that is wrong is refused."""
    network, _, exact, data = sample
    wrong = rewritten(data, {"radius": exact * (1 + 1e-6) + 1e-6, "ball": exact * (1 + 1e-6) + 1e-6})
    rng = np.random.default_rng(3)
    shares = (
        lambda shape: torch.zeros(shape, dtype=double),
        lambda shape: torch.ones(shape, dtype=double),
        lambda shape: torch.from_numpy(rng.random(shape)),
        lambda shape: torch.from_numpy(rng.integers(0, 2, size=shape).astype(float)),
        lambda shape: torch.full(shape, torch.nan, dtype=double),
    )
    for share in shares:
        monkeypatch.setattr(Hulls, "shares", _of(share))
        with pytest.raises(InputError, match="evidence"):
            check(wrong, network)
    monkeypatch.undo()
    for _ in range(40):
        with pytest.raises(InputError, match="evidence"):
            check(shaken(wrong, rng), network)


def test_uses_of_hulls_are_read_strictly(sample) -> None:
    network, _, _, data = sample
    arrays = unpack(data)[1]
    flags, ends = arrays["margin/hull"], next(name for name in arrays if name.endswith("/ends") and arrays[name].size)
    bad = {
        "margin/hull": [flags[:-1], flags + 2, flags[None], flags.astype(np.float64), flags * np.nan],
        ends: [arrays[ends][::-1].repeat(2), arrays[ends] + 10**6, arrays[ends] - 10**6, arrays[ends][None]],
    }
    for name, several in bad.items():
        for array in several:
            with pytest.raises(FormatError, match="evidence: expected") as told:
                check(rewritten(data, arrays={name: array}), network)
            assert "\n" not in str(told.value)


def test_files_of_version_1_are_still_checked() -> None:
    """They hold no word of hulls."""
    network = relu_toy(3, (5, 12, 10, 3))
    instance = random_instance(network, 3, reach=0.4)
    flat = replace(DEFAULT, trees=replace(DEFAULT.trees, hull_neurons=0))
    radius = proven(network, instance, tuning=flat)
    assert radius.evidence is not None, radius.note
    claim, arrays = unpack(radius.evidence)
    assert not any(array.any() for name, array in arrays.items() if name.endswith(("/hull", "/hull2")))
    older = {name: array for name, array in arrays.items() if not name.endswith(("/hull", "/hull2", "/ends"))}
    assert check(pack({**claim, "version": 1}, older), network).radius == radius.lower
    with pytest.raises(FormatError, match=r"hull|ends"):
        check(pack(claim, older), network)
