"""Cuts: the least value over a box ∩ half-space, compiled and not, against linear programs."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from radii.bounds import cuts as cut
from radii.bounds.tuning import Bounding

# The kernel is used however little there is to do.
lowest_under_cut = partial(cut.lowest_under_cut, tuning=Bounding(cut_kernel=0))


def draw(seed: int, d: int, nodes: int = 3, rows: int = 4, dtype: torch.dtype = torch.float64):
    """Random rows, cuts that leave something of the box, and the box."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(nodes, rows, d))
    k = rng.normal(size=(nodes, rows))
    g = rng.normal(size=(nodes, d))
    g[0, rng.random(d) < 0.5] = 0.0
    middle, half = rng.normal(size=d) * 0.1, rng.uniform(0.0, 0.3, d)
    inside = middle + half * rng.uniform(-1, 1, (nodes, d))
    c = -(g * inside).sum(1)  # the border of the cut goes through a point of the box
    return tuple(torch.tensor(v, dtype=dtype) for v in (w, k, g, c, middle, half))


def by_program(w, k, g, c, middle, half) -> float:
    bounds = list(zip(middle - half, middle + half))
    found = linprog(w, A_ub=g[None], b_ub=[-c], bounds=bounds, method="highs")
    return float(found.fun) + k


@given(st.integers(0, 10**6), st.integers(1, 12))
@settings(max_examples=40)
def test_bound_is_below_the_optimum_and_nearly_there(seed, d):
    parts = draw(seed, d)
    bound = lowest_under_cut(*parts).numpy()
    w, k, g, c, middle, half = (p.numpy() for p in parts)
    for n in range(len(c)):
        for r in range(k.shape[1]):
            best = by_program(w[n, r], k[n, r], g[n], c[n], middle, half)
            plain = w[n, r] @ middle + k[n, r] - np.abs(w[n, r]) @ half
            assert bound[n, r] <= best + 1e-9
            assert bound[n, r] >= plain - 1e-9  # never worse than without the cut
            assert bound[n, r] >= best - 0.15 * (best - plain) - 1e-9


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=30)
def test_compiled_and_plain_agree(seed, d, dtype):
    parts = draw(seed, d, dtype=dtype)
    pytest.importorskip("numba")
    compiled, plain = lowest_under_cut(*parts), cut._torch(*parts)
    w, k, _, _, middle, half = (p.double() for p in parts)
    size = (w.abs() * half).sum(-1) + (w.abs() * middle.abs()).sum(-1) + k.abs()
    assert bool(((compiled.double() - plain.double()).abs() <= 1e-4 * size + 1e-5).all())


@given(st.integers(0, 10**6), st.sampled_from([torch.float32, torch.float64]))
@settings(max_examples=30)
def test_no_point_of_the_cut_box_is_below(seed, dtype):
    parts = draw(seed, 8, dtype=dtype)
    w, k, g, c, middle, half = (p.double().numpy() for p in parts)
    rng = np.random.default_rng(seed)
    x = middle + half * rng.uniform(-1, 1, (400, 8)) ** 3
    x[::2] = middle + half * np.sign(rng.normal(size=(200, 8)))
    for bound in (lowest_under_cut(*parts), cut._torch(*parts)):
        low = bound.double().numpy()
        for n in range(len(c)):
            kept = x[x @ g[n] + c[n] <= 0]
            assert np.all(kept @ w[n].T + k[n] >= low[n] - 1e-14)


def test_shared_rows_equal_repeated_rows():
    w, k, g, c, middle, half = draw(1, 6)
    shared = w[:1].expand_as(w).contiguous()
    assert torch.allclose(
        lowest_under_cut(w[:1], k, g, c, middle, half), lowest_under_cut(shared, k, g, c, middle, half)
    )


@pytest.mark.parametrize("where", range(4))
def test_nan_gives_no_bound(where):
    parts = [p.clone() for p in draw(2, 5)]
    parts[where].view(-1)[0] = float("nan")
    for bound in (lowest_under_cut(*parts), cut._torch(*parts)):
        plain = (parts[0] * parts[4]).sum(-1) + parts[1] - (parts[0].abs() * parts[5]).sum(-1)
        first = bound[0, 0]
        # A NaN in the row or its constant gives NaN; one in the cut may at most leave the bound without the cut.
        assert bool(torch.isnan(first)) or float(first) <= float(plain[0, 0]) + 1e-12


def test_a_cut_of_zeros_changes_nothing():
    w, k, g, c, middle, half = draw(3, 5)
    plain = (w * middle).sum(-1) + k - (w.abs() * half).sum(-1)
    bound = lowest_under_cut(w, k, torch.zeros_like(g), -torch.ones_like(c), middle, half)
    assert torch.allclose(bound, plain)


LARGE = """
import torch
from radii.bounds import cuts, tuning
ones, always = torch.ones, tuning.Bounding(cut_kernel=0)
cuts.lowest_under_cut(ones(1, 1, 2), ones(1, 1), ones(1, 2), ones(1), ones(2), ones(2), tuning=always)
"""


def test_a_second_process_finds_the_compiled_kernel(tmp_path):
    """Compiling takes seconds: a process that does it again would pay them at every command."""
    pytest.importorskip("numba")
    kept = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", LARGE], check=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
        kept.append(sorted(p.name for p in tmp_path.rglob("*.nbc")))
    assert kept[0]
    assert kept[0] == kept[1]


def test_a_kernel_that_cannot_be_kept_is_compiled_all_the_same(monkeypatch):
    numba = pytest.importorskip("numba")
    from radii.bounds import _cut_kernel

    whole = numba.njit

    def nowhere(**options: object) -> object:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return whole(**options)

    monkeypatch.setattr(_cut_kernel.numba, "njit", nowhere)
    assert _cut_kernel.compiled(lambda x: x + 1)(2) == 3


@pytest.mark.parametrize("error", ["ImportError", "OSError", "MemoryError"])
def test_numba_that_cannot_be_loaded_is_done_without(error, tmp_path):
    """numba made for another numpy, or too little memory for its compiler: the slower way gives the bounds."""
    (tmp_path / "numba.py").write_text(f"raise {error}('as the test wants it')")
    code = (
        "import torch; from radii.bounds import cuts, hull; from radii.bounds.region import Region;"
        "from radii.problem import LINF, Domain; from radii.bounds.tuning import Bounding;"
        "always = Bounding(cut_kernel=0);"
        "one, row = torch.ones(1).double(), torch.ones(1, 1).double();"
        "ball = Region.around(row, one, LINF, Domain.of(None)).shifted();"
        "hull.through_hulls(ball, (row, one, 0 * one), row, (row, one), 2, kernel=0);"
        "print(float(cuts.lowest_under_cut(row[None], row, row, -one, one, one, tuning=always)) <= 1.0)"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    assert done.stdout == "True\n"
