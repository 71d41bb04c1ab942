"""Loading is limited as well: by the budget of an input, and by what computed constants may hold."""

from __future__ import annotations

import itertools
import time

import numpy as np
import onnx
import pytest
from tests.cli.command import refused_here
from tests.models.build import Model
from tests.study.build import toy_study

import radii
from radii.bounds.lowering import lower, unbounded
from radii.errors import ModelError, UnsupportedOperator
from radii.models import from_onnx, load_classifier
from radii.models.from_onnx import Importer
from radii.models.load import glance

LATE = "expected a network that is read and checked within 1.25 times the CPU seconds of an input and 10 more"


def chain(length: int) -> bytes:
    model, name = Model(13, ["N", 4]), "x"
    for _ in range(length):
        name = model.node("Relu", name)
    return model.bytes(model.node("Gemm", name, model.floats(4, 3)))


@pytest.fixture
def slow(monkeypatch):
    """A machine on which a second has passed at every look at the clock."""
    looks = itertools.count()
    monkeypatch.setattr(time, "process_time", lambda: float(next(looks)))


def test_a_network_that_takes_longer_than_its_budget_allows(slow):
    data = chain(40)
    for seconds in (None, 1000.0):
        assert load_classifier(data, seconds=seconds).classes == 3
    with pytest.raises(ModelError, match=f"^network: {LATE}"):
        load_classifier(data, seconds=2.0)
    with pytest.raises(ModelError, match=LATE):
        radii.radius(data, np.full(4, 0.5), 0, seconds=2.0)
    assert load_classifier(data).classes == 3  # the limit is gone again


@pytest.mark.parametrize("reading", [load_classifier, glance])
def test_the_check_is_limited_as_reading_is(reading, monkeypatch):
    """The clock stands still while a file is read, and runs when its outputs are compared."""
    data, now = chain(3), itertools.repeat(0.0)
    monkeypatch.setattr(time, "process_time", lambda: next(now))
    run = Importer.run

    def read(self):
        nonlocal now
        graph = run(self)
        now = itertools.count(step=100.0)
        return graph

    monkeypatch.setattr(Importer, "run", read)
    from radii._cpu import within

    with within(2.0), pytest.raises(ModelError, match=LATE):
        reading(data)


def test_commands_pass_their_budget_on(slow, tmp_path, capfd):
    network, data = tmp_path / "net.onnx", tmp_path / "data.npz"
    network.write_bytes(chain(40))
    np.savez(data, x=np.full((1, 4), 0.5, np.float32), y=np.array([0]))
    for words in (
        ["radius", network, "--data", data, "--seconds", 2],
        ["reach", network, "--data", data, "--eps", 0.1, "--seconds", 2],
        ["properties", network, "--data", data, "--index", 0, "--eps", 0.1, "--seconds", 2],
        ["guarantee", "run", network, "--data", data, "--eps", 0.1, "--seconds", 2],
    ):
        assert LATE in refused_here(capfd, *words)
    study = toy_study(tmp_path / "s", budget={"seconds": 2.0}, classifiers=[str(network)])
    for words in (["run", study, "--runner", "serial"], ["run", study, "--dry-run"]):
        assert LATE in refused_here(capfd, *words)


def test_a_chain_of_constants_is_let_go_link_by_link(monkeypatch):
    """Each of 50 links is made of the one before it, and only the last is part of the network."""
    model = Model(13, ["N", 4])
    first = link = model.floats(4, 256)
    for _ in range(50):
        link = model.node("Add", link, first)
    data = model.bytes(model.node("MatMul", "x", link))
    monkeypatch.setattr(from_onnx, "MOST_COMPUTED", 3 * 4 * 256 * 4)
    reading = Importer(onnx.load_from_string(data), None)
    assert len(reading.run().nodes) == 2
    assert reading.known.keys() == {"x", reading.proto.graph.output[0].name}
    assert reading.computed == 4 * 256 * 4


def test_constants_that_a_few_bytes_stand_for_are_limited(monkeypatch):
    """A number that is written out to 4 KiB again and again: what the network keeps of that is counted."""
    model, name = Model(13, ["N", 1024]), "x"
    for _ in range(20):
        name = model.node("Add", name, model.node("Expand", model.floats(1), model.ints(1, 1024)))
    data = model.bytes(name)
    assert load_classifier(data).classes == 1024
    monkeypatch.setattr(from_onnx, "MOST_COMPUTED", 19 * 4096)
    with pytest.raises(ModelError, match="expected computed constants of at most 2 GiB, got more"):
        load_classifier(data)


@pytest.mark.parametrize(("side", "count"), [(80, 1), (60, 2)])
def test_windows_that_would_become_a_hundred_thousand_nodes(side, count):
    model, name = Model(13, ["N", 1, 120, 120]), "x"
    for _ in range(count):
        name = model.node("MaxPool", name, kernel_shape=[side, side])
    network = load_classifier(model.bytes(model.node("Flatten", name)))
    assert len(unbounded(network.graph)) == count
    with pytest.raises(UnsupportedOperator, match="MaxPool \\(windows of 5000 cells in all\\)"):
        lower(network.graph)


def test_products_of_constants_that_would_take_minutes():
    """A few bytes of shapes that stand for 10^12 multiplications."""
    model = Model(13, ["N", 4])
    large = model.node("ConstantOfShape", model.ints(12_000, 12_000))
    row = model.node("Slice", model.node("MatMul", large, large), model.ints(0), model.ints(4))
    data = model.bytes(model.node("MatMul", "x", row))
    with pytest.raises(UnsupportedOperator, match=r"MatMul .*a product of constants of shapes \(12000, 12000\)"):
        load_classifier(data)
