"""The Python of docs/store.md and docs/cluster.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(("page", "printed"), [("store.md", "6 left"), ("cluster.md", "7 2187")])
def test_the_examples_run(
    page: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": "docs"})
    assert printed in capsys.readouterr().out


# The fields of ray.io/v1 RayCluster that the page may use, by the JSON names of KubeRay's API; * are required there.
HEAD = {"rayStartParams*", "template*", "serviceType", "enableIngress", "headService"}
GROUP = {"groupName*", "replicas", "minReplicas*", "maxReplicas*", "numOfHosts", "rayStartParams*", "template*"}
SPEC = {"headGroupSpec*", "workerGroupSpecs", "rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "suspend"}


def fits(part: dict[str, Any], fields: set[str]) -> None:
    assert set(part) <= {name.rstrip("*") for name in fields}
    assert {name[:-1] for name in fields if name.endswith("*")} <= set(part)


def test_the_kubernetes_cluster_has_the_fields_of_its_schema() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "cluster.md").read_text(), flags=re.DOTALL)
    body = yaml.safe_load(text)
    assert (body["apiVersion"], body["kind"]) == ("ray.io/v1", "RayCluster")
    fits(body["spec"], SPEC)
    fits(body["spec"]["headGroupSpec"], HEAD)
    for group in body["spec"]["workerGroupSpecs"]:
        fits(group, GROUP)
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for group in (body["spec"]["headGroupSpec"], *body["spec"]["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        (container,) = group["template"]["spec"]["containers"]
        assert {"name", "image", "resources"} <= set(container)
