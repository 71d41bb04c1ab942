"""The tables of a report, each as headers and rows of plain values; page, Markdown and LaTeX share them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._html import cell
from radii.errors import InputError
from radii.models.card import card_line
from radii.problem.property import printed
from radii.report.content import Content
from radii.report.distribution import Distribution
from radii.report.rounding import down, up
from radii.stats.fairness import disparity, gini, worst_class
from radii.stats.networks import pairwise_tests
from radii.store.facts import Facts

MOST_COMPARED = 15
_STOPS = ("timeouts", "memory_errors", "cancelled")


@dataclass(frozen=True)
class Table:
    """A table with its caption; `note` says what a reader must know of it, or why it is empty."""

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    @property
    def texts(self) -> list[list[str]]:
        """The rows as readers see them, the same on the page, in Markdown, in LaTeX and on the terminal."""
        return [[cell(value) for value in row] for row in self.rows]


def default_eps(content: Content) -> float:
    """An ε worth looking at: the median of all known lower ends, rounded to two digits."""
    ends = np.concatenate([one.dist.lower[one.dist.correct] for one in content.series] or [np.empty(0)])
    known = ends[np.isfinite(ends) & (ends > 0)]
    return float(f"{np.median(known):.2g}") if known.size else 0.01


def shares(content: Content, eps: float, confidence: float) -> Table:
    """Proven, open and broken shares at ε, and what that says of unseen inputs."""
    rows = []
    for one in content.series:
        low, high = one.dist.robust_accuracy(eps)
        limits = one.dist.guarantee(confidence).at(eps)
        accuracy = float(one.dist.correct.mean())
        middle = one.dist.quantile(0.5)
        median = span(_end(middle.lower, down), _end(middle.upper, up))
        unseen = f"{float(limits[0]):.1%} to {float(limits[1]):.1%}"
        cells = (one.name, len(one.dist), percent(accuracy), percent(low), percent(high - low), percent(1 - high))
        rows.append((*cells, unseen, median))
    headers = ("network", "inputs", "accuracy", "proven", "open", "broken", "unseen inputs", "median radius")
    note = (
        f"Shares of all inputs at ε = {eps:g}; a misclassified input counts as broken. “Unseen inputs” is what "
        f"holds with {confidence:g} confidence at every ε at once, if the inputs are independent draws."
    )
    return Table("Robust accuracy", headers, tuple(rows), note)


def quality(content: Content) -> Table:
    """The measures of the JAIR paper's Tables 2, 3, 5 and 8–10 for every network."""
    names = ("correct", "accuracy", "critical_share", "unsolved_share", "mean_gap", "lowest", "mean_lower")
    rows = []
    for one in content.series:
        found = one.dist.summary().as_dict()
        rows.append((one.name, *(found[name] for name in names)))
    headers = ("network", *(name.replace("_", " ") for name in names))
    note = "Lower ends of correctly classified inputs; a critical termination left a gap wider than the tolerance."
    return Table("Quality of the distributions", headers, tuple(rows), note)


def outcomes(content: Content) -> Table:
    """How many radii are closed, open or unsolved, and what stopped the search."""
    headers = ("network", "closed", "open", "robust", "unsolved", "misclassified", "time-outs", "memory", "cancelled")
    rows: list[tuple[Any, ...]] = []
    for one in content.series:
        found = one.dist.summary()
        stops = (int(one.rows[name].sum()) if name in one.rows else "–" for name in _STOPS)
        counts = (found.closed, found.open, found.robust, found.unsolved, found.misclassified)
        rows.append((one.name, *counts, *stops, _number(found.cpu_seconds)))
    reasons: dict[str, int] = {}
    for facts in content.facts:
        for reason, count in facts.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + count
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    stopped = sum(cell for row in rows for cell in row[6:9] if isinstance(cell, int))
    still = sum(row[2] + row[4] for row in rows)  # open and unsolved
    if told:
        note = f"Queries without an answer, by reason: {told}."
    elif stopped:
        note = "The counts say what stopped the searches; reasons of single queries are not recorded here."
    elif still or not content.facts:
        note = "Why single queries had no answer is not recorded here."
    else:
        note = "No query was left without an answer."
    return Table("Time-outs and their causes", (*headers, "CPU s"), tuple(rows), note)


