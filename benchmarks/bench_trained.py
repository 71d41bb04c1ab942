"""What training does to networks: radii before and after, and the definitions of robustness.

    python benchmarks/bench_trained.py distributions FOLDER [--source mnist] [--images 50] [--seconds 60]
    python benchmarks/bench_trained.py definitions FOLDER [--images 50] [--seconds 5] [--epochs 10]

`distributions`: one architecture with standard, adversarial (PGD) and certified (IBP) training, radii of the same test
images. `definitions`: the networks of Casadio et al. (2022), Tables 1 and 3, with accuracy, satisfaction and security.
Every part goes on where it was stopped, and prints its table; pictures are in the folder. Plain, pruned and Bayesian
networks with guarantees are `make study-002`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, machine, markdown

import radii
from radii.report import figures
from radii.report.style import blank
from radii.train.recipe import read_recipe
from radii.train.task import load_split

# Title, recipe, changes: one architecture, so that radii differ by training alone.
Training = tuple[str, str, dict[str, Any]]  # what the table calls it, the recipe, and what is changed in it
# Data -> trainings of one architecture; those on MNIST are of mnist_nn, as in the JAIR paper's Figure 8.
TRAININGS: dict[str, tuple[Training, ...]] = {
    "mnist5k": (
        ("standard", "mnist5k-standard", {}),
        ("adversarial (PGD, ε = 0.1)", "mnist5k-pgd", {}),
        (
            "certified (IBP, ε = 0.1)",
            "mnist5k-ibp",
            {"architecture": {"name": "dense:50x2", "batch_norm": True, "initialisation": "ibp"}},
        ),
    ),
    "mnist": (
        ("standard", "mnist_nn-fgsm", {"name": "mnist_nn-standard", "method": "standard"}),
        ("adversarial (FGSM, ε = 0.2)", "mnist_nn-fgsm", {}),
        (
            "certified (IBP, ε = 0.1)",
            "mnist_nn-fgsm",
            {
                "name": "mnist_nn-ibp",
                "architecture": {"name": "mnist_nn", "batch_norm": True, "initialisation": "ibp"},
                "method": {"name": "ibp", "epsilon": 0.12, "kappa": [1, 0.2]},
                "optimiser": {"learning_rate": 0.003, "clip": 10},
                "schedule": {"ramp": [0, 6], "at": [14, 18], "factor": 0.2},
            },
        ),
    ),
}
PUBLISHED = {  # accuracy (Table 3); satisfaction of CR, SR, LR (Table 1, networks of 30 neurons)
    "fashion": {
        "baseline": (88.2, 1.5, 0.5, 0.0),
        "augment-uniform": (88.6, None, None, None),
        "augment-fgsm": (88.8, None, None, None),
        "pgd": (85.1, None, None, None),
        "scr": (88.1, 2.0, 1.0, 0.0),
        "sr": (88.2, 2.0, 65.8, 0.0),
        "lr": (86.6, 34.0, 100.0, 0.0),
    },
    "gtsrb": {
        "baseline": (92.4, 0.5, 0.0, 0.0),
        "augment-uniform": (92.8, None, None, None),
        "augment-fgsm": (94.5, None, None, None),
        "pgd": (83.5, None, None, None),
        "scr": (91.9, 1.0, 0.0, 0.0),
        "sr": (93.3, 3.0, 24.0, 0.0),
        "lr": (93.1, 4.5, 97.0, 0.0),
    },
}
PROPERTIES = ("classification", "strong:eta=0.52,on=probability", "standard:delta=10", "lipschitz:constant=10")


def main() -> None:
    """One of the two parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("distributions", "definitions"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, help="test images; 50")
    parser.add_argument("--seconds", type=float, help="CPU seconds of the engine per question: 60 and 5")
    parser.add_argument("--epochs", type=int, default=10, help="for definitions, instead of the paper's 100")
    parser.add_argument("--source", choices=sorted(TRAININGS), default="mnist5k", help="for distributions")
    parser.add_argument("--gtsrb-epochs", type=int, default=1000, help="for definitions on GTSRB")
    parser.add_argument("--only", default="", help="for definitions: recipes whose names hold this")
    parser.add_argument("--train-only", action="store_true", help="for definitions: networks, which a study measures")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    usual = {"distributions": (50, 60.0), "definitions": (50, 5.0)}[options.part]
    options.images = options.images or usual[0]
    options.seconds = options.seconds or usual[1]
    options.folder.mkdir(parents=True, exist_ok=True)
    {"distributions": distributions, "definitions": definitions}[options.part](options)
    print(json.dumps(machine()))


