"""Statements of an S-expression file, read from a stream a piece at a time, with line and column for every token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from radii.errors import FormatError

_BLANK = re.compile(r"(?:\s+|;[^\n]*(?:\n|\Z))*")
_TOKEN = re.compile(r'\s*([()]|[^\s()\[\];"]+|;[^\n]*|"[^"\n]*"|\[[^\]()]*\])')
_PIECE = 1 << 20
_DEEPEST = 200  # nesting; deeper is not a specification but an accident


@dataclass(frozen=True, slots=True)
class Atom:
    """A word, number, index list or quoted string, and its offset in the file."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Group:
    """What stands between two parentheses, and the offset of the opening one."""

    items: tuple[Atom | Group, ...]
    at: int

    @property
    def head(self) -> str:
        """The first word; empty when there is none."""
        return self.items[0].text if self.items and isinstance(self.items[0], Atom) else ""


Tree = Atom | Group


class Source:
    """A text stream seen through a window that slides forward; it knows the line of every offset in the window."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._ended = False
        self.text = ""
        self.pos = 0
        self._offset = 0  # of the window's first character in the file
        self._lines = 1  # the line of that character
        self._column = 1

    @property
    def here(self) -> int:
        """The offset of the current position in the file."""
        return self._offset + self.pos

    def error(self, message: str, at: int | None = None) -> FormatError:
        """The error to raise for an offset (default: the current position) in the window."""
        within = max(0, (self.here if at is None else at) - self._offset)
        line = self._lines + self.text.count("\n", 0, within)
        start = self.text.rfind("\n", 0, within)
        column = within - start if start >= 0 else self._column + within
        return FormatError(f"{self._name}: {message}", line, column)

    def grow(self) -> bool:
        """Drop what has been read and take more of the stream; False at its end."""
        if self._ended:
            return False
        dropped = self.text[: self.pos]
        kept = self.text[self.pos :]
        breaks = dropped.count("\n")
        self._lines += breaks
        self._column = len(dropped) - dropped.rfind("\n") if breaks else self._column + len(dropped)
        self._offset += len(dropped)
        # At least as much again as what is kept, so that one long statement costs linear time.
        piece = self._stream.read(max(_PIECE, len(kept)))
        self._ended = not piece
        self.text, self.pos = kept + piece, 0
        return bool(piece)

    def skip(self) -> bool:
        """Move to the next statement; False when there is none."""
        while True:
            match = _BLANK.match(self.text, self.pos)
            end = match.end() if match else self.pos
            if end < len(self.text):
                self.pos = end
                return True
            # A comment may go on in the next piece: keep it unread until its end is seen.
            if not self.grow():
                self.pos = len(self.text)
                return False

    def statement(self) -> Group:
        """The parenthesised statement at the current position, which moves behind it."""
        while True:
            found = _parse(self)
            if found is not None:
                tree, self.pos = found
                return tree
            if not self.grow():
                raise self.error("a parenthesis is opened here and never closed")


def statements(source: Source) -> Iterator[Group]:
    """Every statement of the source, in order."""
    while source.skip():
        yield source.statement()


def _parse(source: Source) -> tuple[Group, int] | None:
    """The statement at the current position and where it ends; None when the window ends before it does."""
    text, base = source.text, source.here - source.pos
    if text[source.pos] != "(":
        raise source.error(f"expected '(', got {text[source.pos : source.pos + 20].split()[0]!r}")
    stack: list[tuple[list[Tree], int]] = []
    position = source.pos
    while (match := _TOKEN.match(text, position)) is not None:
        token, start, position = match[1], match.start(1), match.end()
        first = token[0]
        if first == "(":
            stack.append(([], base + start))
            if len(stack) > _DEEPEST:
                raise source.error(f"expected at most {_DEEPEST} nested parentheses, got more", base + start)
        elif first == ")":
            items, at = stack.pop()
            group = Group(tuple(items), at)
            if not stack:
                return group, position
            stack[-1][0].append(group)
        elif first != ";":
            stack[-1][0].append(Atom(token, base + start))
    rest = text[position:].lstrip()
    # A quote or bracket that the window cuts may still be closed in the next piece.
    if rest and rest[0] not in '"[':
        raise source.error(f"unexpected character {rest[0]!r}", base + len(text) - len(rest))
    return None
