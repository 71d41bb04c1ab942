"""Objects that show themselves in notebooks, `dist.plot()` and `dist.report()`: what users type most."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from filled import HOSTILE
from matplotlib.axes import Axes

import radii
from radii.data import Dataset
from radii.errors import InputError
from radii.problem import Proof, Radius


def make(name: str = "net", n: int = 30) -> radii.Distribution:
    lower = np.random.default_rng(n).lognormal(-3.5, 0.4, n)
    return radii.Distribution.from_arrays(
        lower=np.where(np.arange(n) == 2, np.nan, lower),
        upper=np.where(np.arange(n) == 1, np.nan, lower + 0.001),
        label=np.arange(n) % 3,
        correct=np.arange(n) > 0,
        name=name,
        class_names=("a", "<b>", "c"),
    )


class Tags(HTMLParser):
    """Counts the tags of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.met: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.met.append(tag)


def test_objects_show_themselves_and_names_stay_text() -> None:
    dist = make(HOSTILE)
    data = Dataset(
        np.zeros((4, 1, 2, 2), np.float32), np.array([0, 1, 1, 2]), name=HOSTILE, class_names=("<i>", "b", "c")
    )
    net = radii.load_classifier("zoo:mnist5k-standard", name=HOSTILE)
    shown = [dist, dist.guarantee(), dist.compare(make("other")), data, net, Radius(0.1, 0.2, proof=Proof("branch"))]
    for one in shown:
        text = one._repr_html_()
        assert set(Tags(text).met) <= {"table", "caption", "tr", "th", "td", "img"}, type(one)
    assert "0.1</td>" in shown[-1]._repr_html_()
    assert "–" in Radius()._repr_html_()
    told = re.findall(r"robust at ([\d.]+)</th><td>([^ <]+) to ([^ <]+)<", dist.guarantee()._repr_html_())
    assert len(told) == 3
    for eps, *shares in told:
        assert shares == [f"{limit:.1%}" for limit in dist.guarantee().at(float(eps))]


def test_plot_returns_the_axes_it_drew_on() -> None:
    axes = make().plot(confidence=0.9)
    assert isinstance(axes, Axes)
    assert make("second").plot(axes) is axes
    assert len(axes.get_lines()) > 4


@pytest.mark.parametrize("ending", ["html", "md", "pdf", "tex"])
def test_a_distribution_writes_its_own_report(tmp_path: Path, ending: str) -> None:
    path = make().report(tmp_path / f"r.{ending}", make(HOSTILE, 20), eps="8/255", title="mine")
    assert path == tmp_path / f"r.{ending}"
    if ending == "pdf":
        assert path.read_bytes().startswith(b"%PDF")
        return
    text = path.read_text(encoding="utf-8")
    assert "not from a store" in text
    low = make().robust_accuracy(8 / 255).proven
    assert f"{low:.1%}".replace("%", r"\%" if ending == "tex" else "%") in text
    assert "<script>alert" not in text


def test_reports_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ending"):
        make().report(tmp_path / "r.docx")
    with pytest.raises(InputError, match="names that differ"):
        make().report(tmp_path / "r.html", make())
    with pytest.raises(InputError, match="can be written"):
        make().report(tmp_path / "no" / "r.html")
    with pytest.raises(InputError, match="expected"):
        make().report(tmp_path / "r.html", eps=-1)
