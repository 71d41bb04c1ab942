"""Hyper-parameter search: spaces, scores on held-out inputs only, resuming after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from radii.errors import InputError
from radii.train.hyperparameters import Trial, changed, checked_space, search, usual_space
from radii.train.recipe import Recipe, parse_recipe

BODY: dict[str, Any] = {
    "name": "tuned",
    "architecture": "dense:8x1",
    "data": {"source": "arrays", "validation": 0.3},
    "method": {"name": "ibp", "epsilon": 0.05},
    "optimiser": {"learning_rate": 0.02},
    "schedule": {"ramp": [0, 2]},
    "epochs": 5,
    "batch": 20,
}


def recipe(**changes: Any) -> Recipe:
    return parse_recipe({**BODY, **changes})


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    return (0.3 + 0.4 * y[:, None] + 0.1 * rng.standard_normal((100, 5))).clip(0, 1).astype(np.float32), y


def test_a_search_stops_and_goes_on(tmp_path: Path) -> None:
    one = recipe(search={"optimiser.learning_rate": {"low": 1e-4, "high": 0.1, "log": True}, "batch": [10, 20]})
    seen: list[Trial] = []

    def stop(trial: Trial, count: int) -> None:
        seen.append(trial)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(one, 4, tmp_path, data=data(), progress=stop)
    found = search(one, 4, tmp_path, data=data())
    assert [trial.values for trial in found.trials[:2]] == [trial.values for trial in seen]
    assert len([trial for trial in found.trials if trial.state in ("complete", "pruned")]) == 4
    assert len({str(trial.values) for trial in found.trials}) == 4
    best = max(trial.score for trial in found.trials if trial.state == "complete" and trial.score is not None)
    assert (found.score, found.judged) == (best, "certified")
    chosen = next(trial for trial in found.trials if trial.score == best)
    assert found.best.optimiser.learning_rate == chosen.values["optimiser.learning_rate"]
    assert found.best.batch == chosen.values["batch"]
    with pytest.raises(InputError, match="another output"):
        search(recipe(search={"batch": [10]}), 5, tmp_path, data=data())


def test_trials_that_diverge_are_outcomes(tmp_path: Path) -> None:
    one = recipe(search={"optimiser.learning_rate": [1e30, 0.02]}, optimiser={"name": "sgd"})
    found = search(one, 4, tmp_path, data=data())
    assert found.best.optimiser.learning_rate == 0.02
    assert {trial.state for trial in found.trials} <= {"complete", "fail", "pruned"}
    assert len(found.trials) == 4


def test_usual_spaces_fit_their_recipes() -> None:
    for method in ({"name": "standard"}, {"name": "sabr", "epsilon": 0.1}, {"name": "pgd", "epsilon": 0.1}):
        one = recipe(method=method, epochs=20, evaluation={"epsilon": 0.05} if len(method) > 1 else {})
        space = usual_space(one)
        assert checked_space(one, space) == space
        assert "optimiser.learning_rate" in space
        assert ("method.epsilon" in space) == (len(method) > 1)
        assert ("method.kappa" in space) == (method["name"] == "sabr")


def test_changed_keeps_the_rest() -> None:
    one = changed(recipe(), {"optimiser.clip": 3, "method.kappa": [1, 0.5]})
    assert one.optimiser.clip == 3
    assert one.optimiser.learning_rate == 0.02
    assert one.method == {"name": "ibp", "epsilon": 0.05, "kappa": [1, 0.5]}


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"optimiser.rate": [1]}, "learning_rate"),
        ({"epochs": []}, "list of values"),
        ({"batch": {"low": 5}}, "low and high"),
        ({"optimiser.l1": {"low": 0, "high": 1, "log": True}}, "above 0 with log"),
        ({"epochs": {"low": 9, "high": 3}}, "low ≤ high"),
    ],
)
def test_bad_spaces(space: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        search(recipe(search=space), 2, tmp_path, data=data())
    assert not list(tmp_path.iterdir())


def test_no_epoch_at_full_size(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="after the ramp"):
        search(recipe(epochs=2), 2, tmp_path, data=data())
