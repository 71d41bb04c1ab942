"""Call: one ONNX node as its handler sees it: attributes and inputs, of which some are constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.models.importer.builder import Builder, Refused, Value

Input = Value | NDArray[Any] | None
Result = Value | tuple[Value, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """An ONNX node at its opset."""

    operator: str
    attributes: dict[str, Any]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    opset: int

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute or its default."""
        return self.attributes.get(name, default)

    def ints(self, name: str) -> Shape | None:
        """A list attribute, None when absent."""
        value = self.attributes.get(name)
        return None if value is None else tuple(int(v) for v in value)

    def input(self, index: int) -> Input:
        """An input, None when it was left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value(self, index: int = 0) -> Value:
        """An input that depends on the network's input."""
        found = self.input(index)
        if isinstance(found, Value):
            return found
        raise Refused(f"expected input {index} to be computed from the network's input, got a constant")

    def constant(self, index: int) -> NDArray[Any] | None:
        """A constant input, None when it was left out."""
        found = self.input(index)
        if isinstance(found, Value):
            raise Refused(f"expected input {index} to be a constant, got a value that depends on the network's input")
        return found

    def required(self, index: int) -> NDArray[Any]:
        """A constant input that must be there."""
        found = self.constant(index)
        if found is None:
            raise Refused(f"expected a constant as input {index}, got none")
        return found

    def listed(self, attribute: str, index: int) -> Shape | None:
        """Whole numbers from an attribute (older opsets) or a constant input (newer ones), None when absent."""
        found = self.ints(attribute)
        if found is not None:
            return found
        array = self.constant(index)
        return None if array is None else tuple(int(v) for v in np.asarray(array).ravel())

    def only_first(self) -> None:
        """Refuses nodes of which a second output is used."""
        if any(self.outputs[1:]):
            raise Refused("expected only the first output to be used")


Handler = Callable[[Builder, Call], Result]
