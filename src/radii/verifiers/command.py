"""Command: any program that answers VNN-LIB queries, run under limits and believed only as far as it can be checked.

The program is a line with placeholders: {network} and {query} are files, {timeout} whole seconds, {out} a file that the
program writes its result to (else its standard output is read), {witness} a file for the counterexample, {folder} the
scratch folder that holds them. Its `sat` is replayed on the original model; its `unsat` is recorded as its claim.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from radii._check import choice, nearest
from radii.decide import Budget, Clock, beyond, replay, replay_spec
from radii.errors import FormatError, InputError
from radii.formats.vnnlib_write import VERSIONS, Layout, query_text, spec_text
from radii.formats.witness import read_witness
from radii.logit_query import Region
from radii.models.classifier import Classifier
from radii.problem import LINF, Answer, Norm, Proof, Property, Query, Reason, SpecQuery, Witness
from radii.verifiers.process import Finished, Limits, run, scratch

TEMPLATES = {
    "vibecheck": "vibecheck verify {query} --network N={network} --timeout {timeout} --device cpu",
    "alpha-beta-crown": (
        "python abcrown.py --device cpu --onnx_path {network} --vnnlib_path {query} --timeout {timeout} "
        "--results_file {out} --save_adv_example --cex_path {witness}"
    ),
    "neuralsat": (
        "python main.py --device cpu --net {network} --spec {query} --timeout {timeout} "
        "--result_file {out} --export_cex"
    ),
    "nnenum": "python -m nnenum.nnenum {network} {query} {timeout} {out}",
}
_INTERPRETERS = ("python", "python3", "bash", "sh")
_FIELDS = ("network", "query", "timeout", "out", "witness", "folder")
_GRACE = 0.5  # CPU seconds beyond its own time limit that a program gets to print its answer
_WORDS = {
    "sat": "sat", "violated": "sat", "unsafe": "sat", "falsified": "sat",
    "unsat": "unsat", "holds": "unsat", "safe": "unsat", "verified": "unsat",
    "timed-out": "timeout", "timeout": "timeout", "timed_out": "timeout",
    "unknown": "unknown", "error": "error",
}  # fmt: skip


@dataclass(frozen=True)
class Command:
    """Decides L∞ queries and specifications by running a command line for each of them.

    `prepare`, if given, runs before it in the same folder. `cwd` is where the program runs (some tools must run in
    their own folder). `version` is the VNN-LIB version written.

    >>> Command("mytool --net {network} --spec {query} --timeout {timeout}").refutes
    True
    """

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True

    command: str
    prepare: str = ""
    name: str = ""
    cwd: str | None = None
    version: str = "1.0"
    base: str = ""  # where files that the line names are looked for; no part of what was asked

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", TEMPLATES.get(self.command, self.command))
        choice(self.version, "command version", VERSIONS)
        for line in filter(None, (self.command, self.prepare)):
            _fields(line)
        if "{network}" not in self.command or "{query}" not in self.command:
            raise InputError(f"command: expected {{network}} and {{query}} in it, got {self.command!r}")

    @staticmethod
    def scripts(folder: str | Path, category: str = "radii") -> Command:
        """The command for a folder with VNN-COMP's `prepare_instance.sh` and `run_instance.sh`."""
        where = Path(folder)
        missing = [n for n in ("prepare_instance.sh", "run_instance.sh") if not (where / n).is_file()]
        if missing:
            raise InputError(f"{where}: expected VNN-COMP's scripts there, got no {' and no '.join(missing)}")
        quoted = shlex.quote(category)
        return Command(
            f"bash {shlex.quote(str(where / 'run_instance.sh'))} v1 {quoted} {{network}} {{query}} {{out}} {{timeout}}",
            prepare=f"bash {shlex.quote(str(where / 'prepare_instance.sh'))} v1 {quoted} {{network}} {{query}}",
            name=where.resolve().name,
        )

    def located(self, base: Path) -> Command:
        """The same, with the files that it names beside `base`; what it needs and is not there is refused."""
        home = base if self.cwd is None else base / Path(self.cwd).expanduser()
        if not home.is_dir():
            raise InputError(f"verifier {self.tool}: expected cwd to be a folder, got {home}, which is none")
        made = replace(self, base=str(base), cwd=None if self.cwd is None else str(home))
        for line in filter(None, (self.prepare, self.command)):
            program, *rest = made._words(line)
            files = [program] if os.sep in program else []
            if Path(program).name in _INTERPRETERS and rest and not rest[0].startswith(("-", "{")):
                files.append(rest[0])
            if os.sep not in program and shutil.which(program) is None:
                raise InputError(f"verifier command: expected {program} on the PATH or in {base}, got none: {line}")
            if missing := [name for name in files if not (home / name).is_file()]:
                raise InputError(f"verifier command: expected the file {missing[0]} in {home}, got none: {line}")
        return made

    def _words(self, line: str) -> list[str]:
        """The words of a line; one that names a file beside `base` is its whole path: the program runs elsewhere."""
        words = shlex.split(line)
        if not self.base:
            return words
        return [str(Path(self.base, w)) if "{" not in w and Path(self.base, w).is_file() else w for w in words]

    @property
    def tool(self) -> str:
        """What to call the program in answers."""
        return self.name or Path(shlex.split(self.command)[0]).name

    @property
    def identity(self) -> str:
        """The command line itself, and the VNN-LIB version it is given."""
        prepared = f", prepare={self.prepare}" if self.prepare else ""
        return f"command({self.command}{prepared}, vnnlib {self.version})"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=("classes", "outputs"), norms=("linf",))

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, each within the budget."""
        return [self._query(classifier, query, budget) for query in queries]

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """ROBUST when the program claims that no input of the box violates the specification."""
        obstacle = _obstacle(classifier)
        if obstacle:
            return Answer.unknown(Reason.UNSUPPORTED, obstacle)
        region = Region.box(query)
        return self._run(
            classifier,
            spec_text(query, layout=self._layout(classifier)),
            lambda x: (
                replay_spec(classifier, query, x) or replay_spec(classifier, query, region.settle(x, classifier.dtype))
            ),
            budget,
        )

    def _query(self, classifier: Classifier, query: Query, budget: Budget) -> Answer:
        obstacle = _obstacle(classifier)
        if query.norm != LINF:
            obstacle = f"VNN-LIB says boxes only: expected norm linf, got {query.norm}"
        if query.property.speaks_of not in ("classes", "outputs"):
            obstacle = f"{query.property.kind} is no property of the outputs alone"
        if obstacle:
            return Answer.unknown(Reason.UNSUPPORTED, obstacle)
        reference = classifier.reference(query.instance.x[None])[0]
        region = Region.ball(query, classifier.domain)
        if region.empty:
            return Answer.unknown(Reason.UNSUPPORTED, "the ball holds no point of the domain")
        text = query_text(
            query, classifier.classes, domain=classifier.domain, reference=reference, layout=self._layout(classifier)
        )
        return self._run(
            classifier,
            text,
            lambda x: replay(classifier, query, x) or replay(classifier, query, region.settle(x, classifier.dtype)),
            budget,
        )

    def _layout(self, classifier: Classifier) -> Layout:
        if self.version == "1.0":
            return Layout()
        return Layout(self.version, "N", (1, *classifier.input_shape), (1, classifier.classes))

    def _run(self, classifier: Classifier, text: str, confirm: Any, budget: Budget) -> Answer:
        clock = Clock()
        with scratch(f"the files for {self.tool}") as folder:
            files = {name: str(folder / name) for name in ("out", "witness")}
            files |= {"network": str(folder / "network.onnx"), "query": str(folder / "query.vnnlib")}
            files |= {"folder": str(folder), "timeout": "1000000"}
            if budget.seconds is not None:
                files["timeout"] = str(max(1, math.ceil(budget.seconds)))
            classifier.save(files["network"])
            Path(files["query"]).write_text(text)
            cost = {"cpu_seconds": 0.0, "peak_memory": 0}
            for line in filter(None, (self.prepare, self.command)):
                done = self._call(line, files, budget, cost)
            said, values = _result(done, Path(files["out"]), Path(files["witness"]))
        cost["cpu_seconds"] += clock.cpu
        return self._answer(done, said, values, confirm, {**cost, "wall_seconds": clock.wall})

    def _call(self, line: str, files: dict[str, str], budget: Budget, cost: dict[str, Any]) -> Finished:
        argv = [string.Template(part).substitute(files) for part in map(_placeholders, self._words(line))]
        # The budget is CPU time; the wall clock is for programs that wait, and patient with a busy machine.
        cpu = None if budget.seconds is None else budget.seconds + _GRACE
        wall = None if cpu is None else 5 * cpu
        limits = Limits(wall=wall, cpu=cpu, memory=budget.memory)
        done = run(argv, limits, cwd=self.cwd or files["folder"])
        cost["cpu_seconds"] += done.cpu_seconds
        cost["peak_memory"] = max(cost["peak_memory"], done.peak_memory)
        return done

    def _answer(self, done: Finished, said: str, values: Any, confirm: Any, cost: dict[str, Any]) -> Answer:
        """What the program said, as far as it can be believed."""
        if said == "sat":
            return self._replayed(values, confirm, cost)
        if done.end == "exit" and said == "unsat" and done.code == 0:
            return Answer.robust(Proof("external", "claim", self.tool), **cost)
        if done.end == "time" or said == "timeout":
            return Answer.unknown(Reason.TIME, f"{self.tool} ran out of time", **cost)
        if done.end == "memory":
            return Answer.unknown(Reason.MEMORY, f"{self.tool} was stopped at the memory limit", **cost)
        if said == "unknown":
            return Answer.unknown(Reason.INCOMPLETE, f"{self.tool} said unknown", **cost)
        last = (done.stderr.strip() or done.stdout.strip())[-300:]
        what = f"said {said or 'nothing that is a verdict'}"
        return Answer.unknown(Reason.ERROR, f"{self.tool} ended with code {done.code} and {what}: {last!r}", **cost)

    def _replayed(self, values: Any, confirm: Any, cost: dict[str, Any]) -> Answer:
        if isinstance(values, str):
            return Answer.unknown(Reason.ERROR, f"{self.tool} said sat, but {values}", **cost)
        try:
            witness: Witness | None = confirm(values)
        except (ValueError, InputError) as error:
            detail = f"{self.tool} said sat with a counterexample of {len(values)} values: {error}"
            return Answer.unknown(Reason.ERROR, detail, **cost)
        if witness is None:
            detail = f"{self.tool} said sat, but its counterexample does not replay on the original model"
            return Answer.unknown(Reason.ERROR, detail, **cost)
        return Answer.broken(witness, **cost)


def _obstacle(classifier: Classifier) -> str:
    if classifier.preprocessing.identity:
        return ""
    return "the preprocessing is not part of the network's file; build it into the network"


def _placeholders(word: str) -> str:
    """A word of a command line with ${…} for its placeholders, so that no path is ever split or quoted."""
    return re.sub(r"\{(\w+)\}", r"${\1}", word.replace("$", "$$"))


def _fields(line: str) -> None:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"command: expected a command line, got {line!r} ({error})") from None
    if not words:
        raise InputError("command: expected a command line, got an empty one")
    for field in re.findall(r"\{(\w+)\}", line):
        if field not in _FIELDS:
            known = ", ".join(f"{{{f}}}" for f in _FIELDS)
            raise InputError(f"command: expected placeholders {known}, got {{{field}}}{nearest(field, _FIELDS)}")


def _result(done: Finished, out: Path, witness: Path) -> tuple[str, Any]:
    """The program's verdict ("" when there is none) and, for `sat`, the input values or what is wrong with them."""
    texts = [_text(out), done.stdout]
    said, rest = next(((w, r) for w, r in map(_verdict, texts) if w), ("", ""))
    if said != "sat":
        return said, None
    problem = "it gave no counterexample"
    for text in (_text(witness), rest):
        if text.strip():
            try:
                return said, _inputs(read_witness(text))
            except FormatError as error:
                problem = f"its counterexample cannot be read: {error}"
    return said, problem


def _text(file: Path, limit: int = 2**26) -> str:
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return stream.read(limit).decode("utf-8", "replace")


def _verdict(text: str) -> tuple[str, str]:
    """The first line that is a verdict (or says `Result: verdict`), and what follows it."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        word = re.sub(r"^\s*(?:final\s+)?result\s*[:=]\s*", "", line.strip().lower()).strip(" .!'\"")
        if word in _WORDS:
            return _WORDS[word], "\n".join(lines[i + 1 :])
    return "", ""


def _inputs(values: dict[str, Any]) -> Any:
    """The input among the named values: X, or whatever is not an output."""
    for name, value in values.items():
        if name.upper().startswith("X"):
            return value
    return next(iter(values.values()))
