"""The page that answers what radii confirmed, refined and overturned, from the claims of all studies."""

from __future__ import annotations

from common import ROOT, markdown, read_csv

PAPERS = {
    "000": "Bosman, Münz, Hoos, van Rijn: Examining Per-Class Performance Bias via Robustness Distributions",
    "001": "Bosman, Berger, Hoos, van Rijn: Robustness Distributions in Neural Network Verification (JAIR 2025)",
    "002": "Global Adversarial Robustness Guarantees for Neural Networks",
    "003": "Gross, Jansen, Pérez, Raaijmakers: Robustness Verification for Classifier Ensembles",
    "004": "Casadio et al.: Neural Network Robustness as a Verification Property (CAV 2022)",
}
PARTS = {
    "agrees": ("Confirmed", "What the papers say and the measurements here say too."),
    "refined": ("Refined", "What holds, with more to say: tighter, cheaper, or under conditions."),
    "differs": ("Overturned", "What the measurements here contradict."),
    "new": ("New", "What the papers leave to future work."),
}


def write() -> None:
    """Writes docs/papers/index.md."""
    about = (
        "Five papers gave radii its questions. Each has a study here that measures its main tables and figures again: "
        "`make study-001` runs one (hours on two cores; it can be stopped and goes on), writes its rows into "
        "`studies/` and its page beside this one. Every line below is taken from those rows. Where a study is not "
        "complete, its page says so on top, and what was not measured is absent here."
    )
    lines = ["# What did radii confirm, refine and overturn?", about]
    claims, table = [], []
    for paper, title in PAPERS.items():
        results = ROOT / "studies" / paper / "results"
        runs = read_csv(results / "runs.csv")
        page = ROOT / "docs" / "papers" / f"{paper}.md"
        name = f"[{title}]({paper}.md)" if page.is_file() and runs else title
        done, planned = (sum(int(row[key]) for row in runs) for key in ("done", "planned"))
        table.append((paper, name, f"{done:,} of {planned:,} units" if runs else "not run yet"))
        claims += [(paper, row) for row in read_csv(results / "claims.csv")]
    table.append(("001", "[The published record, checked](record.md)", "complete"))
    lines.append(markdown(("", "paper", "done"), table))
    for verdict, (title, about) in PARTS.items():
        mine = [(paper, row["paper"], row["ours"]) for paper, row in claims if row["verdict"] == verdict]
        if mine:
            lines += [f"## {title}", about, markdown(("", "the papers", "radii"), mine)]
    (ROOT / "docs" / "papers" / "index.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
