"""What a page presumes, and the few printed lines that no test can run: each with what runs it instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# A command line as printed -> why this test does not run it. A line that is no longer printed fails the test.
ELSEWHERE = {
    "make demo": "sets up a virtual environment: tests/first_hour.py does what it does, in a clean one",
    "make test": "is what runs this test",
    "pip install .": "tests/first_hour.py installs radii in a clean virtual environment",
    "radii demo": "tests/first_hour.py runs it in an empty folder",
    "radii demo --output radii-demo": "tests/first_hour.py runs it in an empty folder",
    "radii datasets fetch mnist --root data": "downloads: tests/data/test_fetch.py does so from a local server",
    "radii datasets fetch mnist --root data/mnist": "downloads: tests/data/test_fetch.py does so from a local server",
    "python benchmarks/fuzz.py --radii 20000 --specs 5000": "takes hours; its tests run a few cases",
    "python studies/001/record.py check": "needs the published tables: tests/studies/test_record.py runs it",
    "python benchmarks/fuzz.py --show radius:17": "needs the run above",
    "python benchmarks/bench_stats_levels.py --what levels --sizes 20,100 --runs 2000": "takes an hour",
    "python benchmarks/bench_stats_levels.py --what coverage --sizes 20,100 --runs 2000": "takes an hour",
}
# Pages whose every block another test runs.
PAGES = {"docs/extending.md": "tests/test_extending.py runs it block by block"}
# Blocks that belong to other programs, by page and first line.
FOREIGN = {
    ("docs/cluster.md", "ray start --head --port=6379"): "two machines: tests/runners/test_ray.py starts such clusters",
    ("docs/cluster.md", "#!/bin/bash"): "a SLURM job: its steps are those of tests/runners/test_ray.py",
    (
        "docs/model-card.md",
        "with mlflow.start_run(run_name=dist.name):",
    ): "tests/report/test_report_trackers.py runs it",
    ("docs/model-card.md", 'run = wandb.init(project="robustness", name=dist.name)'): "needs an account",
}
# Exit codes other than 0 that a printed line may have: 1 is a gate that was asked for and failed.
CODES = {"radii gate": (0, 1)}
# Lines that serve until they are stopped.
SERVES = ("radii serve",)


def names(page: str) -> dict[str, Any]:
    """The names that the Python of a page uses without making them."""
    makers: dict[str, Callable[[], dict[str, Any]]] = {
        "docs/attacks.md": _attacks,
        "docs/classifier.md": _classifier,
        "docs/data.md": _data,
        "docs/nouns/classifier.md": lambda: {"x": _digits()[0].x},
        "docs/nouns/distribution.md": _distributions,
        "docs/nouns/guarantee.md": _distributions,
        "docs/specifications.md": _specifications,
        "docs/testing.md": lambda: {"MyDecider": _verifier()},
        "docs/verifiers.md": lambda: {"MyVerifier": _verifier()},
        "docs/vnnlib.md": _vnnlib,
    }
    made = makers[page]() if page in makers else {}
    if page.startswith(("docs/nouns/", "docs/how-to/")):
        import radii

        made["radii"] = radii
    return made


def _digits() -> Any:
    import radii

    return radii.load_dataset("mnist5k", split="test")


def _net() -> Any:
    import radii

    return radii.load_classifier("mnist.onnx")


def _attacks() -> dict[str, Any]:
    import numpy as np

    from radii.problem import Query

    part = _digits()[4:8]
    queries = [Query(instance, 0.05) for instance in part]
    rng = np.random.default_rng(0)
    near = np.clip(part.x + rng.uniform(-0.3, 0.3, part.x.shape), 0, 1).astype(np.float32)
    given = {"net": _net(), "x": part.x, "labels": part.y, "queries": queries, "centers": part.x, "candidates": near}
    return {**given, "best_so_far": np.full(len(part), 0.3)}


def _classifier() -> dict[str, Any]:
    import torch

    import radii

    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))
    return {"module": module, "onnx_bytes": _net().onnx_bytes, "radii": radii}


def _data() -> dict[str, Any]:
    import torch

    tensors = torch.utils.data.TensorDataset(torch.rand(200, 1, 28, 28), torch.arange(200) % 10)
    return {"torch_dataset": tensors, "net": _net()}


def _distributions() -> dict[str, Any]:
    import radii

    net, data = _net(), _digits()
    given = {"net": net, "data": data[:40]}
    return {**given, "other": radii.distribution(net, data[:40], norm="l2"), "dist": radii.distribution(net, data[:40])}


def _specifications() -> dict[str, Any]:
    import numpy as np

    return {"low": np.full(5, -0.1), "high": np.full(5, 0.1)}


def _verifier() -> Any:
    from radii.verifiers.milp import Milp

    return Milp


def _vnnlib() -> dict[str, Any]:
    from radii.problem import Query

    return {"net": _net(), "query": Query(_digits()[0], 0.05)}


# Commands that a page itself shows how to add.
OWN = {("docs/extending.md", "radii shape")}
