"""The pages say what is there: parts and levels, file names, links, benchmarks, extras; words of the field are found."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from tests.test_layers import LEVELS, ROOT, parts

HOME = Path(__file__).parents[1]
PAGES = [
    *sorted((HOME / "docs").rglob("*.md")),
    HOME / "README.md",
    HOME / "CONTRIBUTING.md",
    HOME / "benchmarks/README.md",
]


def test_the_table_of_parts_is_the_tree() -> None:
    text = (HOME / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = {
        name: int(level)
        for level, cell in re.findall(r"^\| (\d) \| ([^|]+) \|", text, flags=re.M)
        for name in re.findall(r"`(\w+)`", cell)
    }
    assert told == {name: LEVELS[name] for name in parts()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_files_and_links_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    files = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|sh|json|cff))`", text))
    homes = (HOME, HOME / "src" / "radii", HOME / "src", HOME / "docs", page.parent)
    assert {name for name in files if not any((home / name).exists() for home in homes)} == set()
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_benchmark_is_listed() -> None:
    text = (HOME / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert {file.name for file in (HOME / "benchmarks").glob("*.py")} == set(re.findall(r"`(\w+\.py)`", text))


def test_every_extra_is_in_the_readme_and_what_it_asks_for_is_used() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (HOME / "README.md").read_text(encoding="utf-8")
    extras = project["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in text] == []


# A word of the field -> where a reader looks first. `checkpoint` comes with training.
WORDS = (
    "pgd", "fgsm", "deepfool", "alpha", "beta", "intermediate bounds", "branching", "input split", "dkw", "ks",
    "turnbull", "lowering", "vnnlib", "witness", "evidence", "ladder", "cut", "claim", "gate",
)  # fmt: skip


def found(word: str) -> list[str]:
    """Files named after the word, and those whose docstrings have it in a first line (as a word, or with an s)."""
    name = word.replace(" ", "_")
    greek = {"alpha": "α", "beta": "β"}.get(word, word)
    pattern = re.compile(rf"(?<![\w])({re.escape(word)}|{greek})(s|ting)?(?![\w])", re.I)
    places = []
    for path in sorted(ROOT.rglob("*.py")):
        where = str(path.relative_to(ROOT))
        if name in re.split(r"[/.]", where) or f"{name}s" in re.split(r"[/.]", where):
            places.append(where)
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = (ast.get_docstring(node) or "").split("\n")[0]
                if pattern.search(first):
                    places.append(f"{where}: {getattr(node, 'name', '')}")
    return places


@pytest.mark.parametrize("word", WORDS)
def test_words_of_the_field_are_found_at_the_first_guess(word: str) -> None:
    assert found(word), f"no file is named after {word!r}, and no docstring begins with it"
