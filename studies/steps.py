"""The steps of a study: study files that `radii run` works through, and commands that write rows of JSON."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from common import DATA, ROOT, read_csv, write_csv

PARTIAL = 3  # the exit code of `radii run` that was stopped, or whose units failed
DIGITS = 7
COLUMNS = (
    "classifier", "dataset", "split", "index", "label", "prediction", "property", "target", "norm", "lower", "upper",
    "status", "search", "verifier", "queries", "timeouts", "memory_errors", "cancelled", "cpu_seconds", "seed",
    "tolerance", "proof", "nodes",
)  # fmt: skip

UNIT = ("classifier", "dataset", "split", "index", "property", "target", "norm", "search")


@dataclass(frozen=True)
class Place:
    """Where a run works: stores and networks, results, whether it is the small one, and how many workers it has.

    `version` is the code that made the rows, where that is not the code that is here.
    """

    work: Path
    results: Path
    small: bool
    workers: int
    version: str = ""


@dataclass(frozen=True)
class Study:
    """A study file; its radii become a CSV file. `small` are changes that make it small, None leaves it out."""

    file: Path
    units: int
    hours: float
    small: Mapping[str, Any] | None = None
    title: str = ""  # the name of its CSV file unless that of the study file will do
    changes: Mapping[str, Any] = field(default_factory=dict)  # keys of the study file that are replaced

    @property
    def name(self) -> str:
        """The name of its CSV file."""
        return self.title or self.file.stem

    def run(self, place: Place) -> int:
        """Does what is missing; images whose rows are all kept are left out, wherever their store is."""
        from radii.cli.main import run

        store, pool = self._store(place), ["--workers", str(place.workers)]
        place.work.mkdir(parents=True, exist_ok=True)
        worst = 0
        for number, body in enumerate(self._missing(place)):
            path = place.work / (f"{self.name}-{number}.yaml" if number else f"{self.name}.yaml")
            path.write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
            code = run(["run", str(path), "--store", str(store), *(["--runner", "serial"] if place.small else pool)])
            worst = max(worst, code)
            if code == PARTIAL:
                break
        return worst

    def _missing(self, place: Place) -> list[dict[str, Any]]:
        """The study file, or one for every network of which only some images have their rows."""
        body = self._body(place)
        counts = Counter((row["classifier"], int(row["index"])) for row in self.kept(place))
        if not counts:
            return [body]
        indices, found = self._indices(body), []
        each = self._planned(place) // len(body["classifiers"]) // len(indices)
        for one in body["classifiers"]:
            left = [index for index in indices if counts[_stem(one), index] < each]
            if left:
                data = {key: value for key, value in body["data"].items() if key not in ("indices", "per_class")}
                name = f"{body['name']}-{_stem(one)}"
                found.append({**body, "name": name, "classifiers": [one], "data": {**data, "indices": left}})
        return found

    @staticmethod
    def _indices(body: Mapping[str, Any]) -> list[int]:
        """The places of the study's images in their data set."""
        from radii.study.file import StudyFile
        from radii.study.sources import inputs, settled

        study = StudyFile.model_validate(body)
        return [one.index for part in study.data for one in inputs(settled(part, ROOT), study.seed).instances]

    def collect(self, place: Place) -> dict[str, Any] | None:
        """Writes the CSV file of what the store holds and was kept before; how much that is, None where nothing is."""
        store = self._store(place)
        rows = {_unit(row): row for row in self.kept(place)}
        if store.is_file():
            from radii.cli.main import run

            whole = store.with_suffix(".csv")
            if run(["export", str(store), "--what", "radii", "--format", "csv", "-o", str(whole)]):
                return None
            rows |= {_unit(row): row for row in map(slim, read_csv(whole))}
        if not rows:
            return None
        write_csv(place.results / f"{self.name}.csv", list(rows.values()))
        spent = math.fsum(float(row["cpu_seconds"] or 0) for row in rows.values())
        found = {"done": len(rows), "planned": self._planned(place), "cpu_seconds": round(spent)}
        return {**found, "budget": self.budget(self._body(place))}

    def kept(self, place: Place) -> list[dict[str, str]]:
        """The rows of the CSV file, if they were made with the budget that the study file has now."""
        told = [row["budget"] for row in read_csv(place.results / "runs.csv") if row["step"] == self.name]
        rows = read_csv(place.results / f"{self.name}.csv")
        return rows if told == [self.budget(self._body(place))] else []

    @staticmethod
    def budget(body: Mapping[str, Any]) -> str:
        """The budget and the seed of a study file, in words."""
        return f"{body['budget'].get('seconds', '–')} CPU s each, seed {body.get('seed', 0)}"

    def command(self) -> str:
        """What does this step alone."""
        return f"python studies/run.py {self.file.parent.name} --only {self.name}"

    def _store(self, place: Place) -> Path:
        return place.work / f"{self.name}.db"

    def _planned(self, place: Place) -> int:
        return int(self.small["units"]) if place.small and self.small else self.units

    def _body(self, place: Place) -> dict[str, Any]:
        text = self.file.read_text(encoding="utf-8").replace("$RADII_DATA", str(DATA))
        body: dict[str, Any] = yaml.safe_load(text.replace("$NETWORKS", str(place.work / "networks")))
        body |= self.changes
        if place.small and self.small:
            for key, value in self.small.items():
                if key == "classifiers":
                    body["classifiers"] = body["classifiers"][:value]
                elif key == "seconds":
                    body["budget"]["seconds"] = value
                elif key == "data":
                    body["data"] = {k: v for k, v in body["data"].items() if k not in ("indices", "per_class")} | value
                elif key != "units":
                    body[key] = value
        return body


