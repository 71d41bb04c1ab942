"""The Ray runner on a real cluster of several nodes: separate raylets, each with its own object store."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ensembles.toys import linear

from radii.cli.main import run
from radii.errors import InputError
from radii.models import load_classifier
from radii.runners import ProcessRunner, Runner, SerialRunner, Task
from radii.store import open_store
from radii.testing.runner_exam import RunnerExam, eventually, square
from radii.train.grid import members, train_members
from radii.train.recipe import parse_recipe

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ray = pytest.importorskip("ray", reason="RAY ABSENT: pip install 'radii[ray]'")
    cluster_utils = pytest.importorskip("ray.cluster_utils")

from radii.runners.ray import RayRunner, Request

# Ray leaves sockets and threads to the interpreter's end and warns about its own internals.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


def worker_of_node(index: int, folder: str, doomed: int) -> int:
    """The square of the index, with a note of the raylet it ran under when it starts; the doomed one's never ends."""
    import psutil

    raylets = [parent.pid for parent in psutil.Process().parents() if "raylet" in parent.name()]
    Path(folder, f"{index}-{os.getpid()}-{time.time_ns()}").write_text(str(raylets[0]))
    time.sleep(600 if raylets[0] == doomed else 0.5)
    return index * index


def devices() -> str | None:
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def begun(folder: Path, raylet: int) -> bool:
    """Whether a task has begun under the raylet."""
    return str(raylet) in [path.read_text() for path in folder.iterdir()]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes, a CPU each; the second has a (pretended) GPU."""
    # A busy machine may take long to start raylets; Ray's own patience is half a minute.
    patience = pytest.MonkeyPatch()
    patience.setenv("RAY_raylet_start_wait_time_s", "300")
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1, num_gpus=1, object_store_memory=100 * 2**20)
    made.wait_for_nodes(timeout=300)
    yield made
    ray.shutdown()
    made.shutdown()
    patience.undo()


@pytest.fixture
def address(cluster: Any) -> str:
    if not ray.is_initialized():
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    return str(cluster.address)


class TestRay(RunnerExam):
    @pytest.fixture(autouse=True)
    def _address(self, address: str) -> None:
        self.address = address

    def make(self, workers: int) -> Runner:
        return RayRunner(self.address)


def test_a_grid_trains_to_the_same_networks_as_here(address: str, tmp_path: Path) -> None:
    body = {
        "name": "grid",
        "architecture": "dense:6x1",
        "data": {"source": "mnist5k", "first": 200},
        "method": {"name": "fgsm", "epsilon": 0.05},
        "grid": {"optimiser.learning_rate": [0.01, 0.003]},
        "epochs": 1,
    }
    found = {}
    for name, runner in (("here", SerialRunner()), ("ray", RayRunner(address))):
        chosen = members(parse_recipe(body), tmp_path / name)
        assert [one.failure for one in train_members(chosen, runner)] == ["", ""]
        found[name] = [(one.network.read_bytes(), json.loads((one.folder / "card.json").read_text())) for one in chosen]
    for (mine, card), (theirs, other) in zip(found["here"], found["ray"]):
        assert card["accuracies"] == other["accuracies"]
        x = np.random.default_rng(0).random((4, 1, 28, 28), dtype=np.float32)
        np.testing.assert_array_equal(load_classifier(mine)(x), load_classifier(theirs)(x))


def test_an_ensemble_on_a_cluster_is_the_same_game(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members' radii and joint radii are found by workers on other nodes; what they stored is not asked again."""
    nets = (([[1, 0], [0, 0]], [0, 0.5]), ([[0, 0], [0, 1]], [0.6, 0]), ([[1, 0], [0, 0]], [0, 0.45]))
    for k, (rows, shift) in enumerate(nets):
        linear(rows, shift, f"net{k}").save(tmp_path / f"net{k}.onnx")
    np.savez(tmp_path / "points.npz", x=np.array([[0.8, 0.3], [0.9, 0.2]], np.float32), y=[0, 0])
    (tmp_path / "game.yaml").write_text(
        "classifiers: [net0.onnx, net1.onnx, net2.onnx]\ndata: points.npz\nnorm: l1\nsearch: {limit: 0.9}\n"
    )
    values, states = [], []
    for name, words in (("a", ["ray", "--address", address]), ("a", ["ray", "--address", address]), ("b", ["serial"])):
        where = str(tmp_path / f"{name}.db")
        assert run(["ensemble", str(tmp_path / "game.yaml"), "--json", "--store", where, "--runner", *words]) == 0
        values.append([row["value"] for row in json.loads(capsys.readouterr().out)])
        with open_store(where) as store:
            states.append(store.state())
            assert any("+" in one.classifier.name for one in store.planned("game"))
    assert values[0] == values[1] == values[2]
    assert states[0] == states[1]


def test_a_killed_node_loses_nothing(cluster: Any, address: str, tmp_path: Path) -> None:
    doomed = cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes(timeout=300)
    raylet = doomed.all_processes["raylet"][0].process.pid
    tasks = [Task(key=str(i), function=worker_of_node, args=(i, str(tmp_path), raylet)) for i in range(12)]
    outcomes = []
    with RayRunner(address) as runner:
        assert runner.workers == 3
        for outcome in runner.run(tasks):
            outcomes.append(outcome)
            if len(outcomes) == 3:
                assert eventually(lambda: begun(tmp_path, raylet), 120)
                cluster.remove_node(doomed, allow_graceful=False)
    assert all(outcome.ok for outcome in outcomes), [outcome.failure for outcome in outcomes]
    with ProcessRunner(1) as local:
        expected = {o.key: o.value for o in local.run(Task(key=str(i), function=square, args=(i,)) for i in range(12))}
    assert {outcome.key: outcome.value for outcome in outcomes} == expected
    assert len(outcomes) == 12
    # What the lost node had begun was begun again elsewhere.
    notes = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert len(notes) > len(set(notes)) == 12


def test_fractions_of_a_gpu_are_requested(address: str) -> None:
    with RayRunner(address, request=Request(cpus=0.25, gpus=0.5)) as runner:
        assert runner.workers == 2
        (outcome,) = runner.run([Task(key="a", function=devices)])
    assert outcome.value == "0"


def test_a_request_that_fits_nowhere_is_logged(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with RayRunner(address, request=Request(resources={"unicorn": 1})) as runner:
        runner.submit(Task(key="a", function=devices))
        assert runner.wait(timeout=0.2) is None
    assert "unicorn" in caplog.text


def test_the_driver_may_start_a_cluster_of_its_own() -> None:
    ray.shutdown()
    with RayRunner() as runner:
        (outcome,) = runner.run([Task(key="a", function=square, args=(3,))])
    assert outcome.value == 9
    assert not ray.is_initialized()


@pytest.mark.parametrize("address", ["nowhere", "host:port", "ray://"])
def test_a_bad_address_is_refused(address: str) -> None:
    ray.shutdown()  # a connection that another test left would be used instead
    with pytest.raises(InputError, match="ray: expected an address such as"):
        RayRunner(address)


def test_an_unreachable_address_is_refused_at_once() -> None:
    ray.shutdown()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=f"expected a cluster at 127.0.0.1:{port}, got .*refused") as caught:
        RayRunner(f"127.0.0.1:{port}")
    assert "\n" not in str(caught.value)
