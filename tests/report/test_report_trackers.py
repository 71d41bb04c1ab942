"""The recipe for MLflow, exactly as the docs print it, against MLflow's local file store."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import radii

PAGE = Path(__file__).parents[2] / "docs" / "model-card.md"


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_the_mlflow_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions ask before they write plain files
    mlflow = pytest.importorskip("mlflow", reason="MLFLOW ABSENT: pip install mlflow-skinny")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    recipe = re.search(r"```python mlflow\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert recipe is not None
    assert len(recipe.group(1).splitlines()) == 3
    dist = radii.Distribution.from_arrays(lower=[0.01, 0.04, 0.05], upper=[0.02, None, 0.06], name="net")
    exec(recipe.group(1), {"mlflow": mlflow, "dist": dist})
    run = mlflow.search_runs(output_format="list")[0]
    assert run.info.run_name == "net"
    assert run.data.metrics == pytest.approx(dist.robust_accuracy(8 / 255)._asdict())
    kept = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="report.html")
    assert Path(kept).read_text(encoding="utf-8").startswith("<!doctype html>")
