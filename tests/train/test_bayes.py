"""Bayesian networks: draws, the merged predictor, diagnostics, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.train.small import recipe

import radii
from radii.errors import InputError, TrainingError
from radii.train.bayes import CHAIN, CONVERGED, Potential, diagnosed, networks_of
from radii.train.recipe import BayesPart, parse_recipe
from radii.train.task import prepare

pytest.importorskip("pyro")

SMALL = {"draws": 6, "warmup": 6, "chains": 2, "step": 0.005, "steps": 3, "prior": 0.3, "networks": 3}


def small(**changes: Any) -> dict[str, Any]:
    bayes = {**SMALL, **changes.pop("bayes", {})}
    architecture = {"name": "dense:6x1"}
    return recipe(
        **{"epochs": 1, "balance": None, "method": "standard", "architecture": architecture, "bayes": bayes, **changes}
    )


def test_the_predictor_is_the_mean_of_its_networks_and_a_classifier(tmp_path: Path) -> None:
    run = radii.train(small(), output=tmp_path / "b")
    files = sorted((tmp_path / "b").glob(f"*/{CHAIN}"))
    drawn = torch.cat([torch.load(file)["networks"] for file in files])
    assert drawn.shape[0] == 3
    task = prepare(parse_recipe(small()))
    data = radii.load_dataset("mnist5k", split="test")[:4]
    potential = Potential(task, 0.3)
    outputs = torch.stack([potential.outputs(weights, torch.from_numpy(data.x.copy())) for weights in drawn]).mean(0)
    np.testing.assert_allclose(run.classifier(data.x), outputs.numpy(), atol=1e-5)
    label = int(run.classifier.predict(data.x)[0])
    found = radii.radius(run.classifier, data[0].x, label, nodes=20)
    assert found.lower is not None
    assert found.upper is not None
    assert radii.reach(run.classifier, data[0].x, property="probability", epsilon=0.01, nodes=5).upper is not None
    told = run.card["posterior"]
    assert told["draws"] == 6
    assert len(told["acceptance"]) == 2
    assert (tmp_path / "b" / "curve.png").stat().st_size > 1000


def test_a_stopped_run_goes_on_with_the_next_chain_and_ends_alike(tmp_path: Path) -> None:
    whole = radii.train(small())

    def stop(row: Any, count: int) -> None:
        if row.epoch == 13:  # in the second chain
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        radii.train(small(), output=tmp_path / "b", progress=stop)
    rows = list[Any]()
    again = radii.train(
        small(), output=tmp_path / "b", resume=True, progress=lambda row, count: rows.append((row, count))
    )
    assert [row.epoch for row, _ in rows] == list(range(1, 23))
    assert {count for _, count in rows} == {22}
    assert again.classifier.graph.operators == whole.classifier.graph.operators
    data = radii.load_dataset("mnist5k", split="test")[:20]
    np.testing.assert_array_equal(again.classifier(data.x), whole.classifier(data.x))
    with pytest.raises(InputError, match="expected a chain of this recipe"):
        radii.train(small(bayes={"draws": 7}), output=tmp_path / "b", resume=True)


def test_nuts_draws_and_generators_are_left_alone() -> None:
    before = torch.get_rng_state()
    run = radii.train(small(bayes={"sampler": "nuts", "chains": 1, "networks": 1, "depth": 2}))
    assert torch.equal(torch.get_rng_state(), before)
    assert run.card["posterior"]["sampler"] == "nuts"


def test_the_potential_is_that_of_the_posterior() -> None:
    task = prepare(parse_recipe(small()))
    weights = torch.nn.utils.parameters_to_vector(task.model.parameters()).detach()
    logs = task.model(task.train.x).log_softmax(1)
    likelihood = logs[torch.arange(len(task.train)), task.train.y].sum()
    prior = torch.distributions.Normal(0.0, 0.3).log_prob(weights)
    constant = len(weights) * torch.distributions.Normal(0.0, 0.3).log_prob(torch.zeros(()))
    expected = -(likelihood + prior.sum() - constant)
    assert Potential(task, 0.3).energy(weights) == pytest.approx(float(expected.detach()), rel=1e-5)


def chain(make: Callable[[torch.Generator], torch.Tensor], seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    values = make(generator)
    return {"energies": values[:, 0].double(), "seen": values, "acceptance": 0.8, "divergences": 0, "step": 0.1}


def test_diagnostics_tell_chains_that_meet_from_those_that_do_not() -> None:
    part = BayesPart(draws=200, chains=2)
    same = diagnosed(part, [chain(lambda g: torch.randn(200, 3, generator=g), seed) for seed in (0, 1)])
    assert same.r_hat is not None
    assert same.r_hat < 1.05
    assert same.effective is not None
    assert 200 < same.effective < 800
    assert "not converged" not in same.sentence()
    apart = diagnosed(part, [chain(lambda g: torch.randn(200, 3, generator=g) + 5 * seed, seed) for seed in (0, 1)])  # noqa: B023
    assert apart.r_hat is not None
    assert apart.r_hat > CONVERGED
    assert "not converged" in apart.sentence()
    still = diagnosed(part, [chain(lambda g: torch.ones(200, 3), 0)] * 2)
    assert still.r_hat is None
    assert "not converged" in still.sentence()


def test_networks_are_shared_out_among_chains() -> None:
    part = BayesPart(chains=3, networks=8)
    assert [networks_of(part, k) for k in range(3)] == [3, 3, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": {"name": "pgd", "epsilon": 0.1}}, "expected the method standard.*got method"),
        ({"architecture": {"name": "dense:6x1", "batch_norm": True}}, "got architecture batch_norm"),
        ({"prune": {"share": 0.5}}, "got prune"),
        ({"bayes": {"networks": 13}}, "expected at most 12 networks, one per draw, got 13"),
        ({"bayes": {"draws": 2}}, "draws.*greater than or equal to 4, got 2"),
        ({"bayes": {"sampler": "gibbs"}}, "sampler.*'hmc' or 'nuts', got 'gibbs'"),
        ({"bayes": {"prior": 0}}, "prior: expected.*got 0"),
        ({"bayes": {"step_size": 0.1}}, "expected keys among.*got 'step_size'"),
    ],
)
def test_bad_recipes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_recipe(small(**changes))


def test_steps_that_are_never_accepted_stop_the_run() -> None:
    with pytest.raises(TrainingError, match="expected draws that are accepted, got none of 6 with the step 50"):
        radii.train(small(bayes={"adapt": False, "step": 50.0}))
