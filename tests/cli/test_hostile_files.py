"""Files that were made, or happen, to break a reader: each gets its line and exit code 2, at once and in little memory.

What a file claims (a size, a count, a depth, a repetition) is never believed before it is seen.
"""

from __future__ import annotations

import gzip
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.cli.command import radii, refused_here

from radii.errors import ModelError
from radii.models import load_classifier

Capture = pytest.CaptureFixture[str]
WEIGHT = np.ones((4, 3), np.float32)


def network(nodes: list[Any], *constants: Any, inputs: tuple[int, ...] = (1, 4)) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        list(constants),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def product(*constants: Any) -> bytes:
    return network([helper.make_node("MatMul", ["x", "W"], ["y"])], *constants)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(product(numpy_helper.from_array(WEIGHT, "W")))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    np.savez(path, x=np.full((2, 4), 0.5, np.float32), y=np.array([0, 1]))
    return path


# Study files.

ALIASES = "    a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"    a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * 10) + "]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (f"data:\n  source: data.npz\n  options:\n{ALIASES}", "aliases that repeat more than 100000 values"),
        ("data: &a {source: data.npz, options: {b: *a}}\n", "an alias to what it is a part of"),
        (f"data: {'[' * 20_000}{']' * 20_000}\n", "more than 50 lists and mappings within each other"),
        ('data: "a\\0b.npz"\n', "a text with a NUL"),
        ('data: "a\\ud800.npz"\n', "half a character"),
        (f"data: data.npz\nseed: {'9' * 5_000}\n", "a number or a date that cannot be read"),
        (f"data: data.npz\nseed: {'9' * 40}\n", "seed: expected less than or equal to 9223372036854775807"),
        ("data: data.npz\n2001-99-99: 1\n", "a number or a date that cannot be read"),
        ("data: data.npz\n? [1, 2]\n: 3\n", "a list or a mapping as a key"),
        ("data: data.npz\nbudget: {seconds: 1e999999999}\n", "budget seconds: expected a number above 0, got"),
        (f"data: data.npz\nbudget: {{seconds: {'9' * 4_000}}}\n", "got a whole number of 13288 bits"),
        ('data: {source: data.npz, indices: "0:99999999999"}\n', "expected at most 10000000 positions"),
        (f'data: {{source: data.npz, indices: "{"9" * 5_000}"}}\n', "indices: expected positions such as"),
        (f"data: {{source: data.npz, indices: [{'9' * 40}]}}\n", "indices: expected a whole number"),
    ],
)
def test_studies(tmp_path: Path, net: Path, data: Path, lines: str, said: str, capfd: Capture) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(f"name: a\nclassifiers: [{net.name}]\n{lines}")
    line = refused_here(capfd, "run", study, "--runner", "serial")
    assert said in line
    assert len(line) < 1000


