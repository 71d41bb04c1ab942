"""The vocabulary: frozen values that cannot be built wrong."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from radii.errors import Contradiction, DataError, InputError
from radii.problem import (
    L1,
    L2,
    LINF,
    Answer,
    Ball,
    Classification,
    Clause,
    Domain,
    Instance,
    Lipschitz,
    Norm,
    OutputSpec,
    Proof,
    Query,
    Radius,
    Reason,
    SpecQuery,
    Standard,
    Status,
    StrongClassification,
    Verdict,
    Witness,
)

X = np.array([0.25, 0.5, 0.75], dtype=np.float32)
WITNESS = Witness(X, 0.1, 1, np.array([0.0, 1.0], dtype=np.float32))
# Inputs are float32: differences of them are far from where squares of float64 underflow.
vectors = hnp.arrays(np.float32, 4, elements=st.floats(-10, 10, width=32)).map(lambda a: a.astype(np.float64))


def one_line(caught):
    return "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [
        LINF,
        Domain(),
        Instance(X, 1),
        Query(Instance(X, 1), 0.1),
        Classification(),
        Proof("x"),
        WITNESS,
        Answer.robust(Proof("x")),
        Radius(0.1, 0.2),
        Ball(X, 0.1),
        OutputSpec((Clause(np.eye(2), np.zeros(2)),)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_values_are_frozen(value):
    name = next(iter(type(value).__dataclass_fields__))
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)


class TestAnswer:
    def test_broken_needs_a_witness(self):
        with pytest.raises(InputError, match="expected a replayed witness for broken"):
            Answer(Verdict.BROKEN)
        with pytest.raises(InputError, match="expected a replayed witness"):
            Answer(Verdict.BROKEN, proof=Proof("x"), reason=Reason.TIME)

    def test_robust_needs_a_proof_and_unknown_a_reason(self):
        with pytest.raises(InputError, match="expected a proof for robust"):
            Answer(Verdict.ROBUST)
        with pytest.raises(InputError, match="expected a reason for unknown"):
            Answer(Verdict.UNKNOWN)

    def test_evidence_of_another_verdict_is_refused(self):
        with pytest.raises(InputError, match="no witness for robust"):
            Answer(Verdict.ROBUST, proof=Proof("x"), witness=WITNESS)
        with pytest.raises(InputError, match="no proof for broken"):
            Answer(Verdict.BROKEN, proof=Proof("x"), witness=WITNESS)

    def test_witness_cannot_be_taken_away(self):
        with pytest.raises(InputError, match="expected a replayed witness"):
            replace(Answer.broken(WITNESS), witness=None)

    def test_shortcuts(self):
        assert Answer.robust(Proof("interval"), nodes=3).nodes == 3
        assert Answer.broken(WITNESS).witness is WITNESS
        assert Answer.unknown(Reason.MEMORY, "full").detail == "full"

    def test_proof_names_its_arithmetic(self):
        assert Proof("x").arithmetic == "real"
        with pytest.raises(InputError, match="expected arithmetic real, float32 or claim, got 'float8'"):
            Proof("x", "float8")


class TestRadius:
    def test_absent_is_absent(self):
        empty = Radius()
        assert (empty.lower, empty.upper, empty.gap, empty.status) == (None, None, None, Status.UNSOLVED)
        assert Radius(lower=0.1).status is Status.OPEN
        assert Radius(upper=0.1).status is Status.OPEN
        assert Radius(lower=0.4, limit=0.4).status is Status.ROBUST
        assert Radius(lower=0.3, limit=0.4).status is Status.OPEN

    @pytest.mark.parametrize("end", [math.nan, math.inf, -0.1])
    def test_ends_are_numbers_or_absent(self, end):
        with pytest.raises(InputError, match="absent or a finite number"):
            Radius(lower=end)
        with pytest.raises(InputError, match="absent or a finite number"):
            Radius(upper=end)

    @pytest.mark.parametrize(("lower", "upper"), [(0.3, 0.2), (0.2, 0.2)])
    def test_contradiction_names_both_ends(self, lower, upper):
        with pytest.raises(Contradiction, match=f"{lower}.*{upper}"):
            Radius(lower, upper)

    def test_closed_within_the_tolerance(self):
        assert Radius(0.1, 0.102, tolerance=0.002).status is Status.CLOSED
        assert Radius(0.1, 0.103, tolerance=0.002).status is Status.OPEN
        # Nothing is proven, but the radius of an input that is classified correctly cannot be below 0.
        broken_at_once = Radius(upper=0.001, tolerance=0.002)
        assert (broken_at_once.lower, broken_at_once.status) == (None, Status.CLOSED)
        assert Radius(upper=0.003, tolerance=0.002).status is Status.OPEN

    def test_misclassified_is_zero(self):
        wrong = Radius.wrong(prediction=3)
        assert (wrong.lower, wrong.upper, wrong.status, wrong.prediction) == (0.0, 0.0, Status.MISCLASSIFIED, 3)
        with pytest.raises(InputError, match="radius 0 at both ends"):
            Radius(None, 0.0, misclassified=True)

    def test_narrow_joins_knowledge_or_contradicts(self):
        joined = Radius(0.1, 0.5, proof=Proof("a")).narrow(Radius(0.2, None, proof=Proof("b")))
        assert (joined.lower, joined.upper, joined.proof) == (0.2, 0.5, Proof("b"))
        joined = Radius().narrow(Radius(upper=0.3, witness=WITNESS))
        assert (joined.lower, joined.upper, joined.witness) == (None, 0.3, WITNESS)
        with pytest.raises(Contradiction):
            Radius(lower=0.4).narrow(Radius(upper=0.3))

    @given(*[st.none() | st.floats(0, 1)] * 4)
    def test_narrow_never_widens(self, a, b, c, d):
        try:
            first, second = Radius(a, b), Radius(c, d)
            joined = first.narrow(second)
        except Contradiction:
            return
        assert joined.lower == max((v for v in (a, c) if v is not None), default=None)
        assert joined.upper == min((v for v in (b, d) if v is not None), default=None)


class TestNorm:
    @pytest.mark.parametrize(
        ("text", "norm"), [("linf", LINF), ("L∞", LINF), ("l_inf", LINF), ("L2", L2), ("l1", L1), (L1, L1)]
    )
    def test_names(self, text, norm):
        assert Norm.of(text) == norm

    @pytest.mark.parametrize("bad", ["l3", "", 2, None])
    def test_unknown_names(self, bad):
        with pytest.raises(InputError, match="norm: expected") as caught:
            Norm.of(bad)
        assert one_line(caught)

    @given(vectors, vectors)
    def test_duality(self, a, b):
        for norm in (LINF, L2, L1):
            assert norm.dual.dual == norm
            assert abs(a @ b) <= norm.size(a) * norm.dual.size(b) * (1 + 1e-12) + 1e-300

    @given(vectors, vectors, vectors)
    def test_distance_is_a_metric(self, a, b, c):
        for norm in (LINF, L2, L1):
            assert norm.distance(a, b) == norm.distance(b, a)
            assert norm.distance(a, a) == 0
            assert norm.distance(a, c) <= (norm.distance(a, b) + norm.distance(b, c)) * (1 + 1e-12) + 1e-15

    @given(vectors)
    def test_equals_numpy_and_orders(self, a):
        for norm in (LINF, L2, L1):
            assert norm.size(a) == pytest.approx(np.linalg.norm(a, norm.order), rel=1e-12, abs=1e-200)
        assert LINF.size(a) <= L2.size(a) * (1 + 1e-12) <= L1.size(a) * (1 + 1e-11)

    def test_differences_are_taken_in_float64(self):
        a, b = np.float32([1.0]), np.float32([np.nextafter(np.float32(1), np.float32(2))])
        assert LINF.distance(a, b) == float(b[0]) - 1.0


class TestBallAndDomain:
    def test_membership_has_no_slack(self):
        ball = Ball(X, 0.1)
        edge = X.astype(np.float64) + 0.1
        assert ball.contains(X)
        assert not ball.contains(np.nextafter(edge, 2))
        assert not Ball(X, 1.0).contains([-1e-12, 0.5, 0.75])

    def test_nan_is_nowhere(self):
        assert not Domain().contains([0.5, math.nan])
        assert not Domain.of(None).contains([math.nan])
        assert not Ball(X, 1.0).contains([math.nan] * 3)

    @given(hnp.arrays(np.float64, 3, elements=st.floats(0, 1)), st.floats(0, 1), st.sampled_from([LINF, L2, L1]))
    def test_members_lie_in_the_box(self, x, epsilon, norm):
        ball = Ball(X, epsilon, norm)
        low, high = ball.box()
        if ball.contains(x):
            assert ball.distance(x) <= epsilon
            assert np.all(x >= low - 1e-15)
            assert np.all(x <= high + 1e-15)

    def test_domains(self):
        assert Domain.of((0, 255)) == Domain(0.0, 255.0)
        assert not Domain.of(None).bounded
        assert Domain.of((0, None)) == Domain(0.0, math.inf)
        for bad in ((1, 0), (0, 0), (0,), "unit", (0, "x"), (math.nan, 1)):
            with pytest.raises(InputError, match="domain: expected"):
                Domain.of(bad)


class TestQueryAndInstance:
    @pytest.mark.parametrize(("given", "value"), [("8/255", 8 / 255), (" 8 / 255 ", 8 / 255), (0, 0.0), ("0.1", 0.1)])
    def test_epsilon_takes_fractions(self, given, value):
        assert Query(Instance(X, 0), given).epsilon == value

    @pytest.mark.parametrize("bad", ["8/0", "x", -0.1, math.nan, math.inf, None, "inf", [1]])
    def test_bad_epsilon(self, bad):
        with pytest.raises(InputError, match="epsilon: expected a number of at least 0") as caught:
            Query(Instance(X, 0), bad)
        assert one_line(caught)

    def test_ball_takes_the_domain_of_the_classifier(self):
        ball = Query(Instance(X, 0), 0.1, norm="l2").ball(Domain(0, 2))
        assert (ball.epsilon, ball.norm, ball.domain) == (0.1, L2, Domain(0, 2))

    @pytest.mark.parametrize("bad", [[math.nan], [math.inf, 0.0], []])
    def test_instances_are_finite(self, bad):
        with pytest.raises(DataError, match="input 7: expected"):
            Instance(np.array(bad, dtype=np.float32), 0, 7)

    def test_negative_label(self):
        with pytest.raises(DataError, match="label of at least 0, got -1"):
            Instance(X, -1)

    def test_identity_is_the_content(self):
        one, same = Instance(X, 1, 5, "a", "test"), Instance(X.copy(), 1, 9, "b", "train")
        assert one == same
        assert hash(one) == hash(same)
        assert one != Instance(X, 2)
        assert one != Instance(X + np.float32(1e-7), 1)

    def test_values_cannot_be_changed(self):
        with pytest.raises(ValueError, match="read-only"):
            Instance(X.copy(), 0).x[0] = 1.0

    def test_float64_becomes_float32(self):
        assert Instance(np.array([0.1]), 0).x.dtype == np.float32


class TestProperties:
    @given(hnp.arrays(np.float64, 4, elements=st.floats(-5, 5)), st.integers(0, 3))
    def test_classification_breaks_at_a_tie(self, outputs, label):
        others = np.delete(outputs, label)
        assert Classification().violations(4, label).violated(outputs) == bool((others >= outputs[label]).any())

    @given(hnp.arrays(np.float64, 4, elements=st.floats(-5, 5)))
    def test_target_speaks_of_one_class(self, outputs):
        assert Classification(2).violations(4, 0).violated(outputs) == bool(outputs[2] >= outputs[0])

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: Classification(1).violations(4, 1), "another class than the label"),
            (lambda: Classification(4).violations(4, 1), "target: expected a class from 0 to 3, got 4"),
            (lambda: Classification().violations(4, 4), "label: expected a class from 0 to 3, got 4"),
            (lambda: Classification(-1), "target: expected a whole number of at least 0"),
            (lambda: Classification(1.5), "target: expected a whole number"),
            (lambda: StrongClassification(math.nan), "eta: expected a number"),
            (lambda: Standard(1.0).violations(2, 0), "outputs at the centre"),
            (lambda: Lipschitz(0.0), "constant: expected a number above 0"),
            (lambda: Lipschitz(1.0).violations(2, 0), "outputs at the centre"),
        ],
    )
    def test_misuse(self, make, says):
        with pytest.raises(InputError, match=says) as caught:
            make()
        assert one_line(caught)

    @given(hnp.arrays(np.float64, 3, elements=st.floats(-5, 5)), hnp.arrays(np.float64, 3, elements=st.floats(-5, 5)))
    def test_standard_is_a_band_around_the_reference(self, outputs, reference):
        broken = Standard(0.5).violations(3, 0, reference).violated(outputs)
        moved = np.abs(outputs - reference)
        if (moved < 0.5 - 1e-9).all():
            assert not broken
        if (moved > 0.5 + 1e-9).any():
            assert broken

    def test_strong_classification_keeps_above_eta(self):
        spec = StrongClassification(0.5).violations(3, 1)
        assert spec.violated([0.0, 0.4, 0.0])
        assert not spec.violated([9.0, 0.6, 0.0])


class TestSpec:
    def test_clause_is_a_conjunction_and_spec_a_disjunction(self):
        both = Clause([[1, 0], [0, 1]], [0, 0])
        assert both.holds([-1, 0])
        assert not both.holds([-1, 1])
        either = OutputSpec((Clause([[1, 0]], [0]), Clause([[0, 1]], [0])))
        assert either.violated([-1, 1])
        assert not either.violated([1, 1])
        assert either.outputs == 2

    def test_misuse(self):
        with pytest.raises(InputError, match="as many bounds as rows"):
            Clause([[1, 0]], [0, 1])
        with pytest.raises(InputError, match="at least one clause"):
            OutputSpec(())
        spec = OutputSpec((Clause([[1, 0]], [0]),))
        with pytest.raises(InputError, match="lower ≤ upper"):
            SpecQuery(np.ones(2), np.zeros(2), spec)
        with pytest.raises(InputError, match="lower ≤ upper"):
            SpecQuery(np.full(2, math.nan), np.ones(2), spec)
