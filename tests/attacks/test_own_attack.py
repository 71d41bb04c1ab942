"""The attack of docs/attacks.md, offered by another package: listed, and used by a study and by the engine."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.study.build import toy_study

from radii.cli.main import run
from radii.store import open_store, queries_frame

PAGE = Path(__file__).parents[2] / "docs" / "attacks.md"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's class in a module of its own, with an entry point as an installer leaves it."""
    (code,) = [
        part for part in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "class Noise" in part
    ]
    site = tmp_path / "site"
    info = site / "noise-1.dist-info"
    info.mkdir(parents=True)
    (site / "noise_attack.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noise\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[radii.attacks]\nnoise = noise_attack:Noise\n")
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("noise_attack", None)


@pytest.mark.usefixtures("package")
def test_an_attack_of_ones_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["attacks", "--json"]) == 0
    (listed,) = [one for one in json.loads(capfd.readouterr().out) if one["name"] == "noise"]
    assert listed["options"] == "tries=100, seed=0"
    grid = {"method": "kbinary", "grid": {"start": 0.01, "stop": 1.01, "step": 0.25}}
    verifiers = [{"name": "attack", "attack": "noise", "tries": 20}, "attack:noise"]
    study = toy_study(tmp_path / "s", inputs=2, nets=1, search=grid, verifier=verifiers, data="points.npz")
    assert run(["run", str(study), "--runner", "serial"]) == 0
    with open_store(study.with_suffix(".db")) as store:
        asked = queries_frame(store)
    assert set(asked["decider"]) == {"noise(tries=20, seed=0)", "noise(tries=100, seed=0)"}
    assert (asked["verdict"] == "broken").any()
    engine = toy_study(tmp_path / "e", inputs=2, nets=1, verifier={"name": "native", "attack": "noise"})
    assert run(["run", str(engine), "--runner", "serial"]) == 0
