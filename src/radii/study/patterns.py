"""Files that match a pattern such as nets/**/*.onnx, found within a limit and with a word on the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from radii.errors import InputError

MOST_ENTRIES = 200_000  # files and folders that one pattern may look at
MAGIC = "*?["
_EVERY = 1_000  # entries between two words
Tell = Callable[[str], None]


def is_pattern(text: str) -> bool:
    """Whether a text names many files."""
    return any(sign in text for sign in MAGIC)


def matching(pattern: Path, tell: Tell | None = None, most: int = MOST_ENTRIES) -> list[Path]:
    """The files that a path with *, ? and [] in it matches, whole and sorted; ** stands for any number of folders.

    As in a shell, * leaves out what begins with a dot. A folder is entered once, whatever links lead to it, so that
    links to a folder above do not make it endless.
    """
    whole = pattern.absolute()
    look = _Look(whole, tell, most)
    return sorted({Path(found).resolve() for found in look.below(whole.anchor, whole.parts[1:])})


class _Look:
    """One search; counts what it has looked at."""

    def __init__(self, pattern: Path, tell: Tell | None, most: int) -> None:
        self.pattern, self.tell, self.most, self.count = pattern, tell, most, 0

    def below(self, folder: str, parts: tuple[str, ...]) -> Iterator[str]:
        """The paths below a folder that match the parts of a pattern."""
        if not parts:
            yield folder
        elif parts[0] == "**":
            for one in self._folders(folder):
                yield from self.below(one, parts[1:] or ("*",))
        elif is_pattern(parts[0]):
            for entry in self._entries(folder):
                if fnmatchcase(entry.name, parts[0]) and (parts[0][0] == "." or entry.name[0] != "."):
                    yield from self.below(entry.path, parts[1:])
        elif os.path.lexists(path := os.path.join(folder, parts[0])):
            yield from self.below(path, parts[1:])

    def _folders(self, top: str) -> Iterator[str]:
        """The folder and all below it, each once."""
        seen: set[tuple[int, int]] = set()
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                found = os.stat(folder)
            except OSError:
                continue
            if (found.st_dev, found.st_ino) in seen:
                continue
            seen.add((found.st_dev, found.st_ino))
            yield folder
            waiting += [entry.path for entry in self._entries(folder) if _is_folder(entry) and entry.name[0] != "."]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        found = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._looked()
                    found.append(entry)
        except OSError:  # no folder, or one that this user may not read
            return []
        return found

    def _looked(self) -> None:
        self.count += 1
        if self.count > self.most:
            raise InputError(
                f"classifiers: expected a pattern that looks at no more than {self.most} files and folders, got "
                f"{str(self.pattern)!r}; name the folder"
            )
        if self.tell is not None and self.count % _EVERY == 0:
            self.tell(f"{self.pattern}: {self.count} files and folders looked at")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads back to itself
        return False
