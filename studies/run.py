"""Runs the study of a paper, writes its rows as CSV files and its page with tables and pictures.

    python studies/run.py 001                  # `make study-001`: hours; stopped and begun again it goes on
    python studies/run.py 001 --small          # `SMALL=1 make study-001`: the same path on a small part
    python studies/run.py 001 --collect        # the rows that are there so far, and the page of them
    python studies/run.py 001 --page           # the page alone, from the CSV files that are kept

Stores, networks and rows in the making lie in build/studies/001, CSV files in studies/001/results, the page is
docs/papers/001.md. A small study keeps all of it in build/studies/small/001. Ends with 3 when the study is not
finished, with 1 when a statement of the page does not hold on its rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one torch thread per worker: more would only fight for the cores
sys.path.insert(0, str(Path(__file__).resolve().parent))
import index
from common import BUILD, ROOT, Page, read_csv, write_csv
from steps import PARTIAL, Command, Place, record

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=list(index.PAPERS))
    parser.add_argument("--small", action="store_true", help="a small part, in a folder of its own")
    parser.add_argument("--collect", action="store_true", help="run nothing: export what is there, write the page")
    parser.add_argument("--page", action="store_true", help="run and export nothing: write the page")
    parser.add_argument("--only", action="append", help="this step alone; may be given more than once")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--version", default="", help="with --collect: the code that made rows which come from elsewhere"
    )
    parser.add_argument("--folder", type=Path, help="where everything goes instead")
    options = parser.parse_args()
    module, place = load(options.paper), placed(options)
    code = 0 if options.page else worked(module, place, options)
    page_file = (
        place.results / "page.md" if options.small or options.folder else ROOT / "docs/papers" / f"{options.paper}.md"
    )
    if not read_csv(place.results / "runs.csv"):
        print(f"{place.results}: no rows yet, so no page", file=sys.stderr)
        return code or PARTIAL
    page: Page = module.page(place.results, page_file.parent / "pictures")
    page_file.parent.mkdir(parents=True, exist_ok=True)
    page_file.write_text(page.text(read_csv(place.results / "runs.csv")), encoding="utf-8")
    write_csv(place.results / "claims.csv", [vars(one) for one in page.claims])
    print(f"{page_file}: {len(page.claims)} statements", file=sys.stderr)
    if not options.small and not options.folder:
        index.write()
    untrue = [one for one in page.claims if one.holds is False]
    for one in untrue:
        print(f"does not hold: {one.paper} / {one.ours}", file=sys.stderr)
    return 1 if untrue else code


def load(paper: str) -> Any:
    """The module of a paper."""
    sys.path.insert(0, str(HERE / paper))
    spec = importlib.util.spec_from_file_location(f"study_{paper}", HERE / paper / "study.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def placed(options: argparse.Namespace) -> Place:
    """Where this run works."""
    if options.folder:
        return Place(options.folder / "work", options.folder, options.small, options.workers, options.version)
    if options.small:
        folder = BUILD / "small" / options.paper
        return Place(folder / "work", folder, True, 1)
    return Place(BUILD / options.paper, HERE / options.paper / "results", False, options.workers, options.version)


def worked(module: Any, place: Place, options: argparse.Namespace) -> int:
    """Runs the steps that are missing and collects their rows; the worst exit code."""
    steps = [step for step in module.STEPS if not (place.small and step.small is None)]
    if options.only:
        steps = [step for step in steps if step.name in options.only]
    if not place.small and not options.collect:
        hours = sum(step.hours for step in steps)
        print(
            f"{options.paper}: {len(steps)} steps, about {hours:.3g} hours on two cores if nothing is done",
            file=sys.stderr,
        )
    worst, stopped = 0, False
    for number, step in enumerate(steps, 1):
        if not options.collect and not stopped:
            print(f"step {number} of {len(steps)}: {step.name}, about {step.hours:g} h in all", file=sys.stderr)
            code = step.run(place)
            worst, stopped = max(worst, code), code == PARTIAL  # after a signal the rest is only collected
        found = step.collect(place)
        record(place, step, found)
        if not isinstance(step, Command) and (found is None or found["done"] < found["planned"]):
            worst = max(worst, PARTIAL)
    return worst


if __name__ == "__main__":
    sys.exit(main())
