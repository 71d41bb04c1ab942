"""Names: the variables that a VNN-LIB file declares, and what each one stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from radii.errors import FormatError
from radii.formats.formula import Variable
from radii.formats.sexpr import Atom, Group, Tree
from radii.formats.vnnlib import Shape, Tensor

_FLAT = re.compile(r"([XY])_(\d{1,18})")
_ELEMENT = re.compile(r"([A-Za-z]\w*)\s*(?:\[([\d,\s]*)\])?")
_INDEX = re.compile(r"\s*(\d{1,18})\s*")
MOST_ELEMENTS = 10**7  # of a tensor: an image of 224 × 224 in colour has 150,528
_FLOATS = {"real", "float16", "float32", "float64", "bfloat16"}
Fail = Callable[[str, int | None], FormatError]


class Names:
    """Collects declarations, then resolves names to variables."""

    def __init__(self, fail: Fail) -> None:
        self._fail = fail
        self._known: dict[str, Variable] = {}
        self._seen: tuple[set[int], set[int]] = (set(), set())
        self._declared = False
        self.version = "1.0"
        self.network = "N"
        self.input = Tensor("X", (0,))
        self.output = Tensor("Y", (0,))

    def declare(self, statement: Group) -> None:
        """Take one declaration."""
        if statement.head == "vnnlib-version":
            self._version(statement)
        elif statement.head == "declare-network":
            self._network(statement)
        else:
            self._constant(statement)

    def constant(self, output: bool, index: int) -> None:
        """Take X_index or Y_index; declared twice is once, as published files have it."""
        self._seen[output].add(index)
        self._known[f"{'XY'[output]}_{index}"] = Variable(output, index)

    def close(self, at: int) -> None:
        """End the declarations; they must be complete."""
        if self._declared:
            return
        inputs, outputs = self._seen
        for name, seen in (("X", inputs), ("Y", outputs)):
            if not seen:
                raise self._fail(f"expected variables {name}_0, {name}_1, ... to be declared first, got none", at)
            if len(seen) != max(seen) + 1:
                hole = next(index for index in range(len(seen)) if index not in seen)
                raise self._fail(f"expected {name}_{hole} to be declared, got {name}_{max(seen)} without it", at)
        self.input, self.output = Tensor("X", (len(inputs),)), Tensor("Y", (len(outputs),))

    def resolve(self, name: str) -> Variable | None:
        """The variable of a name such as X_3 or X[0,3]; None when there is none."""
        found = self._known.get(name)
        if found is not None or not self._declared:
            return found
        match = _ELEMENT.fullmatch(name)
        if match is None or match[1] not in (self.input.name, self.output.name):
            return None
        output = match[1] == self.output.name
        tensor = self.output if output else self.input
        places = [_INDEX.fullmatch(i) for i in (match[2] or "").split(",") if i.strip()]
        indices = tuple(int(place[1]) for place in places if place is not None)
        if not len(places) == len(indices) == len(tensor.shape):
            return None
        if any(i >= n for i, n in zip(indices, tensor.shape, strict=True)):
            return None
        flat = 0
        for i, n in zip(indices, tensor.shape, strict=True):
            flat = flat * n + i
        variable = Variable(output, flat)
        self._known[name] = variable
        return variable

    def _version(self, statement: Group) -> None:
        text = statement.items[1].text if len(statement.items) == 2 and isinstance(statement.items[1], Atom) else ""
        match = re.fullmatch(r"<(\d+)\.(\d+)>", text)
        if match is None:
            raise self._fail("expected (vnnlib-version <2.0>)", statement.at)
        if match[1] != "2":
            raise self._fail(f"expected VNN-LIB 1.0 or 2.x, got {match[1]}.{match[2]}", statement.at)
        self.version = f"{match[1]}.{match[2]}"

    def _constant(self, statement: Group) -> None:
        words = [item.text if isinstance(item, Atom) else "" for item in statement.items[1:]]
        name = words[0] if words else ""
        match = _FLAT.fullmatch(name)
        if match is None or words[-1] != "Real" or len(words) > 3:
            raise self._fail("expected (declare-const X_0 Real) or (declare-const Y_0 Real)", statement.at)
        self.constant(match[1] == "Y", int(match[2]))

    def _network(self, statement: Group) -> None:
        if self._declared:
            raise self._fail(
                "expected one network, got a second; radii decides queries about one network", statement.at
            )
        if len(statement.items) < 2 or not isinstance(statement.items[1], Atom):
            raise self._fail("expected the network's name after declare-network", statement.at)
        if self.version.startswith("1"):
            self.version = "2.0"
        self.network = statement.items[1].text
        tensors: dict[str, list[Tensor]] = {"declare-input": [], "declare-output": []}
        for item in statement.items[2:]:
            head = item.head if isinstance(item, Group) else ""
            if head not in tensors:
                known = {"declare-hidden": "hidden nodes", "equal-to": "a second network", "isomorphic-to": "the same"}
                what = known.get(head, head or "a word")
                raise self._fail(f"expected declare-input and declare-output, got {what}, not supported", item.at)
            assert isinstance(item, Group)
            tensors[head].append(self._tensor(item))
        for head, found in tensors.items():
            if len(found) != 1:
                raise self._fail(
                    f"expected one {head}, got {len(found)}; radii decides networks with one", statement.at
                )
        self.input, self.output = tensors["declare-input"][0], tensors["declare-output"][0]
        if self.input.name == self.output.name:
            raise self._fail(f"expected two names, got {self.input.name!r} for input and output", statement.at)
        self._declared = True

    def _tensor(self, group: Group) -> Tensor:
        words = [item.text for item in group.items[1:] if isinstance(item, Atom)]
        if len(words) not in (3, 4) or len(words) != len(group.items) - 1 or words[2][0] != "[":
            raise self._fail(f"expected ({group.head} NAME TYPE [d1,d2,...])", group.at)
        name, dtype, dims = words[:3]
        if dtype.lower() not in _FLOATS:
            raise self._fail(f"expected an element type among {', '.join(sorted(_FLOATS))}, got {dtype!r}", group.at)
        return Tensor(name, self._shape(dims, group.items[3]), dtype)

    def _shape(self, text: str, place: Tree) -> Shape:
        parts = [part.strip() for part in text[1:-1].split(",")] if text[1:-1].strip() else []
        if not all(_INDEX.fullmatch(part) and int(part) > 0 for part in parts):
            raise self._fail(f"expected a shape such as [1,28,28], got {text}", place.at)
        shape = tuple(int(part) for part in parts)
        if prod(shape) > MOST_ELEMENTS:
            raise self._fail(f"expected a shape of at most {MOST_ELEMENTS} elements, got {text}", place.at)
        return shape