def fairness(content: Content, eps: float, confidence: float) -> Table:
    """Worst class, disparity and Gini of every network with labels of at least two classes."""
    headers = ("network", "worst class", "its robust recall", "disparity", "for unseen inputs", "Gini of area")
    rows = []
    for one in content.series:
        if np.unique(one.dist.label[one.dist.label >= 0]).size < 2:
            continue
        worst = worst_class(one.dist, eps, confidence)
        gap, area = disparity(one.dist, eps, confidence), gini(one.dist, confidence=confidence)
        names = [class_name(content, key) for key in worst.candidates[0]]
        told = ", ".join(names[:4]) + ("" if len(names) <= 4 else f" and {len(names) - 4} more")
        recall = span(float(worst.proven[0]), float(worst.not_broken[0]), "{:.0%}")
        unseen = span(gap.low, gap.high, "{:.2f}")
        rows.append(
            (one.name, told, recall, span(gap.lower, gap.upper, "{:.2f}"), unseen, span(area.lower, area.upper))
        )
    note = (
        f"At ε = {eps:g}. Several worst classes mean that the gaps or ties leave it open. Unfairness is shown only "
        "where the disparity for unseen inputs stays above 0."
    )
    return Table("Classes", headers, tuple(rows), note if rows else "No network has labels of two classes or more.")


def comparisons(content: Content, permutations: int = 999) -> Table:
    """Every pair of networks on the inputs that all share, with Holm over the pairs."""
    headers = ("network", "against", "decision", "p", "p if gaps hide the worst", "p after Holm")
    empty = Table("Comparison of networks", headers, ())
    if not 2 <= len(content.series) <= MOST_COMPARED:
        count = len(content.series)
        return _noted(empty, f"Needs 2 to {MOST_COMPARED} networks, got {count}; pick some with --classifier.")
    try:
        found = pairwise_tests(content.distributions, permutations=permutations)
        kind = "paired by input"
    except InputError:
        found = pairwise_tests(content.distributions, "two-sample", permutations)
        kind = "as independent samples (the networks share no inputs)"
    rows = tuple(
        (
            one.a,
            one.b,
            one.test.decision(),
            f"{one.test.p_value:.3g}",
            span(one.test.p_low, one.test.p_high, "{:.3g}"),
            f"{one.holm_p_value:.3g}",
        )
        for one in found
    )
    note = f"{found[0].test.test}, {kind}, {permutations} permutations; decisions at 0.05 before Holm, gaps respected."
    return Table(empty.title, headers, rows, note)


def identity(content: Content) -> Table:
    """Which networks were measured, by content, and what was asked of them."""
    prints = {(facts.where, c.name): c for facts in content.facts for c in facts.classifiers}
    rows = []
    for one in content.series:
        record = prints.get((one.store, str(one.question["classifier"])))
        asked = f"{property_text(one.question)}, {one.question['norm']}"
        how = f"{one.question['search']}, {one.question['verifier']}, seed {one.question['seed']}"
        where = f"{one.question['dataset']} {one.question['split']}"
        mark, file = (record.fingerprint[:16], record.path or "–") if record else ("–", "–")
        rows.append((one.name, mark, file, where, asked, how))
    for reached in content.reaches:
        record = prints.get((reached.store, str(reached.question.get("classifier"))))
        if record is not None:
            asked = f"{reached.dist.title}: {property_text(reached.question)}"
            how = "{search}, {verifier}, seed {seed}".format(**reached.question)
            where = f"{reached.question['dataset']} {reached.question['split']}"
            rows.append((reached.name, record.fingerprint[:16], record.path or "–", where, asked, how))
    headers = ("network", "fingerprint", "file", "data", "property and norm", "search")
    note = "ε is in the units of the network's input domain. Fingerprints are of the network's content."
    return Table("Networks", headers, tuple(rows), note)


def property_text(question: Mapping[str, Any]) -> str:
    """The property of a question with its values, as commands take it."""
    return printed(str(question["property"]), json.loads(str(question["property_parameters"])))


