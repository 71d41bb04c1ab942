"""The rows of the rebuilt suite are those of the paper's Table 4, and their networks can be built."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

HOME = Path(__file__).parents[2]


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(HOME / "scripts"))
    monkeypatch.delitem(sys.modules, "train_ensembles", raising=False)
    import train_ensembles

    return train_ensembles


def test_thirty_eight_rows_with_an_ensemble_each(suite: object) -> None:
    rows = suite.rows()
    assert [row.number for row in rows] == list(range(1, 39))
    known = {one.key: one for one in suite.ENSEMBLES}
    assert {row.key for row in rows} == set(known)
    assert all(row.members <= known[row.key].members and row.points <= suite.POINTS for row in rows)
    assert sum(row.milp is None for row in rows) == 2  # the paper's time-outs: 21 and 23
    assert [row.number for row in rows if row.milp is None] == [21, 23]
    assert sum(row.smt is not None for row in rows) == 5
    assert {row.epsilon for row in rows} == {1000, 100, 60, 150, 50, 3.75, 0.005, 0.01, 0.1, 0.2, 0.3, 1, 2}


def test_members_take_images_and_give_two_outputs(suite: object) -> None:
    for ensemble in suite.ENSEMBLES:
        x = torch.zeros(3, 1, ensemble.side, ensemble.side)
        for member in range(ensemble.members):
            network = suite.build(ensemble, member)
            assert network(x).shape == (3, 2)
            convolutions = sum(isinstance(part, torch.nn.Conv2d) for part in network)
            assert convolutions == ensemble.convolutions