def distributions(options: argparse.Namespace) -> None:
    """Radii, gaps and cost of three trainings on the same test images."""
    place = {"root": options.data / "mnist"} if options.source == "mnist" else {}
    test = radii.load_dataset(options.source, split="test", **place)[: options.images]
    found = []
    for title, recipe, changes in TRAININGS[options.source]:
        if place:
            changes = {**changes, "data": {"source": "mnist", "root": str(place["root"])}}
        folder = options.folder / changes.get("name", recipe)
        run = radii.train(recipe, output=folder, resume=True, **changes)
        store = options.folder / "radii.db"
        dist = radii.distribution(run.classifier, test, seconds=options.seconds, store=store, progress=False)
        found.append((title, dist))
        print(f"{title}: {len(dist)} radii", flush=True)
    rows = []
    for title, dist in found:
        told, mean, middle = dist.summary(), dist.mean(), dist.quantile(0.5)
        p = dist.compare(found[0][1]).test.p_value if title != found[0][0] else None
        rows.append(
            [
                title,
                f"{told.correct} of {told.n}",
                _ends(mean),
                _ends(middle),
                "-" if p is None else f"{p:.1g}",
                f"{told.closed}",
                "-" if told.mean_gap is None else f"{told.mean_gap:.4f}",
                f"{np.median(dist.cpu_seconds[dist.correct]):.2f}",
                f"{np.mean(dist.cpu_seconds[dist.correct]):.2f}",
            ]
        )
    heads = [
        "training",
        "right",
        "mean radius",
        "median radius",
        "p",
        "closed",
        "mean gap",
        "median CPU s",
        "mean CPU s",
    ]
    print(markdown(heads, rows))
    figure = blank(10.4, 4.2)
    left, right = figure.subplots(1, 2)
    named = [replace(dist, name=title) for title, dist in found]
    figures.robust_accuracy_curve(named, left)
    figures.time_cdf(named, right)
    figures.save(figure, options.folder / "before_after.png")


def _ends(found: Any) -> str:
    return f"{found.lower:.4f} to {'?' if found.upper is None else format(found.upper, '.4f')}"


def definitions(options: argparse.Namespace) -> None:
    """Accuracy, satisfaction and security of the networks of Casadio et al., with fewer epochs and larger steps."""
    rows = []
    for source, trainings in PUBLISHED.items():
        for training, published in trainings.items():
            name = f"{source}-{training}"
            kept = options.folder / name / f"measured-{options.images}.json"
            if not kept.exists():
                if options.only not in name:
                    continue
                found = defined(name, kept.parent, options)
                if options.train_only:
                    continue
                kept.write_text(json.dumps(found) + "\n")
            told = json.loads(kept.read_text())
            cells = [source, training, f"{100 * told['accuracy']:.1f}"]
            for row in told["rows"]:
                proven, ceiling = 100 * row["proven"], 100 * row["not_refuted"]
                satisfied = f"{proven:.0f}" if proven == ceiling else f"{proven:.0f} to {ceiling:.0f}"
                cells.append(f"{satisfied} / {100 * row['security']:.0f}")
            shown = ["-" if one is None else f"{one:g}" for one in published]
            rows.append([*cells, f"{shown[0]}; {', '.join(shown[1:])}", f"{told['cpu_seconds']:.0f}"])
    heads = ["data", "training", "accuracy %", "CR", "SCR", "SR", "LR", "published accuracy; CR, SR, LR", "CPU s"]
    print(markdown(heads, rows))


def defined(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Trains one network and takes its measures on test images spread evenly over the split."""
    recipe = read_recipe(name)
    root = {"fashion-mnist": "fashion-mnist", "gtsrb": "gtsrb"}[recipe.data.source]
    # The GTSRB images at hand are a twentieth of the paper's: ten times its epochs, half of its steps.
    epochs = options.gtsrb_epochs if root == "gtsrb" else options.epochs
    changes = {
        "epochs": epochs,
        "optimiser": {"learning_rate": recipe.optimiser.learning_rate * max(1.0, 100 / epochs)},
        "evaluation": {"epsilon": 0.1, "inputs": 200},
        "data": {**recipe.data.model_dump(exclude_unset=True), "root": str(options.data / root)},
    }
    run = radii.train(name, output=folder, resume=True, **changes)
    if options.train_only:
        return {}
    test = load_split(run.recipe, "test")
    part = test[np.linspace(0, len(test) - 1, options.images).astype(int)]
    found = radii.measures(
        run.classifier, part, epsilon=0.1, properties=PROPERTIES, seconds=options.seconds, samples=1, restarts=1
    )
    return {
        "accuracy": run.card["accuracies"]["test"]["clean"],
        "rows": [asdict(row) for row in found.rows],
        "cpu_seconds": run.card["cpu_seconds"],
    }


if __name__ == "__main__":
    main()
