"""What verifiers say they take, whether it is so, and that it is asked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.cli.command import refused_here
from tests.study.build import toy_study

import radii
from radii.decide import Budget, supports
from radii.errors import InputError
from radii.models import graph, operators
from radii.models.classifier import Classifier
from radii.problem import Answer, Instance, Norm, Proof, Query, Reason
from radii.problem.property import kinds
from radii.testing.toys import relu_toy
from radii.verifiers.catalogue import everyone, make
from radii.verifiers.support import support_table

NET = relu_toy(0, (2, 3, 3))
X = np.full(2, 0.5, np.float32)
INSTANCE = Instance(X, int(NET.predict(X)))


@pytest.mark.parametrize("verifier", list(everyone()))
def test_what_a_verifier_says_it_takes_is_what_it_answers(verifier: str) -> None:
    """Every property in every norm: where `supports` is empty the verifier answers, elsewhere it refuses."""
    decider = make(verifier)
    for cls in kinds().values():
        for norm in (Norm.of("linf"), Norm.of("l2"), Norm.of("l1")):
            property = cls.example()
            query = Query(INSTANCE, 1e-3, property, norm)
            try:
                (answer,) = decider.decide(NET, [query], Budget(seconds=5))
                refused = answer.reason in (Reason.UNSUPPORTED, Reason.ERROR)
            except InputError:
                refused = True
            assert refused == bool(supports(decider, property, norm, NET.operators)), (str(property), norm.name)


def test_every_operator_is_known_by_name() -> None:
    """The names that `supports` is asked about are those of all operators that there are."""
    pending, affine = [operators.Affine], set()
    while pending:
        below = pending.pop().__subclasses__()
        affine |= {one.__name__ for one in below if not one.__subclasses__()}
        pending += below
    assert affine == set(graph.AFFINE)
    others = {one.__name__ for one in operators.Operator.__subclasses__()} - {"Affine", "Softmax"}
    assert others == set(graph.ACTIVATIONS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"property": {"kind": "standard", "delta": 0.5}, "verifier": "envelope"},
            ("got envelope", "standard speaks of outputs", "native"),
        ),
        ({"property": "lipschitz:3", "verifier": "milp"}, ("got milp", "lipschitz speaks of distance", "native")),
        ({"norm": "l2", "verifier": "milp"}, ("not l2", "use verifier native or envelope")),
    ],
)
def test_a_plan_refuses_what_its_verifier_cannot_answer(
    tmp_path: Path, changes: dict[str, object], said: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    study = toy_study(tmp_path / "s", **changes)
    line = refused_here(capfd, "run", study, "--dry-run")
    assert all(word in line for word in said), line
    assert refused_here(capfd, "run", study, "--runner", "serial") == line
    assert not list(study.parent.glob("*.db"))


def test_a_command_refuses_before_it_opens_a_store(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Ended with status `unsolved`, no reason and exit code 0 before."""
    np.savez(tmp_path / "d.npz", x=np.zeros((1, 1, 28, 28), np.float32), y=[1])
    store = tmp_path / "r.db"
    asked = ("--data", tmp_path / "d.npz", "--property", "standard:0.5", "--store", store)
    line = refused_here(capfd, "radius", "zoo:mnist5k-conv", *asked, "--verifier", "attack", "--grid", "0.01:0.1:0.01")
    assert "expected a verifier for property standard:delta=0.5 in norm linf, got attack" in line
    assert "milp" in line
    assert not store.exists()


@dataclass(frozen=True)
class Old:
    """A decider from before `supports`: it is asked."""

    identity: str = "old 1"
    proves: bool = True
    refutes: bool = False

    def decide(self, classifier: Classifier, queries: list[Query], budget: Budget) -> list[Answer]:
        return [Answer.robust(Proof("faith", "real")) for _ in queries]


def test_a_verifier_that_does_not_say_is_asked() -> None:
    found = radii.radius(NET, X, INSTANCE.label, property="standard:9", verifier=Old(), grid=[0.1, 0.2])
    assert found.lower == 0.2


def test_the_page_shows_the_table_that_verifiers_give() -> None:
    table = support_table()
    names = list(table["native"])
    lines = ["| verifier | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    lines += [f"| `{name}` | " + " | ".join(row[kind] or "–" for kind in names) + " |" for name, row in table.items()]
    page = (Path(__file__).parents[2] / "docs" / "verifiers.md").read_text()
    assert "\n".join(lines) in page, "docs/verifiers.md: expected this table\n" + "\n".join(lines)