def provenance(content: Content) -> Table:
    """Where, when and by what the results were made."""
    told: list[tuple[str, str]] = []
    for facts in content.facts:
        rows = [("store", facts.where)]
        rows += [("study", name) for name in facts.studies]
        if facts.finished:
            first, last = (time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(t)) for t in facts.finished)
            rows.append(("finished", first if first == last else f"{first} to {last}"))
        rows += [("training", line) for line in _trained(facts)]
        rows += [("decider", identity) for identity in facts.identities]
        rows += [("budget", _budget(text)) for text in facts.budgets]
        for one in facts.environments:
            rows.append(("hardware", f"{one.cpu or 'unknown CPU'}, {one.cores} cores, {one.platform}"))
            versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
            rows.append(("versions", f"Python {one.python}, {versions}"))
            rows.append(("command", one.command or "not recorded"))
        if not facts.environments:
            rows.append(("environment", "not recorded"))
        told += dict.fromkeys(rows)
    return Table("Provenance", ("what", "value"), tuple(told), content.origin)


def _trained(facts: Facts) -> list[str]:
    """One line for each network that carries a training card."""
    cards = [(one.name, one.metadata.get("training")) for one in facts.classifiers]
    return [f"{name}: {card_line(card)}" for name, card in cards if isinstance(card, Mapping)]


def evidence(content: Content) -> Table:
    """What the lower ends rest on, and what a checker can re-verify."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for facts in content.facts:
        for (kind, arithmetic, tool), count in sorted(facts.proofs.items()):
            meaning = {
                "real": "holds for the network over the reals",
                "float32": "holds for the deployed float32 network",
                "claim": "the tool's word only, not checked",
            }[arithmetic]
            counts[f"proof by {kind}", tool, meaning] += count
        for kind, count in sorted(facts.evidence.items()):
            counts[f"stored evidence: {kind}", "", "can be re-verified without searching: radii check"] += count
    rows = [(*key, count) for key, count in counts.items()]
    note = "No lower end rests on a recorded proof." if not rows else "Upper ends are witnesses, replayed when found."
    if content.reaches:
        note = (
            f"{'' if content.empty else note + ' '}Of a reach the other end than the proven one is a replayed witness."
        )
    what = "radii and reaches" if content.reaches else "radii"
    return Table("Evidence", ("kind", "tool", "meaning", what), tuple(rows), note)


def all_tables(content: Content, eps: float, confidence: float) -> list[Table]:
    """Every table, in the order of the report."""
    return [
        identity(content),
        shares(content, eps, confidence),
        quality(content),
        outcomes(content),
        fairness(content, eps, confidence),
        comparisons(content),
        evidence(content),
        provenance(content),
    ]


def class_name(content: Content, key: int) -> str:
    """The name of a class, or its number."""
    return content.class_names[key] if 0 <= key < len(content.class_names) else str(key)


def span(low: Any, high: Any, form: str = "{:.4g}") -> str:
    """An interval as text; an absent or infinite end is a dash."""
    ends = [form.format(v) if v is not None and np.isfinite(v) else "–" for v in (low, high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def percent(share: float) -> str:
    """A share with one digit after the point."""
    return f"{share + 0.0:.1%}"


def curve_reach(dists: Sequence[Distribution]) -> float:
    """The ε up to which curves say something."""
    ends = np.concatenate([np.concatenate([d.lower, d.upper]) for d in dists] or [np.empty(0)])
    known = ends[np.isfinite(ends) & (ends > 0)]
    return float(known.max()) * 1.05 if known.size else 1.0


def _noted(table: Table, note: str) -> Table:
    return Table(table.title, table.headers, table.rows, note)


def _end(value: float | None, side: Callable[[float, int], float]) -> float | None:
    return side(value, 4) if value is not None and np.isfinite(value) else value


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _brief(text: Any) -> str:
    """Stored parameters as words: what was not set is left out."""
    return ", ".join(f"{name} {value}" for name, value in json.loads(str(text)).items() if value is not None)


def _budget(text: str) -> str:
    """What an input (or a query) might cost, with units."""
    said = {name: value for name, value in json.loads(text).items() if value is not None}
    units = {"seconds": "{:g} CPU s", "memory": "{:.4g} bytes of memory", "nodes": "{} nodes"}
    parts = [units.get(name, name + " {}").format(value) for name, value in said.items()]
    return f"{', '.join(parts)} per input or query" if parts else "no limit"
