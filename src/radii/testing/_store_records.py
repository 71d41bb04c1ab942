"""Units and finished records for the exam of stores, with every kind of value that a store must keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from radii.problem import Proof, Radius, Witness
from radii.problem.radius import Cost
from radii.store import (
    ClassifierRecord,
    Environment,
    Evidence,
    InstanceRecord,
    QueryRecord,
    RadiusRecord,
    Setting,
    Unit,
)


def unit(index: int, network: str = "net", **setting: Any) -> Unit:
    """A unit about input `index` of a toy data set."""
    return Unit(
        classifier=ClassifierRecord(fingerprint=f"print-of-{network}", name=network, path=f"{network}.onnx"),
        instance=InstanceRecord(
            dataset="toy", split="test", index=index, label=index % 10, fingerprint=f"content-{index}"
        ),
        setting=Setting(**{"identity": "native 1", "seed": 0, **setting}),
        budget={"seconds": 60},
    )


def record(work: Unit, lower: float | None = 0.1, upper: float | None = 0.2, **radius: Any) -> RadiusRecord:
    """A finished unit; with an upper end it has a witness, with a lower end evidence."""
    witness = None
    if upper is not None:
        x = np.linspace(0, upper, 12, dtype=np.float32).reshape(3, 4)
        witness = Witness(x=x, distance=upper, prediction=3, outputs=np.array([0.25, 1.5], dtype=np.float32))
    proof = None if lower is None else Proof("linear", "float32", "radii")
    values = {"tolerance": 0.5, "prediction": 1, "cost": Cost(queries=2, nodes=5, cpu_seconds=1.5), **radius}
    return RadiusRecord(
        unit=work,
        radius=Radius(lower=lower, upper=upper, witness=witness, proof=proof, **values),
        queries=(
            QueryRecord(epsilon=0.1, verdict="robust", decider="native", nodes=5, peak_memory=3 * 2**31),
            QueryRecord(epsilon=0.3, verdict="unknown", reason="time", detail="60 s", wall_seconds=60.0),
        ),
        evidence=None if lower is None else Evidence(kind="leaves", data=bytes(range(256)) * 4),
        environment=Environment(command="radii run study.yaml", seed=0, versions={"radii": "0.1.0"}),
    )
