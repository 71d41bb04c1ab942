"""The published networks load, agree with onnxruntime, and have the accuracies that are published with them."""

from __future__ import annotations

import csv
import gzip
import time

import numpy as np
import pytest
import torch
from tests.shared import DATA, needs_data

from radii.models import load_classifier
from radii.models.check import random_inputs

FILES = sorted(DATA.glob("**/*.onnx"))
TOLERANCE = 1e-4


@needs_data
def test_every_published_network_agrees_with_onnxruntime(capsys):
    rows = []
    for path in FILES:
        net = load_classifier(path)
        x = random_inputs(net.input_shape, net.domain, count=100, seed=1)
        wanted = net.reference(x)
        found = net(x)
        double = net.logits(torch.from_numpy(x).double()).numpy()
        scale = float(np.abs(wanted).max())
        differences = [float(np.abs(values - wanted).max()) / scale for values in (found, double)]
        rows.append((path, net, *differences))
    with capsys.disabled():
        print("\nlargest difference to onnxruntime on 100 random inputs, relative to the largest output")
        print(f"{'network':60} {'input':>10} {'nodes':>5} {'float32':>9} {'float64':>9}")
        for path, net, single, double in rows:
            shape = "x".join(map(str, net.input_shape))
            name = str(path.relative_to(DATA))
            print(f"{name:60} {shape:>10} {len(net.graph.nodes):5} {single:9.1e} {double:9.1e}")
    assert len(rows) == 35
    for path, net, single, double in rows:
        assert single <= TOLERANCE, path
        assert double <= TOLERANCE, path
        assert net.difference is not None
        assert net.difference <= TOLERANCE
        assert net.alarms == (), path


def _idx(name: str) -> np.ndarray:
    """An idx file, read by hand: the fourth byte is the number of dimensions, then their sizes."""
    data = gzip.decompress((DATA / "mnist" / name).read_bytes())
    rank = data[3]
    shape = np.frombuffer(data, ">i4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


@needs_data
def test_accuracies_of_the_mnist_networks(capsys):
    with (DATA / "jair" / "networks.csv").open() as handle:
        rows = [row for row in csv.DictReader(handle) if row["dataset"] == "MNIST"]
    images = _idx("t10k-images-idx3-ubyte.gz").astype(np.float32) / np.float32(255)
    labels = _idx("t10k-labels-idx1-ubyte.gz")
    nets = {row["file"]: load_classifier(DATA / "jair" / "networks" / row["file"]) for row in rows}
    start, cpu = time.perf_counter(), time.process_time()
    found = {name: net.accuracy(images, labels) for name, net in nets.items()}
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    with capsys.disabled():
        print(f"\naccuracy of {len(found)} networks on 10,000 test images: {seconds:.1f} s, {cpu:.1f} CPU s together")
    assert len(found) == 10
    for row in rows:
        assert found[row["file"]] == pytest.approx(float(row["accuracy_test"]), abs=1e-9), row["file"]


@needs_data
def test_accuracies_of_the_cifar_networks():
    data = np.load(DATA / "cifar10" / "cifar10_3000.npz")
    exact = data["exact_test"]
    images = data["x_test"][exact].transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    with (DATA / "jair" / "networks.csv").open() as handle:
        rows = [row for row in csv.DictReader(handle) if row["dataset"] == "CIFAR-10"]
    assert len(rows) == 3
    for row in rows:
        net = load_classifier(DATA / "jair" / "networks" / row["file"])
        assert round(net.accuracy(images, data["y_test"][exact]), 3) == float(row["accuracy_test"])
