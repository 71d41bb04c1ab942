"""The pages say what is there: parts, files, links, benchmarks, extras; and words of the field are found."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from tests.test_layers import LEVELS, ROOT, parts

HOME = Path(__file__).parents[1]
OTHERS = ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "studies/README.md")
PAGES = [*sorted((HOME / "docs").rglob("*.md")), *(HOME / name for name in OTHERS)]


def test_the_table_of_parts_is_the_tree() -> None:
    text = (HOME / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = {
        name: int(level)
        for level, cell in re.findall(r"^\| (\d+) \| ([^|]+) \|", text, flags=re.M)
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


def test_tests_that_the_page_on_trust_names_exist() -> None:
    text = (HOME / "docs" / "trust.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)`((?: `test_\w+`)+)", text)
    assert len(named) > 20
    for file, names in named:
        code = (HOME / file).read_text(encoding="utf-8")
        assert {name for name in re.findall(r"test_\w+", names) if f"def {name}(" not in code} == set(), file


def test_every_benchmark_is_listed() -> None:
    text = (HOME / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert {file.name for file in (HOME / "benchmarks").glob("*.py")} == set(re.findall(r"`(\w+\.py)`", text))


def test_every_extra_is_in_the_readme() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (HOME / "README.md").read_text(encoding="utf-8")
    extras = project["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in text] == []


# A word of the field -> where a reader looks first.
WORDS = (
    "pgd", "fgsm", "deepfool", "alpha", "beta", "intermediate bounds", "branching", "input split", "dkw", "ks",
    "turnbull", "lowering", "vnnlib", "witness", "evidence", "ladder", "cut", "claim", "gate",
    "checkpoint",
)  # fmt: skip


def first_lines() -> dict[str, list[str]]:
    """The first line of every docstring, by file."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    lines = {}
    for path in sorted(ROOT.rglob("*.py")):
        nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
        lines[str(path.relative_to(ROOT))] = [(ast.get_docstring(node) or "").split("\n")[0] for node in nodes]
    return lines


def test_words_of_the_field_are_found_at_the_first_guess() -> None:
    """Each is the name of a file or folder, or stands in the first line of a docstring (perhaps as a plural)."""
    absent = []
    lines = first_lines()
    for word in WORDS:
        name, sign = word.replace(" ", "_"), {"alpha": "α", "beta": "β"}.get(word, word)
        pattern = re.compile(rf"(?<!\w)({word}|{sign})s?(?!\w)", re.I)
        named = any({name, f"{name}s"} & set(re.split(r"[/.]", where)) for where in lines)
        if not named and not any(pattern.search(line) for some in lines.values() for line in some):
            absent.append(word)
    assert not absent
