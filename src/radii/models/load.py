"""load_classifier: a classifier from an ONNX file or its bytes, from a torch module, or from the zoo."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from radii import zoo
from radii._check import whole
from radii._cpu import within
from radii._files import read_bytes, unzipped
from radii.errors import ModelError
from radii.models.arrays import with_tensors
from radii.models.check import examine
from radii.models.check import glance as check_arrays
from radii.models.classifier import Classifier, with_preprocessing
from radii.models.preprocessing import Preprocessing
from radii.problem import Domain

Shape = tuple[int, ...]
UNIT = Domain()
MOST_BYTES = 2**31  # bytes of a network with its weights: the most that protobuf, the format of ONNX files, can hold


def load_classifier(
    source: Any,
    *,
    preprocessing: Preprocessing | Mapping[str, Any] | tuple[Any, Any] | None = None,
    domain: Domain | tuple[float | None, float | None] | None = UNIT,
    name: str | None = None,
    input_shape: tuple[int, ...] | None = None,
    check: bool = True,
    seconds: float | None = None,
) -> Classifier:
    """A classifier from an ONNX file (also `.onnx.gz`), ONNX bytes, an onnx model, a torch module or the zoo.

    `preprocessing` is (mean, std) in the units of the domain; `domain=None` is the whole space; `input_shape` (without
    the batch) is needed for torch modules and for files that leave it open. The network must equal onnxruntime on
    random inputs of the domain; `check=False` skips that. `seconds` is the budget of an input: reading and checking may
    take 1.25 times as many CPU seconds and 10 more. More: docs/classifier.md.

        net = radii.load_classifier("mnist.onnx")
        net = radii.load_classifier("zoo:mnist5k-standard")    # a network that comes with radii
        net = radii.load_classifier(module, input_shape=(1, 28, 28), preprocessing=(0.1307, 0.3081))
    """
    if isinstance(source, Classifier):
        return source
    with within(seconds):
        return _loaded(source, preprocessing, domain, name, input_shape, check, light=False)


def glance(
    source: str | Path | bytes,
    *,
    preprocessing: Preprocessing | Mapping[str, Any] | tuple[Any, Any] | None = None,
    domain: Domain | tuple[float | None, float | None] | None = UNIT,
    name: str | None = None,
    input_shape: tuple[int, ...] | None = None,
) -> Classifier:
    """What `load_classifier` gives, without torch: checked in the same way, its graph read again when it is used."""
    return _loaded(source, preprocessing, domain, name, input_shape, True, light=True)


def _loaded(
    source: Any, preprocessing: Any, domain: Any, name: str | None, input_shape: Any, check: bool, *, light: bool
) -> Classifier:
    if isinstance(source, str) and source.startswith(zoo.PREFIX):
        source = zoo.path(source)
    shape = None if input_shape is None else _shape(input_shape)
    path = Path(source) if isinstance(source, (str, Path)) else None
    label = name or (_stem(path) if path else type(source).__name__ if hasattr(source, "forward") else "network")
    try:
        model, alarms = _bytes(source, shape)
        classifier = _build(model, shape, Preprocessing.of(preprocessing), Domain.of(domain), check, light)
    except ModelError as error:
        error.args = (f"{path or label}: {error}",)
        raise
    where = None if path is None else str(path)
    return classifier.changed(name=label, path=where, alarms=(*alarms, *classifier.alarms))


def _build(
    model: bytes, shape: Shape | None, preprocessing: Preprocessing, domain: Domain, check: bool, light: bool
) -> Classifier:
    from radii.models.from_onnx import read_graph

    graph = read_graph(model, shape)
    classes = prod(graph.output_shape)
    classifier = Classifier(model, graph.input_shape, classes, domain=domain, preprocessing=preprocessing)
    graph = with_preprocessing(graph, preprocessing)
    classifier = classifier.with_facts_of(graph) if light else classifier.with_graph(with_tensors(graph))
    if not check:
        return classifier
    difference, alarms = check_arrays(classifier, graph) if light else examine(classifier)
    return classifier.changed(difference=difference, alarms=alarms)


def _shape(value: Any) -> Shape:
    sizes = (value,) if isinstance(value, int) else tuple(value)
    return tuple(whole(n, "input_shape", low=1) for n in sizes)


def _bytes(source: Any, shape: Shape | None) -> tuple[bytes, tuple[str, ...]]:
    """The network as ONNX bytes, and the alarms that its export raised."""
    if isinstance(source, (str, Path)):
        return read(Path(source)), ()
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _recognised(unzipped(bytes(source), ModelError, MOST_BYTES)), ()
    if hasattr(source, "SerializeToString"):
        return bytes(source.SerializeToString()), ()
    if hasattr(source, "forward") and hasattr(source, "state_dict"):
        from radii.models.from_torch import export

        return export(source, shape)
    raise ModelError(f"expected a path, ONNX bytes or a torch module, got {type(source).__name__}")


def read(path: Path) -> bytes:
    """The bytes of an ONNX file, unpacked, with weights that lie in files beside it drawn in."""
    data = _recognised(read_bytes(path, "an ONNX file", ModelError, MOST_BYTES))
    return _with_outside_weights(data, path.parent)


def _recognised(data: bytes) -> bytes:
    """The bytes, if they may be a network: a file of another kind is named."""
    if not data:
        raise ModelError("expected an ONNX network, got an empty file")
    kinds = {
        b"PK": "a zip archive (a PyTorch checkpoint or npz?): load the torch module and pass that",
        b"\x89HDF": "an HDF5 file (Keras?): export it to ONNX first",
        b"\x93NUMPY": "a numpy array",
        b"\x89PNG": "a picture",
        b"(": "a text (VNN-LIB?): give the network, not the query",
        b"; ": "a text (VNN-LIB?): give the network, not the query",
    }
    for magic, kind in kinds.items():
        if data.startswith(magic):
            raise ModelError(f"expected an ONNX network, got {kind}")
    return data


def _with_outside_weights(data: bytes, folder: Path) -> bytes:
    if b"location" not in data:  # the key under which an ONNX file names the files its weights lie in
        return data
    import onnx

    from radii.models.from_onnx import outside, parse

    parse(data)
    proto = onnx.load_from_string(data)
    weights = outside(proto)
    if not weights:
        return data
    if sum(_size(item, folder) for item in weights) > MOST_BYTES:
        raise ModelError("expected weights of at most 2 GiB in files beside it, got more")
    try:
        onnx.load_external_data_for_model(proto, str(folder))
    except Exception as error:  # onnx has its own types for files that are absent, too short or outside the folder
        raise ModelError("expected its weights in files beside it, got a file that is absent or damaged") from error
    return bytes(proto.SerializeToString())


def _size(weights: Any, folder: Path) -> int:
    """How many bytes are read for one constant: its length, or all of the file that it lies in."""
    said = {item.key: item.value for item in weights.external_data}
    try:
        return int(said["length"]) if "length" in said else (folder / said["location"]).stat().st_size
    except (KeyError, ValueError, OSError):
        raise ModelError("expected its weights in files beside it, got a file that is absent or damaged") from None


def _stem(path: Path) -> str:
    name = path.name
    for ending in (".gz", ".onnx"):
        name = name.removesuffix(ending)
    return name
