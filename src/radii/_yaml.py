"""YAML that a user wrote: a mapping of plain values, of a size and a depth that people write, or one clear line."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, cast

import yaml

from radii._files import read_bytes
from radii.errors import FormatError

MOST_BYTES = 2**21  # of a file; a list of all positions of MNIST takes a fifth of it
MOST_REPEATED = 100_000  # nodes that aliases may add: ten lines of aliases of aliases would make 10^10
DEEPEST = 50  # mappings and lists within each other


def read_yaml(file: Path, kind: str) -> dict[Any, Any]:
    """The mapping in a YAML file; what is wrong with it is said in one line with the file's name and the place."""

    def fail(message: str, *place: int) -> FormatError:
        return FormatError(f"{file}: {message}", *place)

    try:
        text = read_bytes(file, kind, fail, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise fail(f"expected {kind} as YAML text, got bytes that are not text") from None
    try:
        body = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise fail(f"expected YAML, got {error.problem}", *((mark.line + 1, mark.column + 1) if mark else ())) from None
    except yaml.YAMLError as error:
        raise fail(f"expected YAML, got {' '.join(str(error).split())}") from None
    if not isinstance(body, dict):
        raise fail(f"expected {kind}, got {type(body).__name__}")
    return body


_INT, _WHOLE = "tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: 10:20 is a range and not minutes, and a key given twice is a slip.

    Aliases are counted for what they repeat: the values of ten lines can have more parts than memory has bytes.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 (as its base class has it)
        first: [(tag, _WHOLE if tag == _INT else pattern) for tag, pattern in pairs]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = 0
        self._repeated = 0
        self._sizes: dict[int, int] = {}  # nodes that each finished node holds, by its identity

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The next node, when it is not too deep and aliases have not repeated too much."""
        event: Any = cast(Any, self).peek_event()
        alias = isinstance(event, yaml.AliasEvent)
        self._depth += 1
        if self._depth > DEEPEST:
            raise _error(f"more than {DEEPEST} lists and mappings within each other", event)
        node: Any = super().compose_node(parent, index)
        self._depth -= 1
        if alias:
            if id(node) not in self._sizes:
                raise _error("an alias to what it is a part of", event)
            self._repeated += self._sizes[id(node)]
            if self._repeated > MOST_REPEATED:
                raise _error(f"aliases that repeat more than {MOST_REPEATED} values", event)
        else:
            self._sizes[id(node)] = 1 + sum(self._sizes[id(part)] for part in _parts(node))
        return node

    def construct_scalar(self, node: Any) -> Any:
        """The text of a scalar; one that no file and no database can hold is refused."""
        value = super().construct_scalar(node)
        if isinstance(value, str) and ("\0" in value or _SURROGATE.search(value)):
            raise _error("a text with a NUL or half a character", node)
        return value

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """The value of a node; a number or a date that Python cannot hold is refused."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError):
            raise _error("a number or a date that cannot be read", node) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """The mapping, each key once."""
        seen: set[Any] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            name = self.construct_object(key, deep=True)
            if not isinstance(name, Hashable):
                raise _error("a list or a mapping as a key", key)
            if name in seen:
                raise _error(f"the key {name!r} twice", key)
            seen.add(name)
        return super().construct_mapping(node, deep)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _error(problem: str, place: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, place.start_mark)
