"""The page, the documents, the card and the server, on stores filled through the store's interface."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from filled import HOSTILE, Plan, fill

from radii.cli.main import run
from radii.errors import InputError, StoreError
from radii.problem import Proof, Radius
from radii.report import documents
from radii.report.card import write_card
from radii.report.content import gather
from radii.report.page import banner, html
from radii.report.rounding import down, up
from radii.report.serve import make_app
from radii.report.stats_tables import view
from radii.report.tables import default_eps
from radii.report.watch import Served
from radii.store import Store


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("hostile") / "hostile.db"
    fill(where, Plan(networks=("plain", HOSTILE), inputs=60, classes=43, dataset="<img src=x onerror=alert(1)>"))
    return where


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    parsed: dict[str, object] = json.loads(found.group(1))
    return parsed


def test_names_stay_text_everywhere(hostile: Path) -> None:
    content = gather([hostile])
    page = html(content)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 2
    assert {one["name"] for one in data_of(page)["series"]} == {"plain", HOSTILE}  # type: ignore[attr-defined]
    for text in (documents.markdown(content), write_card(hostile).split("---\n")[2]):
        assert "<script" not in text
        assert "<img" not in text
    assert r"\$x\_1\$" in documents.latex_tables(content)
    assert len(page.encode()) < 6e6


def test_the_script_gets_the_radii_rounded_to_the_safe_side(hostile: Path) -> None:
    content = gather([hostile])
    for one, shown in zip(content.series, data_of(html(content))["series"], strict=True):  # type: ignore[call-overload]
        lower = np.array(shown["lower"], dtype=float)
        upper = np.array(shown["upper"], dtype=float)
        known = np.isfinite(one.dist.lower)
        assert np.array_equal(known, np.isfinite(lower))
        assert np.all(lower[known] <= one.dist.lower[known])
        assert np.allclose(lower[known], one.dist.lower[known], rtol=2e-5)
        assert np.all(upper[np.isfinite(upper)] >= one.dist.upper[np.isfinite(upper)])


@pytest.mark.parametrize("value", [0.02, 0.029, 1 / 3, 1e-9, 8 / 255, 3.0, 0.0])
def test_rounding(value: float) -> None:
    assert down(value) <= value <= up(value)
    assert up(value) - down(value) <= 2e-5 * value


def test_alarms_come_first_and_cannot_be_missed(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", Plan(networks=("net",), inputs=5))
    with Store(tmp_path / "s.db") as store:
        record = next(r for r in store.records() if r.radius.upper is not None and not r.radius.misclassified)
        assert record.radius.upper is not None
        wrong = Radius(lower=record.radius.upper * 2, proof=Proof("branch"))
        assert store.put_many([type(record)(unit=record.unit, radius=wrong)])
    content = gather([tmp_path / "s.db"])
    assert banner(content).level == "bad"
    page = html(content)
    assert page.index("1 alarm:") < page.index("<table")
    assert "1 alarm:" in documents.markdown(content).splitlines()[2]
    assert "1 alarm:" in write_card(tmp_path / "s.db")


def test_an_empty_store_and_one_input_and_a_missing_file(tmp_path: Path) -> None:
    Store(tmp_path / "empty.db").close()
    empty = gather([tmp_path / "empty.db"])
    assert "nothing to show" in html(empty)
    assert "nothing to show" in documents.markdown(empty)
    with pytest.raises(InputError, match="run the study first"):
        write_card(tmp_path / "empty.db")
    fill(tmp_path / "one.db", Plan(networks=("net",), inputs=1))
    one = gather([tmp_path / "one.db"])
    assert len(one.series) == 1
    assert "Needs 2 to" in html(one)
    documents.write_pdf(one, tmp_path / "one.pdf")
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(StoreError, match="expected an existing file"):
        gather([tmp_path / "absent.db"])


def test_single_targets_give_the_nearest_one(tmp_path: Path) -> None:
    fill(tmp_path / "p.db", Plan(networks=("net",), inputs=6, classes=3, targets=(0, 1, 2)))
    one = gather([tmp_path / "p.db"]).series[0]
    assert one.nearest
    assert one.pairs is not None
    assert len(one.dist) == 6
    assert len(one.pairs) == 12
    for key, upper, lower in zip(one.dist.ids, one.dist.upper, one.dist.lower, strict=True):  # type: ignore[arg-type]
        mine = one.pairs.ids == key
        ends = one.pairs.upper[mine]
        least = np.nan if np.isnan(ends).all() else np.nanmin(ends)
        assert np.array_equal(upper, least, equal_nan=True)
        assert np.array_equal(lower, one.pairs.lower[mine].min(), equal_nan=True)


def test_two_splits_are_two_series_with_telling_names(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", Plan(networks=("net",), inputs=4, splits=("train", "test")))
    assert {one.name for one in gather([tmp_path / "s.db"]).series} == {"net · train", "net · test"}


def test_the_card_is_a_model_card(hostile: Path) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="HUGGINGFACE_HUB ABSENT: pip install huggingface_hub")
    card = hub.ModelCard(write_card(hostile, eps="8/255"))
    found = {result.metric_type: result.metric_value for result in card.data.eval_results}
    dist = gather([hostile]).series[-1].dist
    assert found["proven_robust_accuracy"] == pytest.approx(dist.robust_accuracy(8 / 255).proven, abs=1e-6)
    assert found["guaranteed_robust_accuracy"] == pytest.approx(float(dist.guarantee().at(8 / 255)[0]), abs=1e-6)
    assert "of unseen inputs are robust" in card.text


def test_the_server_is_careful(hostile: Path) -> None:
    pytest.importorskip("httpx", reason="HTTPX ABSENT: pip install httpx")
    from starlette.testclient import TestClient

    client = TestClient(make_app(Served(stores=(str(hostile),))), base_url="http://127.0.0.1")
    page = client.get("/")
    assert page.status_code == 200
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "<script>alert" not in page.text
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/../../etc/passwd").status_code == 404
    assert client.get("/%2e%2e/%2e%2e/etc/passwd").status_code == 404
    assert client.get("/?store=/etc/passwd").status_code == 404
    assert client.post("/").status_code == 405
    assert client.delete("/").status_code == 405


def test_other_hosts_need_a_token(hostile: Path) -> None:
    pytest.importorskip("httpx", reason="HTTPX ABSENT: pip install httpx")
    from starlette.testclient import TestClient

    with pytest.raises(InputError, match="token of at least 16"):
        Served(stores=("s.db",), host="0.0.0.0")
    token = "0123456789abcdef"
    app = make_app(Served(stores=(str(hostile),), host="0.0.0.0", token=token))
    client = TestClient(app, base_url="http://box", follow_redirects=False)
    assert client.get("/health").status_code == 403
    assert client.get("/?token=wrong").status_code == 403
    entered = client.get(f"/?token={token}")
    assert entered.status_code == 303
    assert token not in entered.headers["location"]
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("name", ["summary", "classes", "compare"])
def test_page_markdown_and_terminal_show_the_same_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Every cell that `radii stats` prints stands in the report, in its own row."""
    where, report = tmp_path / "two.db", tmp_path / "report"
    fill(where, Plan(networks=("one", "other"), inputs=30, classes=3))
    assert run(["stats", name, str(where)]) == 0
    told = capsys.readouterr().out
    extra = [] if name == "summary" else ["--view", name]
    for ending in ("md", "html"):
        assert run(["report", str(where), *extra, "-o", str(report.with_suffix(f".{ending}"))]) == 0
    page, text = (unescape(report.with_suffix(f".{ending}").read_text()) for ending in ("html", "md"))
    content = gather([where])
    tables = view(name, content, default_eps(content), 0.95)
    assert sum(len(table.rows) for table in tables) > 5
    for table in tables:
        assert table.title in told
        for row in table.texts:
            assert "| " + " | ".join(row) + " |" in text
            assert f'<th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) in page
            assert all(cell in told for cell in row)
