"""Imports point downwards only: every import inside the package, lazy ones and those for typing included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "radii"

LEVELS: dict[str, int] = {
    "errors": 0,
    "_check": 0,
    "_files": 0,
    "_memory": 0,
    "_parts": 0,
    "_yaml": 0,
    "_html": 0,
    "_torch": 0,
    "_cpu": 0,
    "problem": 0,
    "runners": 1,
    "stats": 1,
    "decide": 1,
    "logit_query": 1,
    "models": 1,
    "data": 1,
    "formats": 1,
    "store": 1,
    "zoo": 1,
    "evidence": 2,
    "attacks": 2,
    "bounds": 2,
    "engine": 3,
    "verifiers": 4,
    "search": 4,
    "train": 5,
    "ensembles": 5,
    "study": 6,
    "report": 6,
    "api": 7,
    "__init__": 8,
    "cli": 9,
    "__main__": 10,
    "testing": 9,
}
# Arrows between neighbours of one level; everything else on a level stands apart.
SIDEWAYS = {
    ("_check", "errors"),
    ("_memory", "errors"),
    ("_cpu", "errors"),
    ("_files", "errors"),
    ("_files", "_memory"),
    ("_parts", "errors"),
    ("_parts", "_check"),
    ("_yaml", "errors"),
    ("_yaml", "_files"),
    ("problem", "errors"),
    ("problem", "_check"),
    ("problem", "_html"),
    ("decide", "models"),
    ("logit_query", "decide"),
    ("logit_query", "models"),
    ("data", "models"),
    ("models", "zoo"),
}
VERSION_ONLY = {"__version__"}


def parts() -> dict[str, list[Path]]:
    """The files of each top-level part of the package."""
    found: dict[str, list[Path]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        found.setdefault(relative.parts[0].removesuffix(".py"), []).append(path)
    return found


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the part of every import of the package's own modules in a file."""
    package = ("radii", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(piece for piece in (base, node.module or "") if piece)
            names = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            pieces = name.split(".")
            if pieces[0] == "radii" and pieces[-1] not in VERSION_ONLY:
                yield node.lineno, part_of(pieces)


def part_of(pieces: list[str]) -> str:
    """The part a dotted name lies in; a name that the package itself offers belongs to `__init__`."""
    known = len(pieces) > 1 and ((ROOT / pieces[1]).is_dir() or (ROOT / f"{pieces[1]}.py").is_file())
    return pieces[1] if known else "__init__"


EDGES = [
    (part, target, path.relative_to(ROOT), line)
    for part, files in parts().items()
    for path in files
    for line, target in imported(path)
    if target != part
]


def test_every_part_has_a_level() -> None:
    unknown = set(parts()) - set(LEVELS)
    assert not unknown, f"give these parts a level in the design and here: {sorted(unknown)}"


def test_imports_point_downwards() -> None:
    wrong = sorted(
        f"{path}:{line}: {part} (level {LEVELS[part]}) imports {target} (level {LEVELS[target]})"
        for part, target, path, line in EDGES
        if LEVELS[target] >= LEVELS[part] and (part, target) not in SIDEWAYS
    )
    assert not wrong, "\n".join(wrong)


def test_no_two_parts_import_each_other() -> None:
    arrows = {(part, target) for part, target, _, _ in EDGES}
    assert not sorted((a, b) for a, b in arrows if a < b and (b, a) in arrows)


def test_training_knows_nothing_of_the_engine() -> None:
    """What a network is trained with must not be what it is judged by."""
    assert {target for part, target, _, _ in EDGES if part == "train"}.isdisjoint({"engine", "verifiers", "search"})


def test_the_walk_sees_imports() -> None:
    """The test above would pass on an empty list: these arrows are known to exist."""
    arrows = {(part, target) for part, target, _, _ in EDGES}
    assert {("problem", "errors"), ("decide", "problem"), ("decide", "models")} <= arrows


@pytest.mark.parametrize(
    ("part", "banned"),
    [
        ("problem", {"torch", "onnx", "onnxruntime", "pandas", "sqlalchemy"}),
        ("stats", {"torch", "onnx", "onnxruntime", "sqlalchemy", "matplotlib"}),
        ("runners", {"torch", "onnx", "onnxruntime", "numpy", "pandas"}),
        ("store", {"torch", "onnx", "onnxruntime", "matplotlib"}),
    ],
)
def test_light_parts_stay_light(part: str, banned: set[str]) -> None:
    """Roots must not load the heavy packages when they are imported."""
    wrong = []
    for path in parts().get(part, []):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            wrong += [f"{path.relative_to(ROOT)}: {name}" for name in names if name.split(".")[0] in banned]
    assert not wrong


# Classes that derive from torch's, and what builds them: imported when they are used.
AT_ONCE = {
    "testing/_nearest.py",
    "attacks/leaky_gate.py",
    "models/blocks.py",
    "models/from_torch.py",
    "models/module.py",
    "models/zoo.py",
    "train/from_torch.py",
}


def test_torch_and_scipy_are_loaded_when_they_are_used() -> None:
    """An import of torch costs seconds before anything was asked; `import scipy` loads its parts on first use."""
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}."] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "torch" or name.startswith("scipy.") for name in names):
                wrong.append(str(path.relative_to(ROOT)))
    hint = "use `from radii._torch import Tensor, torch`, and `import scipy` with scipy.stats and the like"
    assert set(wrong) - AT_ONCE == set(), hint


def test_no_file_outgrows_a_reader() -> None:
    sizes = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    assert {str(path): lines for path, lines in sizes.items() if lines > 350} == {}


def test_sql_stays_in_the_store() -> None:
    """Whoever needs something of a store asks a method of it; schemas and dialects are known in one place."""
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] == "store":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
            bad = ("sqlalchemy", "sqlite3", "psycopg", "radii.store.schema")
            wrong += [f"{path.relative_to(ROOT)}: {name}" for name in names if name.startswith(bad)]
    assert not wrong


def test_caches_stay_in_their_owner() -> None:
    """Nobody writes into another object's `__dict__`: a classifier keeps what is made from it (`Classifier.once`)."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "__dict__"
    ]
    assert [place for place in wrong if not place.startswith("models/classifier.py")] == []


# What proofs and arithmetic rest on, not what steers a search.
OF_PROOFS = {
    "SLACK", "RESOLUTION", "LEAST_FACTOR", "FLUSH", "FLUSHED", "NORMAL", "LARGEST", "FLUSHES", "TANH", "U32", "U64",
    "UP", "TINY", "UNITS",
}  # fmt: skip
OF_ARITHMETIC = {"_STEPS", "AT_ONCE"}  # steps to a root in float64; nodes in memory where there is no kernel
OF_LIMITS = {"MOST_CELLS"}  # what is refused


def test_numbers_that_steer_the_engine_stand_in_the_tuning() -> None:
    found = set()
    for part in ("engine", "bounds"):
        for path in sorted((ROOT / part).glob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and any(_is_number(one) for one in ast.walk(node.value)):
                    found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    hint = "expected every number that steers the engine as a field of Tuning (engine/tuning.py, bounds/tuning.py)"
    assert found == OF_PROOFS | OF_ARITHMETIC | OF_LIMITS, hint


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
