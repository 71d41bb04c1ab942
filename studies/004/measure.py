"""Satisfaction, security and accuracy of four definitions of robustness on networks trained by recipes; it resumes.

    python studies/004/measure.py --networks FOLDER --output ROWS.jsonl [--names fashion-lr ...] [--images 100]

A network is FOLDER/NAME/NAME.onnx, as `radii train NAME --output FOLDER/NAME` writes it. At ε = 0.1 the first
`--images` test images are asked, at the other ε the first `--curve`. One line of JSON per network, ε and definition.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

import radii
from radii.train.recipe import Recipe, read_recipe
from radii.train.task import load_split

DATA = Path(os.environ.get("RADII_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
PROPERTIES = ("classification", "strong:eta=0.52,on=probability", "standard:delta=10", "lipschitz:constant=10")
REGIMES = ("baseline", "augment-uniform", "augment-fgsm", "pgd", "sr", "scr", "lr")
ROOTS = {"fashion": "fashion-mnist", "gtsrb": "gtsrb"}
NAMES = tuple(f"{data}-{regime}" for data in ROOTS for regime in REGIMES)
MAIN = 0.1  # the paper's ε


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=(0.02, 0.05, 0.1, 0.15, 0.2))
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--curve", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds per image and definition")
    options = parser.parse_args()
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.is_file() else []
    known = {(row["network"], row["epsilon"]) for row in map(json.loads, lines)}
    with options.output.open("a", encoding="utf-8") as file:
        for name in options.names:
            path = options.networks / name / f"{name}.onnx"
            todo = [size for size in options.epsilons if (name, size) not in known]
            if not todo or not path.is_file():
                continue
            net, test = radii.load_classifier(path), load_split(located(name), "test")
            accuracy = float((net.predict(test.x) == test.y).mean())
            below = None
            for size in sorted(todo):
                part = test[: options.images if size == MAIN else options.curve]
                wanted = below if below is not None and size != MAIN else None
                found = radii.measures(
                    net, part, epsilon=size, properties=PROPERTIES, seconds=options.seconds, below=wanted
                )
                for row in found.rows:
                    print(json.dumps({"network": name, "epsilon": size, "clean": accuracy, **asdict(row)}), file=file)
                file.flush()
                print(f"{name}, ε = {size:g}: done", flush=True)
                below = found if size != MAIN else below


def located(name: str) -> Recipe:
    """The recipe, with the folder of its data."""
    recipe = read_recipe(name)
    return recipe.model_copy(
        update={"data": recipe.data.model_copy(update={"root": str(DATA / ROOTS[name.split("-")[0]])})}
    )


if __name__ == "__main__":
    main()