@dataclass(frozen=True)
class Command:
    """A command that appends rows of JSON to {output} and resumes, or that only prepares what later steps need.

    {work}, {data} and {workers} stand for the working folder, the data and the workers. The rows become a CSV file
    with `columns`; `units` are the rows of the whole and `small_units` those of the small study.
    """

    name: str
    words: Sequence[str]
    hours: float
    units: int = 0
    small: Sequence[str] | None = None
    small_units: int = 0
    columns: Sequence[str] = ()
    budget: str = "–"
    table: str = ""  # a file that has the rows instead: CSV below the working folder, or JSON below the clone
    spent: str = ""  # the column with CPU seconds
    beside: str = ""  # rows of this kind are no units of the plan

    def run(self, place: Place) -> int:
        """Runs the command, unless all its rows are kept and what it would go on from is on another machine."""
        if self.columns and self._kept(place) and not self._found(place.work):
            return 0
        words = self.small if place.small and self.small is not None else self.words
        place.work.mkdir(parents=True, exist_ok=True)
        return subprocess.run([sys.executable, *self._filled(words, place)], cwd=ROOT, check=False).returncode

    def collect(self, place: Place) -> dict[str, Any] | None:
        """Writes the CSV file of the rows that are there; how many, or None where none are."""
        found = self._found(place.work)
        rows = [{key: _cell(row.get(key)) for key in self.columns} for row in found]
        if not rows:
            return self._kept(place)
        write_csv(place.results / f"{self.name}.csv", rows)
        spent = round(math.fsum(float(row.get(self.spent) or 0) for row in found)) if self.spent else "–"
        planned = self.small_units if place.small else self.units
        done = sum(not self.beside or row.get("kind") != self.beside for row in found)
        return {"done": done, "planned": planned, "cpu_seconds": spent, "budget": self.budget}

    def _kept(self, place: Place) -> dict[str, Any] | None:
        """What runs.csv says of this step, if its rows are all there and were made with the same budget."""
        planned = str(self.small_units if place.small else self.units)
        for row in read_csv(place.results / "runs.csv"):
            if row["step"] == self.name and row["done"] == row["planned"] == planned and row["budget"] == self.budget:
                whole = (place.results / f"{self.name}.csv").is_file()
                return {key: row[key] for key in ("done", "planned", "cpu_seconds", "budget")} if whole else None
        return None

    def _found(self, work: Path) -> list[dict[str, Any]]:
        if self.table.endswith(".json"):
            file = ROOT / self.table
            body = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"rows": []}
            return [{**body, **dict(zip(self.columns, row))} for row in body["rows"]]
        if self.table:
            return list(map(dict, read_csv(work / self.table)))
        output = work / f"{self.name}.jsonl"
        if not self.columns or not output.is_file():
            return []
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines() if line.strip()]

    def command(self) -> str:
        """What does this step alone."""
        known = {"output": f"{self.name}.jsonl", "work": "build", "data": "$RADII_DATA", "workers": "2"}
        return " ".join(["python", *(word.format(**known) for word in self.words)])

    def _filled(self, words: Sequence[str], place: Place) -> list[str]:
        output = place.work / f"{self.name}.jsonl"
        return [w.format(output=output, work=place.work, data=DATA, workers=place.workers) for w in words]


Step = Study | Command


def _stem(classifier: Any) -> str:
    """The name of a classifier of a study file, as rows have it."""
    if isinstance(classifier, dict):
        return str(classifier.get("name") or _stem(classifier["path"]))
    return classifier.removeprefix("zoo:") if classifier.startswith("zoo:") else Path(classifier).stem


def _unit(row: Mapping[str, str]) -> tuple[str, ...]:
    """What makes a row the only one of its kind."""
    return tuple(row[key] for key in UNIT)


def slim(row: Mapping[str, str]) -> dict[str, str]:
    """A row of `radii export` without what pages do not use; ends rounded outwards, so that they still hold."""
    kept = {key: row[key] for key in COLUMNS}
    scale = 10**DIGITS
    if row["lower"]:
        kept["lower"] = repr(math.floor(float(row["lower"]) * scale) / scale)
    if row["upper"]:
        kept["upper"] = repr(math.ceil(float(row["upper"]) * scale) / scale)
    if row["cpu_seconds"]:
        kept["cpu_seconds"] = f"{float(row['cpu_seconds']):.3f}"
    return kept


def record(place: Place, step: Step, found: Mapping[str, Any] | None) -> None:
    """Keeps in runs.csv what a step has done; a row that says the same as before stays as it is."""
    folder, small = place.results, place.small
    rows = {row["step"]: row for row in read_csv(folder / "runs.csv")}
    old = rows.get(step.name)
    planned = (
        step.units if not small else step.small_units if isinstance(step, Command) else (step.small or {})["units"]
    )
    if not planned:
        return
    values = dict(found or {"done": 0, "planned": planned, "cpu_seconds": 0, "budget": "–"})
    same = old is not None and all(str(values[key]) == old[key] for key in ("done", "planned"))
    if not same or old is None:
        versions = [*(old["version"].split(", ") if old and old["version"] else ()), place.version or version()]
        fresh = not old or values["budget"] != old["budget"]  # rows of another budget are not kept
        told = versions[-1] if fresh else ", ".join(dict.fromkeys(versions))
        stamp = {"version": told if found else "", "date": time.strftime("%Y-%m-%d") if found else ""}
        rows[step.name] = {"step": step.name, **{k: str(v) for k, v in values.items()}, **stamp}
        rows[step.name]["command"] = step.command()
        write_csv(folder / "runs.csv", list(rows.values()))


def version() -> str:
    """The commit of the code, outside a clone the version of radii."""
    words = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    if found:
        return found
    from importlib.metadata import version as installed

    return installed("radii")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
