"""From the names in a study file to networks and inputs; relative paths start at the file's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from radii import zoo
from radii._cpu import within
from radii._parts import parsed
from radii._yaml import read_yaml
from radii.data import Dataset, load_dataset, select
from radii.data.sources.registry import SOURCES
from radii.errors import InputError, ModelError
from radii.models.classifier import Classifier
from radii.models.load import glance, load_classifier
from radii.study.patterns import Tell, is_pattern, matching

if TYPE_CHECKING:
    from radii.study.file import ClassifierPart, DataPart


@dataclass(frozen=True)
class Source:
    """How to load a classifier again, on any machine that has its file: path, name and options."""

    path: str
    name: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""

    def load(self, check: bool = True, light: bool = False) -> Classifier:
        """The classifier; `ModelError` when the file is not the one that the fingerprint was taken of.

        `light` is for plans that nothing is computed of: checked as well, and without torch.
        """
        options = dict(self.options)
        if options.get("domain") is not None:
            options["domain"] = tuple(options["domain"])
        if options.get("input_shape") is not None:
            options["input_shape"] = tuple(options["input_shape"])
        if light:
            found = glance(self.path, name=self.name, **options)
        else:
            found = load_classifier(self.path, name=self.name, check=check, **options)
        if self.fingerprint and found.fingerprint != self.fingerprint:
            raise ModelError(
                f"{self.path}: expected the network that the study began with ({self.fingerprint[:12]}), "
                f"got another one ({found.fingerprint[:12]}); restore the file or use a new store"
            )
        return found

    @property
    def metadata(self) -> dict[str, Any]:
        """What a store must keep to load the classifier again, beside its path and name."""
        return {"options": self.options} if self.options else {}


@dataclass(frozen=True)
class Together:
    """Several classifiers as one: how to load each again, and how they are put together (`ensembles.combine`)."""

    how: str
    members: tuple[AnySource, ...]
    weights: tuple[float, ...] = ()
    name: str | None = None
    fingerprint: str = ""
    path: ClassVar[str] = ""  # it has no file of its own

    def load(self, check: bool = True, light: bool = False) -> Classifier:
        """The classifier; `ModelError` when it is not the one that the fingerprint was taken of."""
        from radii.ensembles.combine import together

        found = together(self.how, [one.load(check) for one in self.members], self.weights, self.name)
        if self.fingerprint and found.fingerprint != self.fingerprint:
            raise ModelError(f"{found.name}: expected the networks that the study began with, got others")
        return found

    @property
    def metadata(self) -> dict[str, Any]:
        """What a store must keep to load it again; nothing where a member came from no file."""
        members = [asdict(one) for one in self.members if isinstance(one, Source)]
        if len(members) < len(self.members):
            return {}
        return {"combined": {"how": self.how, "members": members, "weights": list(self.weights)}}

    @staticmethod
    def recalled(name: str, fingerprint: str, said: Mapping[str, Any]) -> Together:
        """The same from what a store keeps."""
        members = tuple(Source(**one) for one in said["members"])
        return Together(str(said["how"]), members, tuple(said["weights"]), name, fingerprint)


@dataclass(frozen=True, eq=False)
class Held:
    """A classifier that is loaded already: workers get it whole."""

    classifier: Classifier

    @property
    def fingerprint(self) -> str:
        """The network by content."""
        return self.classifier.fingerprint

    def load(self, check: bool = True) -> Classifier:
        """The classifier itself."""
        return self.classifier

    @property
    def metadata(self) -> dict[str, Any]:
        """Nothing: it is not loaded again."""
        return {}


AnySource = Source | Held | Together


def classifiers(
    parts: list[ClassifierPart],
    base: Path,
    tell: Tell | None = None,
    light: bool = False,
    twice: bool = False,
    seconds: float | None = None,
) -> Iterator[tuple[AnySource, Classifier]]:
    """Every classifier of a study with how to load it again, in the order of the file; patterns sorted by name.

    A network that is named again is left out, or given again (`twice`). `seconds` is the budget of an input, which
    limits how long each may take (`_cpu.within`).
    """
    seen: dict[str, str] = {}
    for part in parts:
        for source in _sources(part, base, tell, light, seconds):
            with within(seconds):
                found = source.load(light=light)
            if tell is not None:
                tell(f"networks loaded: {len(seen) + 1}, the last {found.name}")
            if found.name in seen:
                if seen[found.name] == found.fingerprint and not twice:
                    continue
                if seen[found.name] == found.fingerprint:
                    yield replace(source, name=found.name, fingerprint=found.fingerprint), found
                    continue
                raise InputError(
                    f"classifiers: expected different names for different networks, got {found.name!r} twice; "
                    "give one of them a name: {path: …, name: …}"
                )
            seen[found.name] = found.fingerprint
            yield replace(source, name=found.name, fingerprint=found.fingerprint), found


def combination(file: Path, seconds: float | None = None) -> Classifier:
    """Several classifiers as one, from a YAML file with an entry of `classifiers` that has `combine`."""
    from radii.study.file import ClassifierPart

    part = parsed(ClassifierPart, read_yaml(file, "a combination with combine and members"), str(file), file.stem)
    if part.combine is None:
        raise InputError(f"{file}: expected combine and members, got a path; give the network itself")
    ((_, found),) = classifiers([part], file.resolve().parent, seconds=seconds)
    return found


def _sources(
    part: ClassifierPart, base: Path, tell: Tell | None, light: bool, seconds: float | None
) -> Iterator[Source | Together]:
    """How to load what one entry names: files, or several of them as one."""
    if part.combine is not None:
        members = tuple(source for source, _ in classifiers(part.members, base, tell, light, True, seconds))
        yield Together(part.combine, members, tuple(part.weights), part.name)
        return
    options = part.model_dump(include={"preprocessing", "domain", "input_shape"}, exclude_unset=True)
    for path in _files(part.path, base, tell):
        yield Source(path, part.name, options)


def _files(text: str, base: Path, tell: Tell | None) -> list[str]:
    if text.startswith(zoo.PREFIX):
        return [zoo.PREFIX + name for name in zoo.cards()] if text == f"{zoo.PREFIX}*" else [text]
    if not is_pattern(text):
        return [str(located(text, base))]
    for folder in dict.fromkeys((base, Path.cwd())):
        if found := matching(folder / Path(text).expanduser(), tell):
            return [str(path) for path in found]
    raise InputError(f"classifiers: expected files that match {text!r} in {base}, got none")


def located(text: str, base: Path) -> Path:
    """The file or folder of that name beside the study file, or else in the working folder."""
    path = Path(text).expanduser()
    beside = base / path
    return (beside if beside.exists() or not path.exists() else path).resolve()


def settled(part: DataPart, base: Path) -> dict[str, Any]:
    """The data part as plain values with whole paths, so that the inputs are found again from anywhere."""
    body = part.model_dump(exclude_none=True)
    if part.root is not None:
        body["root"] = str(located(part.root, base))
    elif part.source not in SOURCES:
        place = located(part.source, base)
        if place.exists():
            body["source"] = str(place)
    return body


def inputs(body: dict[str, Any], seed: int = 0) -> Dataset:
    """The inputs that a settled data part names."""
    ways = {name: body[name] for name in ("indices", "first", "per_class", "stratified") if name in body}
    whole = load_dataset(body["source"], body.get("split"), body.get("root"), **body.get("options", {}))
    return select(whole, **ways, seed=seed)
