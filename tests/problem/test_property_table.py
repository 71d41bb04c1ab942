"""The table of properties: names, texts, mappings, keys of stores written before, and properties from elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import radii
from radii.errors import InputError
from radii.problem import Classification, Lipschitz, OutputSpec, Property, Standard, StrongClassification
from radii.problem import property as table
from radii.store import Setting

EVERY = [Classification(), Classification(3), StrongClassification(0.52), Standard(10.0), Lipschitz(2.5)]


@pytest.fixture
def clean() -> Iterator[None]:
    """The table as it was, whatever a test registers."""
    before = dict(table._registered)
    yield
    table._registered.clear()
    table._registered.update(before)


@pytest.mark.parametrize("one", EVERY, ids=str)
def test_text_mapping_and_pickle_give_the_property_back(one: Property) -> None:
    assert table.parse(str(one)) == one
    assert table.known_property({"kind": one.kind, **table.parameters(one)}) == one
    assert table.known_property(one) is one
    assert pickle.loads(pickle.dumps(one)) == one


def test_texts() -> None:
    assert str(Standard(10)) == "standard:delta=10"
    assert str(StrongClassification(0.52)) == "strong:eta=0.52"
    assert str(Classification()) == "classification"
    assert table.parse("standard:10") == table.parse("standard: delta = 10 ") == Standard(10.0)
    assert table.parse("standard:8/255") == Standard(8 / 255)
    assert table.parse("classification:3") == Classification(3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("strng:1", "did you mean 'strong'?"),
        ("", "expected a kind among classification, strong"),
        ("standard", "expected delta for kind standard, got none"),
        ("standard:1,linf,3", "expected at most 2 values for kind standard"),
        ("standard:delta=1,delta=2", "expected delta once"),
        ("standard:dleta=1", "did you mean 'delta'?"),
        ("standard:delta=much", "property delta: expected a number, got 'much'"),
        ("standard:0", "delta: expected a number above 0"),
        ("classification:x", "target: expected a whole number"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        table.parse(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


# As written by the version before there was a table.
KEYS = {
    "classification": "fcea7df2aae5bc6036e8be09c815c237",
    "classification:target=3": "5ec63897d4d85644be10fc17f99020c0",
    "strong:eta=0.5": "b4c67eef6537009cd21c50a449b6dc8e",
    "standard:delta=10": "4ecfeea33da6ccc79630d3a6fdcaa975",
    "lipschitz:constant=2": "3c5bdd1a4bf6689ac1d811df6df18008",
}


@pytest.mark.parametrize("text", KEYS)
def test_units_of_earlier_stores_keep_their_keys(text: str) -> None:
    asked = {"search_parameters": {"tolerance": 0.002, "limit": None}, "identity": "native 1", "seed": 0}
    assert Setting.of(table.parse(text), "linf", **asked).key == KEYS[text]


@dataclass(frozen=True)
class Row(Property):
    """A field with a default that a later version may have added, and one that is a list."""

    kind = "row"
    row: tuple[float, ...]
    bound: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", tuple(self.row))

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        raise NotImplementedError


@pytest.mark.usefixtures("clean")
def test_a_property_of_ones_own() -> None:
    table.register(Row)
    assert table.register(Row) is Row
    assert table.parse("row:[1,-1,0],bound=1/2") == Row((1, -1, 0), 0.5)
    assert str(Row((1, -1, 0))) == "row:row=[1,-1,0]"
    assert table.parse(str(Row((1, -1.5, 0), 2.0))) == Row((1, -1.5, 0), 2.0)
    assert Setting.of(Row((1, 2)), "linf").property_parameters == {"row": (1, 2)}
    assert table.kinds()["row"] is Row


@pytest.mark.usefixtures("clean")
def test_what_cannot_be_registered() -> None:
    class Plain(Property):
        kind = "plain"

        def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
            raise NotImplementedError

    @dataclass(frozen=True)
    class Standard(Row):
        kind = "standard"

    @dataclass(frozen=True)
    class Vague(Row):
        kind = "vague"
        speaks_of = "everything"

    for new, said in (
        (Plain, "expected a dataclass"),
        (Standard, "one class of that name"),
        (Vague, "speaks_of among"),
    ):
        with pytest.raises(InputError, match=said):
            table.register(new)


def test_laws_of_what_implies_what() -> None:
    strong, standard = radii.StrongClassification, radii.Standard
    for one, other, epsilon in (
        (radii.Classification(), radii.Classification(3), 1.0),
        (strong(0.52, on="probability"), radii.Classification(), 1.0),
        (strong(0.52, on="probability"), radii.Classification(2), 1.0),
        (strong(0.52), strong(0.5), 1.0),
        (standard(1), standard(2), 1.0),
        (standard(1, norm="l1"), standard(1, norm="l2"), 1.0),
        (standard(1, norm="l2"), standard(1), 1.0),
        (radii.Lipschitz(2), radii.Lipschitz(3), 1.0),
        (radii.Lipschitz(2), standard(1), 0.5),
        (radii.Probability(0.1), radii.Probability(0.2), 1.0),
    ):
        assert one.implies(other, epsilon)
        assert not other.implies(one, epsilon)
    for one, other in (
        (strong(0.5, on="probability"), radii.Classification()),
        (strong(0.9), radii.Classification()),
        (strong(0.9), strong(0.5, on="probability")),
        (radii.Lipschitz(2), standard(0.99)),
        (radii.Lipschitz(2), standard(5, norm="l2")),
        (standard(1), radii.Lipschitz(2)),
        (radii.Rows(((1.0, 0.0),)), radii.Rows(((2.0, 0.0),))),
    ):
        assert not one.implies(other, 0.5)
