"""`radii train --from STORE`, as it is typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from radii.cli.main import run as main


def test_the_command_trains_further_and_shows_both(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = "name: s\nclassifiers: zoo:mnist5k-standard\ndata: {source: mnist5k, split: test, first: 4}\n"
    Path("s.yaml").write_text(study + "budget: {nodes: 2}\n")
    assert main(["run", "s.yaml", "--runner", "serial"]) == 0
    asked = ["train", "mnist5k-pgd", "--epochs", "1", "--from", "s.db", "--output", "on", "--workers", "1"]
    assert main(asked) == 0
    out, err = capfd.readouterr()
    assert "witnesses trained on" in out
    assert "paired sign-flip test" in out
    assert re.search(r"s: \d witnesses against mnist5k-standard, replayed", err)
    assert main([*asked, "--resume", "--json"]) == 0
    body = json.loads(capfd.readouterr().out)
    assert body["witnesses"] == 2
    assert [side["number"] for side in body["sides"]] == [4, 2, 2]
    assert main([*asked[:5], "missing.db"]) == 2
    assert "expected an existing file, got none" in capfd.readouterr().err
