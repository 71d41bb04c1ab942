"""Verification and training in turns: witnesses from a store, a network trained further, radii before and after."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.small import recipe

import radii
from radii.bounds.interval import enclose
from radii.bounds.lowering import lower
from radii.bounds.region import Region
from radii.errors import DataError, InputError, ModelError
from radii.models.blocks import Clamp, Residual
from radii.problem import LINF, Domain
from radii.store import Store, open_store
from radii.study.cycle import drawn, turn, violations
from radii.study.file import parse_study
from radii.study.plan import resolve
from radii.study.run import Run
from radii.train.from_graph import trainable
from radii.train.from_torch import hindrances, read
from radii.train.recipe import parse_recipe
from radii.train.task import prepare, with_extra

STUDY: dict[str, Any] = {
    "name": "digits",
    "classifiers": "zoo:mnist5k-standard",
    "data": {"source": "mnist5k", "split": "test", "first": 6},
    "budget": {"nodes": 3},
}
FURTHER = {"method": {"name": "pgd", "epsilon": 0.05, "steps": 2}, "balance": None, "epochs": 1, "schedule": {}}


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cycle") / "digits.db"
    with open_store(file) as store:
        Run(resolve(parse_study(STUDY), Path.cwd()), store, None).run()
    return file


@pytest.fixture
def store(studied: Path, tmp_path: Path) -> Any:
    copy = tmp_path / "copy.db"
    copy.write_bytes(studied.read_bytes())
    with open_store(copy) as opened:
        yield opened


def test_one_turn_compares_the_same_inputs_and_goes_on_where_it_was(store: Store, tmp_path: Path) -> None:
    found = violations(store)
    assert len(found) == 5  # one of the six is misclassified, and has no witness
    assert found.lost == 0
    predicted = found.classifier.predict(found.x)
    assert (predicted != found.y).all()  # they are violations on the original network
    asked = parse_recipe(recipe(name="further", **FURTHER))
    done = turn(store, found, asked, tmp_path / "further")
    assert done.witnesses == 2
    assert done.summary.complete
    everything, taught, others = done.sides
    assert (len(everything.before), len(taught.before), len(others.before)) == (6, 2, 4)
    assert list(everything.before.ids) == list(everything.after.ids)
    assert everything.comparison.paired
    card = radii.load_classifier(done.network).card
    assert card["from"]["network"] == "mnist5k-standard"
    assert card["from"]["witnesses"] == 2
    assert card["data"]["inputs"] == 570 + 2 * card["from"]["repeated"]
    assert done.study == "digits-further"
    again = turn(store, violations(store, after="further"), asked, tmp_path / "further", resume=True)
    assert (again.summary.done, again.summary.known) == (0, 6)
    with pytest.raises(InputError, match=r"--study: expected one of .*digits, digits-further, got none"):
        violations(store)


def test_what_cannot_be_padded_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--study: expected one of .*digits, got 'other'"):
        violations(store, "other")
    with pytest.raises(InputError, match="--classifier: expected one of study digits: mnist5k-standard, got 'other'"):
        violations(store, classifier="other")
    found = violations(store)
    same = parse_recipe(recipe(name="mnist5k-standard", **FURTHER))
    with pytest.raises(InputError, match="expected another name than that of the network it starts from"):
        turn(store, found, same, tmp_path / "same")
    with pytest.raises(InputError, match="share: expected"):
        turn(store, found, same, tmp_path / "none", share=0.0)
    with (
        open_store(tmp_path / "empty.db") as empty,
        pytest.raises(InputError, match=r"expected one of .*: none, got none"),
    ):
        violations(empty)
    two = parse_study({**STUDY, "name": "two", "norm": ["linf", "l2"], "data": {**STUDY["data"], "first": 1}})
    Run(resolve(two, Path.cwd()), store, None).run()
    with pytest.raises(InputError, match="study two: expected one question"):
        violations(store, "two")


def test_witnesses_that_do_not_replay_are_left_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    records = list(store.records())
    witness = records[0].radius.witness
    assert witness is not None
    whole = radii.load_dataset("mnist5k", split="test")[0].x
    spoilt = replace(records[0], radius=replace(records[0].radius, witness=replace(witness, x=whole)))
    monkeypatch.setattr(type(store), "records", lambda self, where=None: iter([spoilt, *records[1:]]))
    found = violations(store)
    assert (len(found), found.lost) == (4, 1)


def test_inputs_are_drawn_by_seed() -> None:
    ids = [f"a/{k}" for k in range(10)]
    assert drawn(ids, 0.5, 0) == drawn(list(reversed(ids)), 0.5, 0)
    assert len(drawn(ids, 0.5, 0)) == 5
    assert drawn(ids, 0.5, 0) != drawn(ids, 0.5, 1)
    assert len(drawn(ids, 0.01, 0)) == 1


@pytest.mark.parametrize("name", ["zoo:mnist5k-standard", "zoo:mnist5k-conv"])
def test_a_trainable_copy_computes_the_same_and_has_gradients(name: str) -> None:
    net = radii.load_classifier(name)
    module = trainable(net)
    x = radii.load_dataset("mnist5k", split="test").x[:20]
    outputs = module(torch.from_numpy(x.copy()).reshape(-1, *net.input_shape))
    np.testing.assert_allclose(outputs.detach().numpy(), net(x), atol=1e-4)
    torch.autograd.backward(outputs.sum())
    assert all(one.grad is not None for one in module.parameters())


def test_every_layer_of_a_chain_and_what_is_none() -> None:
    nn = torch.nn
    chain = nn.Sequential(
        nn.Conv2d(2, 4, 3, 1, 1, groups=2), nn.MaxPool2d(2, 3, 1), nn.LeakyReLU(0.2), nn.Sigmoid(), nn.Flatten(),
        nn.Linear(16, 5, bias=False), nn.Tanh(), Clamp(-0.5, 0.5), nn.Linear(5, 3), nn.Softmax(1),
    )  # fmt: skip
    net = radii.load_classifier(chain, input_shape=(2, 4, 4))
    x = torch.rand(3, 2, 4, 4)
    torch.testing.assert_close(trainable(net)(x), chain[:-1](x))


def test_branches_pooling_and_preprocessing_train_further_and_bound_as_before() -> None:
    nn = torch.nn
    torch.manual_seed(0)
    first = [nn.AvgPool2d(2, 1, 1), Residual(2, 3, 2), Residual(3, 3, 1)]
    net = radii.load_classifier(
        nn.Sequential(*first, nn.Flatten(), nn.Linear(27, 3)),
        input_shape=(2, 4, 4),
        preprocessing={"mean": [0.5, 0.4], "std": [0.2, 0.3]},
    )
    x = torch.rand(4, 2, 4, 4)
    module = trainable(net)
    outputs = module(x)
    np.testing.assert_allclose(outputs.detach().numpy(), net(x.numpy()), atol=1e-5)
    torch.autograd.backward(outputs.sum())
    assert all(one.grad is not None for one in module.parameters())
    assert len(list(module.parameters())) == 2 * 6  # three convolutions, two more, a last layer; no scale
    assert not hindrances(module)
    low, high = read(module, x).outputs(x - 0.01, x + 0.01)
    graph = lower(net.graph.logits).to(torch.float64)
    theirs = enclose(graph, Region.around(x.double(), torch.full((4,), 0.01), LINF, Domain(-1, 2)))
    torch.testing.assert_close(low, theirs.low[-1].float(), atol=1e-5, rtol=0)
    torch.testing.assert_close(high, theirs.high[-1].float(), atol=1e-5, rtol=0)


class Crossed(torch.nn.Module):
    """Two sums whose branches share a part."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one, two = torch.relu(x), torch.tanh(x)
        return (one + two) + (torch.sigmoid(one) + torch.sigmoid(two))


def test_what_no_training_layer_expresses_is_refused_by_name() -> None:
    nn = torch.nn
    padded = nn.Sequential(nn.ZeroPad2d((1, 0, 0, 0)), nn.Flatten(), nn.Linear(40, 3))
    for module, shape, got in ((padded, (2, 4, 4), "Pad at"), (Crossed(), (3,), "branches that share a part at")):
        net = radii.load_classifier(module, input_shape=shape)
        with pytest.raises(ModelError, match=f"expected dense layers, convolutions.*got {got}"):
            trainable(net)


def test_extra_inputs_are_checked_and_never_held_out() -> None:
    task = prepare(parse_recipe(recipe()))
    x = np.zeros((2, 28, 28), np.float32)
    more = with_extra(task, x, [1, 2])
    assert len(more.train) == len(task.train) + 2
    assert len(more.validation) == len(task.validation)
    assert more.fingerprint != task.fingerprint
    with pytest.raises(DataError, match="extra: expected labels from 0 to 9, got 10"):
        with_extra(task, x, [1, 10])
