"""Options of several commands, and texts as the values that they mean; what is wrong is one line with its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii._check import number
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.data import Dataset
    from radii.models import Classifier
    from radii.problem import Property

# The same option reads the same in every command.
Model = Annotated[
    str, typer.Argument(help="ONNX file, zoo:NAME for a network of radii, or a YAML file that combines several.")
]
Data = Annotated[str, typer.Option(help="Data set by name (see radii datasets), or a file or folder.")]
Index = Annotated[str, typer.Option(help="Position in the split: 7, or 0:10, or 3,5,8.")]
Root = Annotated[Path | None, typer.Option(help="Folder of the data set's files.")]
Split = Annotated[str | None, typer.Option(help="Split of the data set; test unless given.")]
DataOption = Annotated[
    list[str] | None,
    typer.Option("--option", help="How to read the data: scale=255, label=NAME, shape=1,28,28; may be repeated."),
]
NormName = Annotated[str, typer.Option(help="linf, l2 or l1.")]
Mean = Annotated[str | None, typer.Option(help="Preprocessing: mean, or one per channel: 0.49,0.48,0.45.")]
Std = Annotated[str | None, typer.Option(help="Preprocessing: standard deviation, like --mean.")]
Shape = Annotated[str | None, typer.Option(help="Shape of one input where the file leaves it open: 1,28,28.")]
Ends = Annotated[str, typer.Option(help="Values inputs can take, LOW,HIGH or none.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Verifier = Annotated[str, typer.Option(help="See radii verifiers.")]
Keep = Annotated[str | None, typer.Option(help="Keep results in this file or database, and use them.")]
StudyStore = Annotated[
    str | None, typer.Option(help="File or postgresql:// URL; STUDY.db beside STUDY.yaml unless given.")
]
RunnerName = Annotated[str, typer.Option(help="local, ray or serial.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Local worker processes; one per core unless given.")]
Address = Annotated[str | None, typer.Option(help="Ray cluster: auto, HOST:PORT or ray://HOST:PORT.")]


def property_of(text: str, target: int | None) -> Property:
    """The property that a text says, such as standard:delta=10, with the target that was given beside it."""
    from radii.problem.property import make, split

    kind, values = split(text, "--property")
    if target is None:
        return make(kind, values, "--property")
    if "target" in values:
        raise InputError(f"--target: expected one target, got {target} beside --property {text}")
    try:
        return make(kind, {**values, "target": target}, "--target")
    except InputError as error:
        raise InputError(f"{error}; --target belongs to --property classification") from None


def positions(text: str, data: Dataset) -> list[int]:
    """Positions in a data set from text such as "7", "0:10" or "3,5,8"."""
    chosen: list[int] = []
    for piece in text.split(","):
        first, colon, last = piece.partition(":")
        try:
            start = int(first) if first else 0
            stop = (int(last) if last else len(data)) if colon else start + 1
        except ValueError:
            raise InputError(f"--index: expected a position, a range such as 0:10 or a list, got {text!r}") from None
        if not 0 <= start < len(data) or stop > len(data) or stop < start:
            raise InputError(f"--index: expected positions from 0 to {len(data) - 1}, got {piece!r}")
        chosen.extend(range(start, stop))
    if not chosen:
        raise InputError(f"--index: expected at least one input, got an empty selection {text!r}")
    return chosen


def preprocessing(mean: str | None, std: str | None) -> tuple[list[float], list[float]] | None:
    """Mean and standard deviation, each one number or one per channel; None when neither is given."""
    if mean is None and std is None:
        return None
    if mean is None or std is None:
        given, absent = ("--mean", "--std") if std is None else ("--std", "--mean")
        raise InputError(f"{given}: expected {absent} beside it, got none; give both, as the network was trained with")
    means, stds = numbers(mean, "--mean"), numbers(std, "--std")
    longest = max(len(means), len(stds))
    spread = [values * longest if len(values) == 1 else values for values in (means, stds)]
    if len(spread[0]) != len(spread[1]):
        raise InputError(f"--std: expected as many numbers as --mean ({len(means)}), got {len(stds)}")
    return spread[0], spread[1]


def domain_of(text: str) -> tuple[float, float] | None:
    """The interval input values lie in, from "LOW,HIGH"; "none" is the whole space."""
    if text == "none":
        return None
    ends = numbers(text, "--domain")
    if len(ends) != 2:
        raise InputError(f"--domain: expected LOW,HIGH or none, got {text!r}")
    return ends[0], ends[1]


def network_of(
    model: str, mean: str | None, std: str | None, domain: str, shape: str | None, seconds: float
) -> Classifier:
    """The network of a command with its preprocessing, domain and input shape, for inputs of so many seconds."""
    from radii.cli.models import model_of

    sizes_of = None if shape is None else sizes(shape, "--input-shape")
    scaled, ends = preprocessing(mean, std), domain_of(domain)
    return model_of(model, seconds, preprocessing=scaled, domain=ends, input_shape=sizes_of)


def inputs_of(data: str, index: str, split: str | None, root: Path | None, option: Sequence[str] | None) -> Dataset:
    """The inputs of a command: some positions of a data set."""
    from radii.data import load_dataset

    whole = load_dataset(data, split=split, root=root, **data_options(option))
    return whole[positions(index, whole)]


def grid_of(text: str | None) -> dict[str, str] | None:
    """The grid of ε in "START:STOP:STEP"."""
    if text is None:
        return None
    parts = text.split(":")
    if len(parts) != 3:
        raise InputError(f"--grid: expected START:STOP:STEP such as 0.001:0.4:0.002, got {text!r}")
    return dict(zip(("start", "stop", "step"), parts, strict=True))


def data_options(texts: Sequence[str] | None) -> dict[str, Any]:
    """The options of a data source from texts such as "scale=255"; a list with commas is a tuple."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier():
            raise InputError(f"--option: expected NAME=VALUE such as scale=255 or label=species, got {text!r}")
        pieces = [_plain(piece.strip()) for piece in value.split(",")]
        found[name] = pieces[0] if len(pieces) == 1 else tuple(pieces)
    return found


def _plain(text: str) -> Any:
    """A whole number, a number, true, false, none, or else the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return int(text) if text.lstrip("-").isdigit() else number(text, "--option")
    except InputError:
        return text


def sizes(text: str, name: str) -> tuple[int, ...]:
    """Whole numbers above 0 from a list with commas."""
    pieces = text.split(",")
    if not all(piece.strip().isdigit() and int(piece) > 0 for piece in pieces):
        raise InputError(f"{name}: expected whole numbers such as 1,28,28, got {text!r}")
    return tuple(int(piece) for piece in pieces)


def numbers(text: str, name: str) -> list[float]:
    """Numbers from a list with commas; fractions such as 1/255 are numbers."""
    return [number(piece, name) for piece in text.split(",")]
