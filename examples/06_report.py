"""From a study file to a report: run it, read the store, and write a page, a PDF and a model card."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from radii.report import figures
from radii.report.card import write_card
from radii.report.content import gather
from radii.report.documents import write_pdf
from radii.report.page import Options, datasets_for, write_page

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
study = folder / "digits.yaml"
study.write_text(
    """
name: digits
classifiers: ["zoo:mnist5k-standard", "zoo:mnist5k-conv"]
data: {source: mnist5k, split: test, indices: "0:12"}
budget: {seconds: 0.5}
""",
    encoding="utf-8",
)
store = folder / "digits.db"
subprocess.run([sys.executable, "-m", "radii.cli.main", "run", study, "--store", store], check=True)

content = gather([store], title="Two networks on twelve digits")
options = Options(eps=0.02, data=datasets_for(content, "mnist5k"))
print(write_page(content, folder / "report.html", options))
print(write_pdf(content, folder / "report.pdf", options))
print(write_card(store, folder / "card.md", eps=0.02).splitlines()[0])
axes = figures.instance_scatter(list(content.distributions.values()))
figures.save(axes.figure, folder / "06_report.png")
