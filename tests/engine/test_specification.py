"""Specifications over boxes: the native verifier against Z3, against dense sampling, and on VNN-COMP instances."""

from __future__ import annotations

import csv
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.tuned import few_inputs
from tests.shared import DATA, needs
from tests.verifiers.nets import Net, convnet, f32, mlp

from radii.bounds.lowering import lower
from radii.cli.main import run
from radii.decide import Budget, replay_spec
from radii.engine.input_split import Cover, region_of
from radii.engine.maxima import maxima
from radii.engine.native import Native
from radii.engine.output_rows import OutputRows
from radii.engine.specification import decide_spec, goals
from radii.engine.tuning import DEFAULT
from radii.errors import InputError
from radii.formats import read_vnnlib, read_witness
from radii.models import load_classifier
from radii.problem import Clause, OutputSpec, Reason, SpecQuery, Verdict
from radii.verifiers.milp import Milp
from radii.verifiers.smt import Smt

VNNCOMP = DATA / "vnncomp2021"
needs_vnncomp = needs("vnncomp2021")
BUDGET = Budget(seconds=20)


def inside(query: SpecQuery, count: int, seed: int = 0) -> Any:
    """Float32 inputs of a box: random ones and corners."""
    rng = np.random.default_rng(seed)
    low, high = query.lower.ravel(), query.upper.ravel()
    share = rng.uniform(size=(count, low.size))
    share[: count // 2] = share[: count // 2].round()
    points = (low + share * (high - low)).astype(np.float32)
    kept = ((points >= low) & (points <= high)).all(1)
    return points[kept]


def random_query(rng: np.random.Generator, network: Any, flat: bool) -> SpecQuery:
    """A random disjunction of conjunctions whose thresholds lie near what a random box reaches."""
    d, outputs = network.size, network.classes
    low = f32(rng.uniform(-2, 1, d)).astype(np.float64)
    high = low + f32(rng.uniform(0.05, 1.2, d))
    if flat:
        fixed = rng.permutation(d)[: rng.integers(1, d)]
        high[fixed] = low[fixed]
    reached = network(f32(low + rng.uniform(size=(200, d)) * (high - low))).astype(np.float64)
    clauses = []
    for _ in range(rng.integers(1, 4)):
        rows = rng.normal(size=(rng.integers(1, 4), outputs))
        values = reached @ rows.T
        aim = values[np.abs(values - np.quantile(values, 0.1, axis=0)).max(1).argmin()]
        clauses.append(Clause(rows, aim - rng.uniform(0.0, 0.5) * np.ptp(values, axis=0)))
    return SpecQuery(low, high, OutputSpec(tuple(clauses)))


def check(network: Any, query: SpecQuery, verdict: Verdict, answer: Any) -> None:
    """That an answer is the expected one and carries what makes it hold."""
    assert answer.verdict is verdict, (answer, query)
    if verdict is Verdict.BROKEN:
        assert replay_spec(network, query, answer.witness.x) is not None
    else:
        assert answer.proof.arithmetic == "real"
        assert not any(query.spec.violated(y) for y in network.reference(inside(query, 200)))


@pytest.fixture(scope="module")
def judged() -> list[tuple[Any, SpecQuery, Verdict]]:
    """Random networks and queries with the verdicts of Z3 (every sixth: it is slow) or the MILP."""
    pytest.importorskip("z3", reason="the extra `smt` is not installed")
    rng, cases = np.random.default_rng(11), []
    for case in range(36):
        network = mlp(rng, [3, 7, 5, 3])
        query = random_query(rng, network, flat=case % 4 == 0)
        referee = Milp() if case % 6 else Smt()
        truth = referee.decide_spec(network, query, BUDGET).verdict
        if truth is not Verdict.UNKNOWN:
            cases.append((network, query, truth))
    counts = [sum(truth is v for *_, truth in cases) for v in (Verdict.ROBUST, Verdict.BROKEN)]
    assert min(counts) >= 10, counts
    return cases


@pytest.mark.parametrize("way", ["boxes", "signs"])
def test_random_specifications_against_two_referees(way: str, judged: Any) -> None:
    poor = replace(DEFAULT.spec_attack, samples=1, starts=1, steps=1)  # so that the search has to find what is broken
    tuning = replace(few_inputs(20 if way == "boxes" else 0), intervals=DEFAULT.intervals, spec_attack=poor)
    nodes = 0
    for network, query, truth in judged:
        answer = Native(tuning=tuning).decide_spec(network, query, BUDGET)
        check(network, query, truth, answer)
        nodes += answer.nodes
    assert nodes > len(judged)  # not all was settled by the attack and the first bound


def test_pooling_clipping_and_skips() -> None:
    rng, size = np.random.default_rng(3), 0.04
    seen = set()
    for case in range(6):
        network = convnet(rng)
        center = f32(rng.uniform(size=25)).astype(np.float64)
        values = network(f32(center + rng.uniform(-size, size, (300, 25)))).astype(np.float64)
        rows = rng.normal(size=(2, 3))
        reach = (values @ rows.T).max(1)
        limit = reach.min() + (0.3 if case % 2 else -1.0) * np.ptp(reach)
        query = SpecQuery(center - size, center + size, OutputSpec((Clause(rows, np.full(2, limit)),)))
        truth = Milp().decide_spec(network, query, BUDGET).verdict
        if truth is not Verdict.UNKNOWN:
            seen.add(truth)
            check(network, query, truth, decide_spec(network, query, BUDGET))
    assert seen == {Verdict.ROBUST, Verdict.BROKEN}


def test_a_conjunction_no_single_row_of_which_can_be_refuted() -> None:
    # y = (x, -x): both rows ask for y ≤ -0.1, each can be met alone on [-1, 1], both together cannot.
    net = Net((1,))
    net.add("Gemm", f32([[1.0], [-1.0]]), f32([0.0, 0.0]), transB=1)
    network = net.build(2)
    query = SpecQuery([-1.0], [1.0], OutputSpec((Clause(np.eye(2), np.full(2, -0.1)),)))
    answer = decide_spec(network, query, BUDGET)
    assert answer.verdict is Verdict.ROBUST
    assert answer.nodes == 1  # the two rows add up to 0.2 > 0: nothing has to be split


def test_the_greatest_row_is_the_greatest_row() -> None:
    rng = np.random.default_rng(5)
    network = mlp(rng, [4, 6, 3])
    clauses = [Clause(rng.normal(size=(n, 3)), rng.normal(size=n)) for n in (1, 2, 3, 5, 1, 4)]
    asked = goals(network, OutputSpec(tuple(clauses)))
    x = torch.from_numpy(rng.normal(size=(50, 4)))
    outputs = lower(network.graph).to(torch.float64)(x).numpy()
    expected = np.stack([(outputs @ c.coefficients.T - c.bounds).max(1) for c in clauses], axis=1)
    unit = torch.eye(asked.graph.nodes[-1].size, dtype=torch.float64)
    joined = maxima(OutputRows(asked.graph, unit, unit.new_zeros(len(unit)), asked.members))
    np.testing.assert_allclose(joined.graph(x).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(asked.of(asked.graph(x)).numpy(), expected, atol=1e-12)


def test_boxes_are_covered_by_their_halves_and_bounds_hold() -> None:
    rng = np.random.default_rng(8)
    network = mlp(rng, [2, 30, 30, 30, 2])
    low, high = np.array([-1.0, 0.3]), np.array([2.0, 1.1])
    axes = [np.linspace(a, b, 101) for a, b in zip(low, high)]
    grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
    x = torch.from_numpy(grid)
    asked = goals(network, OutputSpec((Clause(np.array([[1.0, -1.0]]), np.array([0.1])),)))
    truth = asked.of(asked.graph(x))[:, 0]
    cover = Cover(asked, torch.from_numpy(low), torch.from_numpy(high))
    for _ in range(6):
        boxes = cover.open
        within = ((x[:, None] >= boxes.low) & (x[:, None] <= boxes.high)).all(-1)
        assert bool((truth[~within.any(1)] > 0).all())  # what was closed is safe
        assert bool((truth[:, None] >= boxes.bound)[within].all())
        cover.step()
    assert cover.visited > 20


def test_regions_hold_their_boxes_to_the_last_digit() -> None:
    rng = np.random.default_rng(9)
    low = torch.from_numpy(rng.normal(size=(500, 4)) * 10.0 ** rng.integers(-8, 8, (500, 4)))
    high = low + torch.from_numpy(rng.uniform(size=(500, 4)) * 10.0 ** rng.integers(-12, 3, (500, 4)))
    high[:, 0] = low[:, 0]
    region = region_of(low, high)
    for i, k in np.ndindex(60, 4):
        center = Fraction(float(region.center[i, k]))
        assert center - Fraction(float(region.down[i, k])) <= Fraction(float(low[i, k]))
        assert center + Fraction(float(region.up[i, k])) >= Fraction(float(high[i, k]))
    assert bool((region.down[:, 0] == 0).all())
    assert bool((region.up[:, 0] == 0).all())


def test_a_single_point_and_a_tie() -> None:
    net = Net((2,))
    net.add("Gemm", f32([[1.0, 1.0], [1.0, -1.0]]), f32([0.0, 0.0]), transB=1)
    net.add("Relu")
    network = net.build(2)
    at = np.array([0.5, 0.25])
    beyond = OutputSpec((Clause(np.array([[1.0, 0.0]]), np.array([0.7499])),))
    tie = OutputSpec((Clause(np.array([[1.0, 0.0]]), np.array([0.75])),))
    assert decide_spec(network, SpecQuery(at, at, beyond), BUDGET).verdict is Verdict.ROBUST
    assert decide_spec(network, SpecQuery(at, at, tie), BUDGET).verdict is Verdict.BROKEN
    # No float32 number is 0.1, so nothing in this box can be replayed, and nothing can be proven either.
    odd = np.array([0.1, 0.1])
    met = OutputSpec((Clause(np.array([[0.0, 1.0]]), np.array([0.0])),))
    answer = decide_spec(network, SpecQuery(odd, odd, met), BUDGET)
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.INCOMPLETE)


def test_a_final_relu_is_kept() -> None:
    # Outputs are relu(x): below 0 the output is 0, never negative.
    net = Net((1,))
    net.add("Gemm", f32([[1.0], [2.0]]), f32([0.0, 0.0]), transB=1)
    net.add("Relu")
    network = net.build(2)
    query = SpecQuery([-3.0], [1.0], OutputSpec((Clause(np.array([[1.0, 0.0]]), np.array([-0.01])),)))
    assert decide_spec(network, query, BUDGET).verdict is Verdict.ROBUST
    query = SpecQuery([-3.0], [1.0], OutputSpec((Clause(np.array([[1.0, 0.0]]), np.array([0.0])),)))
    assert decide_spec(network, query, BUDGET).verdict is Verdict.BROKEN


def test_budgets_end_the_work_with_a_reason() -> None:
    rng = np.random.default_rng(21)
    network = mlp(rng, [6, 40, 40, 40, 2])
    low, high = np.full(6, -2.0), np.full(6, 2.0)
    reach = network(f32(rng.uniform(-2, 2, (5000, 6)))).astype(np.float64) @ [1.0, -1.0]
    query = SpecQuery(low, high, OutputSpec((Clause(np.array([[1.0, -1.0]]), np.array([reach.min() * 3])),)))
    for few in (20, 0):
        tuning = few_inputs(few)
        counted = [decide_spec(network, query, Budget(seconds=None, nodes=150), tuning=tuning) for _ in range(2)]
        assert counted[0].verdict is Verdict.UNKNOWN
        assert counted[0].reason is Reason.TIME
        assert counted[0].nodes == counted[1].nodes >= 150
        late = decide_spec(network, query, Budget(seconds=0.3), tuning=tuning)
        assert late.reason is Reason.TIME
        full = decide_spec(network, query, Budget(seconds=20, memory=2**20), tuning=tuning)
        assert full.reason is Reason.MEMORY


@pytest.mark.parametrize(
    ("low", "rows", "says"),
    [
        (np.zeros(4), np.ones((1, 2)), "3 inputs and 2 outputs"),
        (np.zeros(3), np.ones((1, 5)), "got 3 and 5"),
    ],
)
def test_a_query_for_another_network_is_refused(low: Any, rows: Any, says: str) -> None:
    network = mlp(np.random.default_rng(0), [3, 4, 2])
    with pytest.raises(InputError, match=says):
        decide_spec(network, SpecQuery(low, low + 1, OutputSpec((Clause(rows, np.zeros(1)),))), BUDGET)


def test_what_cannot_be_bounded_is_unsupported() -> None:
    net = Net((2,))
    net.add("Gemm", f32([[1.0, 1.0], [1.0, -1.0]]), f32([0.0, 0.0]), transB=1)
    net.add("Softmax", axis=1)
    network = net.build(2)
    share = OutputSpec((Clause(np.array([[1.0, 0.0]]), np.array([0.1])),))
    answer = decide_spec(network, SpecQuery(np.zeros(2), np.ones(2), share), BUDGET)
    assert answer.reason is Reason.UNSUPPORTED
    assert "softmax" in answer.detail
    order = OutputSpec((Clause(np.array([[1.0, -1.0]]), np.array([0.0])),))
    assert decide_spec(network, SpecQuery(np.full(2, 0.2), np.ones(2), order), BUDGET).verdict is Verdict.ROBUST


PICKED = [
    ("acasxu", "1_2_batch_2000.onnx", "prop_3.vnnlib.gz"),
    ("acasxu", "2_2_batch_2000.onnx", "prop_1.vnnlib.gz"),
    ("acasxu", "1_8_batch_2000.onnx", "prop_4.vnnlib.gz"),
    ("mnistfc", "mnist-net_256x2.onnx", "prop_0_0.03.vnnlib.gz"),
    ("mnistfc", "mnist-net_256x2.onnx", "prop_5_0.05.vnnlib.gz"),
    ("oval21", "cifar_base_kw.onnx", "img4549-eps0.00392156862745098.vnnlib.gz"),
    ("verivital", "Convnet_avgpool.onnx", "prop_3_0.02.vnnlib.gz"),
    ("verivital", "Convnet_maxpool.onnx", "prop_0_0.004.vnnlib.gz"),
]


@needs_vnncomp
@pytest.mark.parametrize(("benchmark", "onnx", "vnnlib"), PICKED)
def test_vnncomp_instances_as_a_user_types_them(
    benchmark: str, onnx: str, vnnlib: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (VNNCOMP / benchmark / "instances.csv").open() as file:
        (row,) = (r for r in csv.DictReader(file) if r["onnx"].endswith(onnx) and r["vnnlib"].endswith(vnnlib))
    model, query = VNNCOMP / benchmark / row["onnx"], VNNCOMP / benchmark / row["vnnlib"]
    assert run(["verify", str(query), "--network", f"N={model}", "--timeout", "300"]) == 0
    verdict, _, text = capsys.readouterr().out.partition("\n")
    assert verdict == row["expected"]
    if verdict == "sat":
        x = read_witness(text)["X"].astype(np.float32)
        network = load_classifier(model, domain=None, check=False)
        assert any(replay_spec(network, q, x) for q in read_vnnlib(query).queries)
