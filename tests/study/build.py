"""Small studies on disk, deciders that misbehave, and the table that a store ends up with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from radii import zoo
from radii.decide import Budget
from radii.models import Classifier
from radii.problem import Answer, Instance, Norm, Property, Query, Radius, Reason
from radii.store import open_store, radii_frame
from radii.testing.toys import relu_toy

SAME = ["classifier", "index", "label", "prediction", "status", "nodes"]


def toy_study(folder: Path, inputs: int = 6, nets: int = 2, **changes: Any) -> Path:
    """A study of random ReLU networks on random inputs that takes milliseconds per unit."""
    (folder / "nets").mkdir(parents=True)
    for seed in range(nets):
        relu_toy(seed).save(folder / "nets" / f"toy{seed}.onnx")
    rng = np.random.default_rng(0)
    x = rng.uniform(0.2, 0.8, size=(inputs, 4)).astype(np.float32)
    np.savez(folder / "points.npz", x=x, y=relu_toy(0).predict(x))
    body = {
        "name": "toys",
        "classifiers": ["nets/*.onnx"],
        "data": {"source": "points.npz", "only": "correct"},
        "search": {"method": "direct", "tolerance": 0.01},
        "budget": {"nodes": 50},
    }
    return written(folder, {**body, **changes})


def digits_study(folder: Path, inputs: int, nodes: int) -> Path:
    """A study of the three demo networks on MNIST digits."""
    (folder / "nets").mkdir(parents=True)
    for name in zoo.cards():
        (folder / "nets" / f"{name}.onnx").write_bytes(zoo.path(name).read_bytes())
    body = {
        "name": "digits",
        "classifiers": ["nets/*.onnx"],
        "data": {"source": "mnist5k", "split": "test", "indices": f"0:{inputs}", "only": "correct"},
        "budget": {"nodes": nodes},
    }
    return written(folder, body)


def written(folder: Path, body: dict[str, Any]) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


def table(store: str | Path) -> pd.DataFrame:
    """What must be the same however a study was run: everything but times and memory."""
    with open_store(str(store), create=False) as opened:
        return radii_frame(opened).sort_values(["classifier", "index", "key"]).reset_index(drop=True)


def assert_same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found[[*SAME, "key"]], expected[[*SAME, "key"]])
    for end in ("lower", "upper"):
        np.testing.assert_allclose(found[end], expected[end], rtol=0, atol=1e-6)
    assert not found["key"].duplicated().any()


def start(study: Path, store: str | Path, *words: object) -> subprocess.Popen[str]:
    """A running `radii run --json` in a process group of its own."""
    line = [sys.executable, "-m", "radii.cli.main", "run", str(study), "--store", str(store), "--json"]
    return subprocess.Popen(
        [*line, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def events(text: str, kind: str = "finished") -> list[dict[str, Any]]:
    """The events of one kind; the last line may be torn by a kill."""
    lines = [line for line in text.splitlines() if line.endswith("}")]
    return [one for one in map(json.loads, lines) if one["event"] == kind]


def killed(process: subprocess.Popen[str], when: Callable[[], bool]) -> list[dict[str, Any]]:
    """Read events until `when` holds, then kill with SIGKILL; what it had said was finished until then."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if when():
            break
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()
    return events("".join(lines) + rest)


@dataclass(frozen=True)
class Misbehaving:
    """Measures nothing; does something terrible to the inputs with these positions."""

    how: str
    where: tuple[int, ...] = (1,)

    identity = "misbehaving 1"
    proves = True
    refutes = True

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        return [Answer.unknown(Reason.INCOMPLETE) for _ in queries]

    def measure(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        budget: Budget,
        **options: Any,
    ) -> list[Radius]:
        if any(instance.index in self.where for instance in instances):
            if self.how == "memory":
                hoard = []
                while True:
                    hoard.append(np.ones(2**22))  # 32 MiB each, touched
            elif self.how == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            else:
                raise ValueError("as the test wants it")
        return [Radius(tolerance=options["tolerance"]) for _ in instances]
