"""The folder that printed examples run in: small files of every name that the pages use."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from radii.cli.main import run
from radii.data import Dataset, load_dataset

STUDY = """\
name: study
classifiers: [nets/*.onnx]
data: {source: mnist, root: data/mnist, split: test, indices: "0:12"}
budget: {seconds: 5}
"""
REACHES = """\
name: reaches
classifiers: [nets/*.onnx]
data: {source: mnist, root: data/mnist, split: test, indices: "0:4"}
property: {kind: probability}
measure: {reach: 0.01}
budget: {nodes: 5}
"""
GAME = """\
classifiers: [nets/*.onnx]
data: {source: mnist, root: data/mnist, split: test, indices: "0:6"}
epsilon: [0.02, 0.05]
budget: {seconds: 5}
"""
QUERY = """\
(declare-const X_0 Real)
(declare-const X_1 Real)
(declare-const X_2 Real)
(declare-const X_3 Real)
(declare-const X_4 Real)
(declare-const Y_0 Real)
(declare-const Y_1 Real)
(declare-const Y_2 Real)
(declare-const Y_3 Real)
(declare-const Y_4 Real)
""" + "".join(f"(assert (>= X_{k} -0.1))\n(assert (<= X_{k} 0.1))\n" for k in range(5))


def prepare(folder: Path) -> None:
    """Fill a folder, as the working folder of this process, with networks, data, a study and its store."""
    digits = load_dataset("mnist5k", split="train")
    _networks(folder, digits)
    _idx(folder / "data" / "mnist", {"train": digits[:200], "t10k": load_dataset("mnist5k", split="test")})
    rng = np.random.default_rng(0)
    colours = rng.random((200, 3, 32, 32)).astype(np.float32)
    np.savez(folder / "mine.npz", x=colours, y=rng.integers(0, 10, 200))
    np.savez(folder / "inputs.npz", x=np.round(colours * 255), y=rng.integers(0, 10, 200))
    _pictures(folder / "pictures", colours)
    _csv(folder / "pixels.csv", digits[:20])
    (folder / "costs.csv").write_text("\n".join(",".join("01"[i != j] for j in range(10)) for i in range(10)))
    (folder / "prop_1.vnnlib").write_text(QUERY + "(assert (<= Y_0 Y_1))\n")
    (folder / "study.yaml").write_text(STUDY)
    (folder / "game.yaml").write_text(GAME)
    (folder / "reaches.yaml").write_text(REACHES)
    for words in (
        "run study.yaml --store study.db --runner serial",
        "run reaches.yaml --store reaches.db --runner serial",
        "radius net.onnx --data mnist5k --index 7 --evidence digit7.evidence",
        "export study.db -o results.csv",
    ):
        assert run(words.split()) == 0
    for name in ("a", "b", "machine1", "machine2", "all"):
        shutil.copy(folder / "study.db", folder / f"{name}.db")


def _networks(folder: Path, digits: Dataset) -> None:
    rng = np.random.default_rng(0)
    flat, marks = digits.x.reshape(len(digits), -1), np.eye(10)[digits.y]
    linear = _solve(flat, marks)
    hidden = (rng.normal(size=(784, 24)) / 28).astype(np.float32)
    features = np.maximum(flat @ hidden, 0.0)
    large = [(hidden, np.zeros(24, np.float32)), _solve(features, marks)]
    (folder / "nets").mkdir()
    for name in ("mnist", "net", "nets/mnist-net"):
        _save(folder / f"{name}.onnx", (1, 28, 28), [linear])
    _save(folder / "nets" / "mnist-large.onnx", (1, 28, 28), large)
    for name, shape, classes in (("mine", (3, 32, 32), 10), ("cifar", (3, 32, 32), 10), ("acas", (5,), 5)):
        size = int(np.prod(shape))
        weights = rng.normal(size=(size, classes)).astype(np.float32) / size
        _save(folder / f"{name}.onnx", shape, [(weights, np.zeros(classes, np.float32))])
    shutil.copy(folder / "acas.onnx", folder / "acasxu.onnx")


def _solve(inputs: NDArray[Any], marks: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights and bias of the least-squares layer: a classifier that is right about most digits."""
    whole = np.hstack([inputs, np.ones((len(inputs), 1))])
    ridge = whole.T @ whole + 10.0 * np.eye(whole.shape[1])
    found = np.linalg.solve(ridge, whole.T @ marks).astype(np.float32)
    return found[:-1], found[-1]


def _save(path: Path, shape: tuple[int, ...], layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> None:
    nodes, weights, last = [helper.make_node("Flatten", ["x"], ["h"])], [], "h"
    for place, (matrix, bias) in enumerate(layers):
        names = [f"w{place}", f"b{place}"]
        weights += [numpy_helper.from_array(value, name) for value, name in zip((matrix, bias), names, strict=True)]
        nodes.append(helper.make_node("Gemm", [last, *names], [f"z{place}"]))
        last = f"z{place}"
        if place + 1 < len(layers):
            nodes.append(helper.make_node("Relu", [last], [f"a{place}"]))
            last = f"a{place}"
    ends = [("x", ["n", *shape]), (last, ["n", int(layers[-1][1].size)])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ends]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _idx(folder: Path, parts: dict[str, Dataset]) -> None:
    folder.mkdir(parents=True)
    for part, data in parts.items():
        pixels = np.round(data.x * 255).astype(np.uint8)
        head = struct.pack(">IIII", 2051, len(data), 28, 28)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + pixels.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 2049, len(data)) + data.y.astype(np.uint8).tobytes()
        )


def _pictures(folder: Path, colours: NDArray[np.float32]) -> None:
    from PIL import Image

    for place in range(20):
        (folder / f"class{place % 10}").mkdir(parents=True, exist_ok=True)
        pixels = (colours[place].transpose(1, 2, 0) * 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"class{place % 10}" / f"{place}.png")


def _csv(path: Path, data: Dataset) -> None:
    pixels = np.round(data.x.reshape(len(data), -1) * 255).astype(int)
    lines = [",".join(["digit", *(f"p{k}" for k in range(784))])]
    lines += [",".join(map(str, [label, *row])) for label, row in zip(data.y.tolist(), pixels.tolist(), strict=True)]
    path.write_text("\n".join(lines))
