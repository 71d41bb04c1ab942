"""The report as one HTML file that needs no network: figures are drawn by its own small script."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import __version__, _check
from radii.errors import InputError
from radii.report import tables
from radii.report.content import Content
from radii.report.payload import as_script, download, gathered_pictures, payload
from radii.report.png import Originals
from radii.report.reach_section import reach_sections
from radii.report.stats_tables import view

if TYPE_CHECKING:
    from jinja2 import Template

    from radii.data import Dataset


@dataclass(frozen=True)
class Choice:
    """A store, or a study in it, that a reader of the live page may look at."""

    value: str
    text: str
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a reader may choose of a report; `eps` is taken from the data unless given, `data` adds the originals.

    `views` adds tables of `radii stats`, by the names in `stats_tables.VIEWS`.
    """

    eps: float | None = None
    confidence: float = 0.95
    data: tuple[Dataset, ...] = ()
    views: tuple[str, ...] = ()
    live: bool = False
    state: str = ""
    choices: tuple[Choice, ...] = ()


def html(content: Content, options: Options | None = None) -> str:
    """The page of a content."""
    chosen = options or Options()
    eps = tables.default_eps(content) if chosen.eps is None else _check.epsilon(chosen.eps)
    pictures = gathered_pictures(content, Originals(chosen.data))
    found = payload(content, eps, chosen.confidence, pictures)
    compared = tables.comparisons(content)
    more = [one for name in chosen.views for one in view(name, content, eps, chosen.confidence)]
    reaches = reach_sections(content, chosen.confidence, Originals(chosen.data))
    found["compare"] = [list(row) for row in compared.rows]
    found |= {"live": chosen.live, "state": chosen.state}
    text: str = _template().render(
        content=content,
        eps=eps,
        confidence=chosen.confidence,
        banner=banner(content),
        first=[tables.identity(content), tables.provenance(content)],
        shares=tables.shares(content, eps, chosen.confidence),
        fairness=tables.fairness(content, eps, chosen.confidence),
        compared=compared,
        reaches=reaches,
        rest=[*([] if content.empty and reaches else _radii_tables(content)), tables.evidence(content), *more],
        has_pairs=any("pairs" in one for one in found["series"]),
        has_pictures=bool(pictures),
        has_originals=any(one.original for one in pictures.values()),
        csv=download(content),
        data=as_script(found),
        style=_resource("page.css"),
        script=_resource("page.js"),
        policy=policy(live=chosen.live),
        live=chosen.live,
        choices=chosen.choices,
        version=__version__,
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    )
    return text


def _radii_tables(content: Content) -> list[tables.Table]:
    return [tables.quality(content), tables.outcomes(content)]


def write_page(content: Content, path: str | Path, options: Options | None = None) -> Path:
    """Write the page and give its path back."""
    target = Path(path)
    text = html(content, options)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{target}: expected a file that can be written, got {error.strerror or error}") from None
    return target


def policy(*, live: bool = False) -> str:
    """The content-security policy of a page: its own script and style, pictures it holds, and nothing else."""
    rules = [
        "default-src 'none'",
        "img-src data:",
        f"style-src '{_digest('page.css')}'",
        f"script-src '{_digest('page.js')}'",
        "base-uri 'none'",
        "form-action 'self'" if live else "form-action 'none'",
    ]
    if live:
        rules.append("connect-src 'self'")
    return "; ".join(rules)


@dataclass(frozen=True)
class Banner:
    """What must not be missed: `level` is bad, warn or good."""

    level: str
    headline: str
    lines: tuple[str, ...]


def banner(content: Content) -> Banner:
    """What a reader must know before any figure: contradictions, unproven claims, unfinished work."""
    alarms = content.alarms
    claims = sum(facts.claims for facts in content.facts)
    planned = sum(p.planned for facts in content.facts for p in facts.progress)
    done = sum(p.done for facts in content.facts for p in facts.progress)
    warnings: list[str] = []
    if claims:
        warnings.append(f"{claims} proven ends rest on an external tool's word alone: they were not checked here.")
    if done < planned:
        warnings.append(f"Unfinished: {done} of {planned} planned radii are done; the rest is not in these figures.")
    if content.origin:
        warnings.append(content.origin)
    if content.empty and not content.reaches:
        warnings.append("No radius is finished yet, so there is nothing to show.")
    if any(one.nearest for one in content.series):
        warnings.append(
            "Only single targets were asked for some networks: their radius is that of the nearest target asked."
        )
    if alarms:
        count = f"{len(alarms)} alarm{'s' if len(alarms) > 1 else ''}"
        return Banner("bad", f"{count}: results contradict each other. Do not rely on them.", (*alarms, *warnings))
    if warnings:
        return Banner("warn", "No alarms. Mind this:", tuple(warnings))
    return Banner("good", "No alarms: no proof and witness contradict each other in these results.", ())


def datasets_for(
    content: Content, source: str, root: str | Path | None = None, options: Mapping[str, Any] | None = None
) -> tuple[Dataset, ...]:
    """The data sets of the splits that a content speaks of, for the pictures of the originals."""
    asked = [*(one.question for one in content.series), *(one.question for one in content.reaches)]
    splits: Iterable[Any] = dict.fromkeys(one["split"] for one in asked)
    given = tuple(sorted((options or {}).items()))
    return tuple(_loaded(source, split, root, given) for split in splits)


@cache
def _loaded(source: str, split: str, root: str | Path | None, options: tuple[tuple[str, Any], ...]) -> Dataset:
    from radii.data import load_dataset

    return load_dataset(source, split=split, root=root, **dict(options))


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("radii.report", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.get_template("page.html")


@cache
def _resource(name: str) -> str:
    return files("radii.report").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(_resource(name).encode()).digest()).decode()
