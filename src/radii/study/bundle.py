"""Bundle: stored radii as VNN-LIB queries with their networks, for other verifiers to check or to race against."""

from __future__ import annotations

import csv
from pathlib import Path

from radii.errors import InputError
from radii.formats import query_text
from radii.models.classifier import Classifier
from radii.problem import Norm, Query
from radii.store import RadiusRecord, Selection, Store
from radii.study.recall import Recall, property_of


def write_bundle(store: Store, where: Selection, folder: Path, timeout: float = 60.0) -> int:
    """How many queries were written: one at each proven end (unsat) and one at each broken end (sat).

    The folder gets onnx/, vnnlib/, instances.csv (network, query, seconds: as VNN-COMP has it) and expected.csv.
    """
    recall = Recall(store.studies())
    rows: list[tuple[str, str, str]] = []
    for name in ("onnx", "vnnlib"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    written: set[str] = set()
    for record in store.records(where):
        classifier = recall.classifier(record.unit.classifier)
        if not classifier.preprocessing.identity:
            raise InputError(
                f"{classifier.name}: expected a network without preprocessing, got {classifier.preprocessing}; "
                "VNN-LIB speaks of the network's own inputs: put the preprocessing into the ONNX file"
            )
        network = f"onnx/{classifier.name}.onnx"
        if network not in written:
            classifier.save(folder / network)
            written.add(network)
        rows += [(network, *one) for one in _queries(record, classifier, recall, folder)]
    _table(folder / "instances.csv", [(f"./{network}", f"./{query}", f"{timeout:g}") for network, query, _ in rows])
    _table(folder / "expected.csv", rows)
    return len(rows)


def _queries(record: RadiusRecord, classifier: Classifier, recall: Recall, folder: Path) -> list[tuple[str, str]]:
    radius, unit = record.radius, record.unit
    if radius.misclassified:
        return []
    instance = recall.instance(unit.instance)
    written = []
    for end, expected in ((radius.lower, "unsat"), (radius.upper, "sat")):
        if end is None or (end == 0.0 and expected == "unsat"):
            continue
        query = Query(instance, end, property_of(unit.setting), Norm.of(unit.setting.norm))
        reference = classifier.reference(instance.x[None])[0]
        text = query_text(query, classifier.classes, domain=classifier.domain, reference=reference)
        name = f"vnnlib/{classifier.name}_{unit.instance.index}_{unit.key[:8]}_{expected}.vnnlib"
        (folder / name).write_text(text, encoding="utf-8")
        written.append((name, expected))
    return written


def _table(path: Path, rows: list[tuple[str, str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