def test_what_is_no_regular_file(tmp_path: Path, net: Path, data: Path, capfd: Capture) -> None:
    """A pipe without a writer, which a plain `open` would wait for, and a device without an end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    table = tmp_path / "table.csv"
    os.mkfifo(table)
    for words in (
        ["run", pipe],
        ["radius", pipe, "--data", data],
        ["radius", net, "--data", table],
        ["verify", pipe, "--network", f"N={net}"],
        ["stats", table],
    ):
        assert "got a pipe; write its content to a file" in refused_here(capfd, *words)
    assert "got a device" in refused_here(capfd, "radius", "/dev/zero", "--data", data)
    assert "got a device" in refused_here(capfd, "run", "/dev/zero")


# VNN-LIB.

DECLARED = "(declare-const X_0 Real)(declare-const Y_0 Real)"
EITHER = "(or (<= X_0 1) (>= X_0 2))"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(declare-const X_99999999999 Real)(declare-const Y_0 Real)(assert (<= X_0 1))", "expected X_0 to be"),
        (f"(declare-const X_{'9' * 5_000} Real)(declare-const Y_0 Real)", "expected (declare-const X_0 Real)"),
        (f"{DECLARED}(assert {'(and ' * 300}(<= X_0 1){')' * 300})", "at most 200 nested parentheses"),
        (f"{DECLARED}(assert (<= (+ Y_0 0.{'1' * 5_000}) 0))", "expected a finite decimal number"),
        (f"{DECLARED}" + f"(assert {EITHER})" * 30, "got more; split the query"),
        (f"{DECLARED}(assert (and {' '.join([EITHER] * 16)} {'(<= X_0 1) ' * 1000}))", "got more; split the query"),
        (
            "(declare-network N (declare-input X float32 [1000000000]) (declare-output Y float32 [2]))",
            "10000000 elements",
        ),
        (
            "(declare-network N (declare-input X float32 [²]) (declare-output Y float32 [2]))",
            "a shape such as [1,28,28]",
        ),
    ],
)
def test_queries(tmp_path: Path, net: Path, text: str, said: str, capfd: Capture) -> None:
    query = tmp_path / "query.vnnlib"
    query.write_text(text)
    assert said in refused_here(capfd, "verify", query, "--network", f"N={net}")


def test_nested_conditions_that_people_write_are_read(tmp_path: Path, net: Path, capfd: Capture) -> None:
    query = tmp_path / "query.vnnlib"
    query.write_text(f"{DECLARED}(assert {'(and ' * 190}(<= X_0 1){')' * 190})")
    assert "the query is for a network with 1 inputs" in refused_here(capfd, "verify", query, "--network", f"N={net}")


# Archives.

ZEROS = bytes(2**20)


def test_an_archive_that_unpacks_to_a_thousand_times_its_size(tmp_path: Path, data: Path, capfd: Capture) -> None:
    network, query = tmp_path / "bomb.onnx.gz", tmp_path / "bomb.vnnlib.gz"
    for bomb, filling in ((network, ZEROS), (query, b" " * len(ZEROS))):
        with gzip.open(bomb, "wb", compresslevel=1) as stream:
            for _ in range(80):
                stream.write(filling)
    said = "expected an archive that unpacks to at most 200 times its size"
    assert said in refused_here(capfd, "radius", network, "--data", data)
    assert said in refused_here(capfd, "verify", query, "--network", "N=zoo:mnist5k-conv")


def header(shape: str, kind: str) -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def test_arrays_that_claim_more_than_they_hold(tmp_path: Path, net: Path, capfd: Capture) -> None:
    claim = header("(8589934592,)", "<f4") + b"abcd"
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as archive:
        archive.writestr("x.npy", claim)
        archive.writestr("y.npy", header("(1,)", "<i8") + bytes(8))
    (tmp_path / "x.npy").write_bytes(claim)
    (tmp_path / "y.npy").write_bytes(header("(1,)", "<i8") + bytes(8))
    for name in ("claim.npz", "x.npy"):
        line = refused_here(capfd, "radius", net, "--data", tmp_path / name)
        assert "expected 34359738368 bytes for an array of shape (8589934592,), got 4: it is damaged" in line


def test_arrays_that_unpack_to_a_thousand_times_their_size(tmp_path: Path, net: Path, capfd: Capture) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("x.npy", "w") as stream:
            stream.write(header("(5242880, 4)", "<f4"))
            for _ in range(80):
                stream.write(ZEROS)
        archive.writestr("y.npy", header("(5242880,)", "|u1") + bytes(5242880))
    assert "at most 200 times its size" in refused_here(capfd, "radius", net, "--data", tmp_path / "bomb.npz")


# Pictures and tables.


def test_a_picture_that_claims_144_million_pixels(tmp_path: Path, net: Path, capfd: Capture) -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    picture = tmp_path / "pictures" / "a" / "0.png"
    picture.parent.mkdir(parents=True)
    for side in (12_000, 60_000):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
        picture.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IEND", b""))
        line = refused_here(capfd, "radius", net, "--data", tmp_path / "pictures")
        assert "0.png: expected a picture of at most" in line


def test_a_table_of_a_million_columns(tmp_path: Path, net: Path, capfd: Capture) -> None:
    (tmp_path / "wide.csv").write_text("label" + ",c" * 1_000_000 + "\n")
    assert "at most 200000 columns" in refused_here(capfd, "radius", net, "--data", tmp_path / "wide.csv")


# Networks.


def tensor(name: str, dims: list[int], kind: int = TensorProto.FLOAT) -> Any:
    return TensorProto(name=name, data_type=kind, dims=dims, raw_data=WEIGHT.tobytes())


def sizes(*values: int) -> Any:
    return numpy_helper.from_array(np.array(values, np.int64), "s")


BROKEN = {
    "no outputs": (product(numpy_helper.from_array(np.zeros((4, 0), np.float32), "W")), "a network with outputs"),
    "a shape that is not filled": (product(tensor("W", [4, 3_000_000_000])), "a constant of a known type that fills"),
    "an unknown type": (product(tensor("W", [4, 3], 99)), "a constant of a known type that fills"),
    "no such output": (network([helper.make_node("Relu", ["x"], ["z"])]), "expected a node that gives the output 'y'"),
    "no such input": (network([helper.make_node("Relu", ["q"], ["y"])]), "its input 'q' is no constant"),
    "a value of 12 billion numbers": (
        network([helper.make_node("Expand", ["x", "s"], ["y"])], sizes(1, 3_000_000_000, 4)),
        "expected values of at most 268435456 numbers",
    ),
    "a constant of 12 billion numbers": (
        network(
            [helper.make_node("ConstantOfShape", ["s"], ["W"]), helper.make_node("MatMul", ["x", "W"], ["y"])],
            sizes(4, 3_000_000_000),
        ),
        "expected values of at most 268435456 numbers",
    ),
    "an input of 10^12 numbers": (
        network([helper.make_node("Relu", ["x"], ["y"])], inputs=(1, 10**12)),
        "input x: expected values of at most 268435456 numbers",
    ),
    "a million nodes": (
        network([helper.make_node("Relu", ["x"], ["y"])] * 1_000_000),
        "expected a network of at most 5000 nodes, got 1000000",
    ),
    "a thousand operators that are not known": (
        network([helper.make_node("Elu", ["x"], [f"y{i}" if i else "y"]) for i in range(1000)]),
        "and 950 more nodes",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_networks(tmp_path: Path, data: Path, kind: str, capfd: Capture) -> None:
    model, said = BROKEN[kind]
    path = tmp_path / "net.onnx"
    path.write_bytes(model)
    line = refused_here(capfd, "radius", path, "--data", data)
    assert said in line
    assert len(line) < 4000


def outside(place: str, length: int | None = None) -> Any:
    found = TensorProto(name="W", data_type=TensorProto.FLOAT, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    found.external_data.add(key="location", value=place)
    if length is not None:
        found.external_data.add(key="length", value=str(length))
    return found


def test_weights_in_other_files(tmp_path: Path, data: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are found beside the network, whatever the working folder is, and never outside of its folder."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "w.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "other.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "nets" / "zero").symlink_to("/dev/zero")
    with (tmp_path / "nets" / "huge.bin").open("wb") as stream:
        stream.truncate(20 * 2**30)  # a sparse file
    path = tmp_path / "nets" / "net.onnx"
    for place in ("../other.bin", str(tmp_path / "other.bin"), "zero", "absent.bin"):
        path.write_bytes(product(outside(place)))
        assert "expected its weights in files beside it" in refused_here(capfd, "radius", path, "--data", data)
    path.write_bytes(product(outside("huge.bin")))
    assert "at most 2 GiB in files beside it" in refused_here(capfd, "radius", path, "--data", data)
    constant = helper.make_node("Constant", [], ["W"], value=outside("w.bin"))
    for model in (
        product(outside("w.bin", 48)),
        network([constant, helper.make_node("MatMul", ["x", "W"], ["y"])]),
    ):
        path.write_bytes(model)
        monkeypatch.chdir(tmp_path)
        assert load_classifier(path)(np.ones(4, np.float32)).tolist() == [4.0, 4.0, 4.0]
        monkeypatch.chdir(path.parent)
        with pytest.raises(ModelError, match="weights in files; give its path"):
            load_classifier(model)


def test_helpers_that_are_killed_leave_a_partial_run(tmp_path: Path, net: Path, data: Path) -> None:
    """What makes the workers ends as if for want of memory, every time: exit code 3, for the study is not at fault."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if any('radii.runners._zygote' in word for word in sys.orig_argv):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "study.yaml").write_text(f"name: a\nclassifiers: [{net.name}]\ndata: {data.name}\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = radii("run", tmp_path / "study.yaml", "--workers", 1, env={"PYTHONPATH": path})
    assert done.returncode == 3, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "the helper process was ended by SIGKILL" in last
    assert "run the same command again" in last
