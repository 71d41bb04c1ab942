"""Runs study files of a paper, one after the other, and writes their radii as CSV files beside them.

    python studies/run.py studies/001/shallow-train.yaml [more study files] [--workers 2]

`$RADII_DATA` in a study file is the folder of the data (`../shared/data` unless it is set). Results are kept in
build/studies/, so that a run that was stopped goes on; a study whose CSV file is there already is not run again,
unless `--again` is given. `--images N` and `--seconds S` make a study smaller: all its files then go to `--folder`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml
from common import BUILD, DATA

from radii.cli.main import run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="+", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--images", type=int, help="only so many images")
    parser.add_argument("--seconds", type=float, help="CPU seconds per image instead of the study's")
    parser.add_argument("--folder", type=Path, help="where stores and CSV files go")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    if (options.images or options.seconds) and options.folder is None:
        parser.error("--images, --seconds: expected --folder too: a smaller study must not replace the whole one")
    for file in options.studies:
        code = one(file, options)
        if code:
            return code
    return 0


def one(file: Path, options: argparse.Namespace) -> int:
    """Runs a study and exports its radii; 0 when all is done."""
    paper, folder = file.resolve().parent.name, options.folder or file.resolve().parent
    target = folder / f"{file.stem}.csv"
    if target.is_file() and not options.again:
        print(f"{target}: there already", file=sys.stderr)
        return 0
    body = yaml.safe_load(file.read_text(encoding="utf-8").replace("$RADII_DATA", str(DATA)))
    if options.images:
        body["data"]["indices"] = f"0:{options.images}"
    if options.seconds:
        body["budget"]["seconds"] = options.seconds
    place = (options.folder or BUILD / paper) / file.name
    place.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    place.write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
    store = str(place.with_suffix(".db"))
    code = run(["run", str(place), "--store", store, "--workers", str(options.workers)])
    if code:
        return code
    return run(["export", store, "--what", "radii", "--format", "csv", "-o", str(target)])


if __name__ == "__main__":
    sys.exit(main())
