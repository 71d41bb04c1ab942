"""The section of a Hugging Face model card: model-index metadata, robust accuracy with intervals, the guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from radii._check import epsilon
from radii.errors import InputError
from radii.report.content import Content, Series, gather
from radii.report.documents import escaped, markdown_table
from radii.report.page import banner
from radii.report.tables import Table, default_eps, percent, property_text, span
from radii.store import Selection, Store


def write_card(
    store: str | Path | Store,
    path: str | Path | None = None,
    *,
    where: Selection | None = None,
    eps: Any = None,
    confidence: float = 0.95,
) -> str:
    """The text of the card's section for the networks of a store, also written to `path` if one is given.

    `eps` is the perturbation size quoted; without one the median of the proven radii.
    """
    content = gather([store], where)
    if content.empty:
        raise InputError("card: expected a store with finished radii, got none; run the study first")
    text = card(content, default_eps(content) if eps is None else epsilon(eps), confidence)
    if path is not None:
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: expected a file that can be written, got {error.strerror or error}") from None
    return text


def card(content: Content, eps: float, confidence: float = 0.95) -> str:
    """The metadata and the section as one text."""
    metadata = {"tags": ["radii", "adversarial-robustness"], "model-index": model_index(content, eps, confidence)}
    front = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True, width=1000)
    warning = banner(content)
    lines = [f"> **{escaped(warning.headline)}**", *(f"> - {escaped(line)}" for line in warning.lines)]
    told = [f"- {escaped(one.name)}: {escaped(one.guarantee(confidence).sentence(eps))}" for one in content.series]
    parts = [
        f"---\n{front}---",
        "## Robustness",
        "\n".join(lines),
        markdown_table(_shares(content, eps)),
        "\n".join(told),
        (
            "Measured with [radii](https://radii.readthedocs.io). Robust accuracy is an interval: the truth lies "
            "between what is proven and what is not broken, whatever was left open."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def model_index(content: Content, eps: float, confidence: float) -> list[dict[str, Any]]:
    """The `model-index` of the Hugging Face metadata: one entry per network, one result per data set and question."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in content.series:
        found.setdefault(str(one.question["classifier"]), []).append(_result(one, eps, confidence))
    return [{"name": name, "results": results} for name, results in found.items()]


def _result(one: Series, eps: float, confidence: float) -> dict[str, Any]:
    low, high = one.dist.robust_accuracy(eps)
    limits = one.guarantee(confidence).at(eps)
    size = f"{one.question['norm']}, ε = {eps:g}"
    dataset = str(one.question["dataset"]) or "unknown"
    values = {
        "accuracy": ("Accuracy", float(one.dist.correct.mean())),
        "proven_robust_accuracy": (f"Proven robust accuracy ({size})", low),
        "unbroken_accuracy": (f"Accuracy not broken ({size})", high),
        "guaranteed_robust_accuracy": (
            f"Robust share of unseen inputs, at least ({size}, {confidence:g} confidence)",
            float(limits[0]),
        ),
    }
    # Networks may be asked several questions: the task keeps their results apart.
    task = {"type": "other", "name": f"Robustness: {property_text(one.question)}, {one.question['norm']}"}
    return {
        "task": task,
        "dataset": {"name": f"{dataset} {one.question['split']}".strip(), "type": dataset},
        "metrics": [
            {"type": kind, "name": name, "value": round(value, 6), "verified": False}
            for kind, (name, value) in values.items()
        ],
    }


def _shares(content: Content, eps: float) -> Table:
    rows = []
    for one in content.series:
        low, high = one.dist.robust_accuracy(eps)
        share = span(100 * low, 100 * high, "{:.1f}") + " %"
        where = f"{one.question['dataset']} {one.question['split']}"
        rows.append(
            (one.name, where, one.question["norm"], len(one.dist), percent(float(one.dist.correct.mean())), share)
        )
    headers = ("network", "data", "norm", "inputs", "accuracy", f"robust at ε = {eps:g}")
    return Table("Robust accuracy", headers, tuple(rows))
