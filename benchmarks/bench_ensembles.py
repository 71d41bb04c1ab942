"""Ensembles past the paper: value(ε) of whole games, what the mix buys, and random games against brute force.

    python benchmarks/bench_ensembles.py large [--images N] [--seconds S] [--workers W]
    python benchmarks/bench_ensembles.py ten [--images N] [--seconds S] [--workers W]
    python benchmarks/bench_ensembles.py mixes [--images N] [--seconds S] [--workers W]
    python benchmarks/bench_ensembles.py random [--count N]

`large`: four MNIST networks of the JAIR study and one trained by the recipe mnist5k-standard, test images, L∞, every ε
up to 0.1. `ten`: ten small networks trained here, every ε up to 0.1. `mixes`: three ensembles of three trained networks
each; the proven loss of the defender's mix against that of the best single network, with a picture. `random`: games of
linear and tiny ReLU members in L1, L2 and L∞ with exact joint radii of all sets; counts values outside the interval.
Stores and networks lie in build/ensembles: a run that was stopped goes on. Ends with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, ROOT, machine, markdown

import radii
from radii.models import Classifier, load_classifier

LIMIT = 0.1  # the largest ε
BAND = 0.05  # mean width of the value's interval over ε that is asked for
FOLDER = ROOT / "build" / "ensembles"
JAIR = ("mnist-net_256x2", "mnist-net", "mnist_relu_3_50", "mnist_nn")
TRIOS = {
    "alike": [("mnist5k-standard", seed) for seed in (0, 1, 2)],
    "adversarial": [("mnist5k-pgd", seed) for seed in (0, 1, 2)],
    "mixed": [("mnist5k-standard", 0), ("mnist5k-fgsm", 0), ("mnist5k-pgd", 0)],
}


def main() -> int:
    """One of the parts; 1 when its bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("large", "ten", "mixes", "random"))
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds per radius")
    parser.add_argument("--width", type=float, default=BAND / 2, help="stop once the mean band is so narrow")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--count", type=int, default=200, help="random games")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.what == "random":
        return random_games(options.count)
    return {"large": large, "ten": ten, "mixes": mixes}[options.what](options)


def trained(recipe: str, seed: int, **changes: Any) -> Classifier:
    """The network of a shipped recipe, trained once and kept."""
    folder = FOLDER / "-".join([recipe, str(seed), *(str(v).replace(":", "_") for v in changes.values())])
    if not (folder / "network.onnx").is_file():
        run = radii.train(recipe, seed=seed, **changes)
        folder.mkdir(exist_ok=True)
        run.classifier.save(folder / "network.onnx")
    return load_classifier(folder / "network.onnx", name=folder.name)


def play(name: str, nets: list[Classifier], data: Any, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The game of an ensemble, kept in a store, and what it cost."""
    start, own = time.monotonic(), time.process_time()

    def tell(found: int, asked: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {found} of {asked} radii, {time.monotonic() - start:.0f} s", end="", file=sys.stderr)

    game = radii.ensemble(
        nets,
        data,
        limit=LIMIT,
        seconds=options.seconds,
        width=options.width,
        store=FOLDER / f"{name}.db",
        workers=options.workers,
        progress=tell,
    )
    print(file=sys.stderr)
    wall, band = time.monotonic() - start, game.width(LIMIT)
    own = time.process_time() - own  # of the double oracle and the curve: searches run in the workers' processes
    sets = sum(len(point.asked) for point in game.points)
    facts = {
        "members": len(nets),
        "points": len(data),
        "radii": sets,
        "of all sets": len(data) * (2 ** len(nets) - 1),
        "mean band": round(band, 4),
        "CPU s": round(game.cpu_seconds + own),
        "wall s": round(wall),
    }
    return game, facts


def large(options: argparse.Namespace) -> int:
    """Five MNIST networks."""
    nets = [load_classifier(options.data / "jair" / "networks" / f"{name}.onnx") for name in JAIR]
    nets.append(trained("mnist5k-standard", 0))
    data = radii.load_dataset("mnist", split="test", root=options.data / "mnist")[: options.images]
    return told("large", *play(f"large-{options.images}", nets, data, options))


def ten(options: argparse.Namespace) -> int:
    """Ten small networks."""
    sizes = ("dense:20x2", "dense:30x2")
    nets = [trained("mnist5k-standard", k, architecture=sizes[k % 2], epochs=4) for k in range(10)]
    data = radii.load_dataset("mnist5k", split="test")[: options.images]
    return told("ten", *play(f"ten-{options.images}", nets, data, options))


def told(name: str, game: Any, facts: dict[str, Any]) -> int:
    """Prints what a game says; 1 when its band is too wide or it took longer than 20 minutes on two cores."""
    print(markdown(list(facts), [[str(v) for v in facts.values()]]))
    sizes = [round(LIMIT * k / 10, 6) for k in range(11)]
    rows = [_row(game, size) for size in sizes]
    print(markdown(["ε", "value", "best single", "uniform", *game.names], rows))
    kept = {"machine": machine(), "load": os.getloadavg(), **facts, "rows": rows}
    (FOLDER / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    figure(name, game)
    return 0 if facts["mean band"] <= BAND and facts["CPU s"] <= 2 * 20 * 60 else 1


def _row(game: Any, size: float) -> list[str]:
    low, high = game.value(size)
    mix = game.mix(size)
    return [f"{size:g}", f"{low:.3f} to {high:.3f}", f"{mix.single:.3f}", f"{mix.uniform:.3f}"] + [
        f"{w:.2f}" for w in mix.weights
    ]


def figure(name: str, game: Any) -> None:
    """The picture of a game."""
    from radii.report.ensembles import game_figure
    from radii.report.style import save

    save(game_figure(game, LIMIT), FOLDER / f"{name}.png")


def mixes(options: argparse.Namespace) -> int:
    """What the mix buys on three trained ensembles."""
    data, rows = radii.load_dataset("mnist5k", split="test")[: options.images], []
    for name, recipes in TRIOS.items():
        nets = [trained(recipe, seed) for recipe, seed in recipes]
        game, facts = play(f"mix-{name}-{options.images}", nets, data, options)
        for size in (0.01, 0.02, 0.03, 0.05, 0.08):
            mix, low = game.mix(size), game.value(size)[0]
            weights = " / ".join(f"{w:.2f}" for w in mix.weights)
            rows.append([name, f"{size:g}", f"{low:.3f} to {mix.value:.3f}", f"{mix.single:.3f}"])
            rows[-1] += [f"{mix.uniform:.3f}", f"{mix.bought:.3f}", weights]
        figure(f"mix-{name}", game)
        print(name, facts, file=sys.stderr)
    table = markdown(["ensemble", "ε", "value with the mix", "best single", "uniform", "bought", "mix"], rows)
    (FOLDER / "mixes.md").write_text(table + "\n")
    print(table)
    return 0


def random_games(count: int) -> int:
    """Random games whose exact value is found by brute force over all sets."""
    sys.path.insert(0, str(ROOT))
    from tests.ensembles.toys import between, exact_joint_radii, exact_value, random_game

    from radii.problem import Norm

    kept, outside, sizes_seen, widths, attacks = FOLDER / "random.json", 0, 0, [], 0
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
    for seed in range(count):
        norm = ("linf", "l2", "l1")[seed % 3]
        if str(seed) not in known:
            members, data = random_game(seed)
            game = radii.ensemble(members, data, norm=norm, seconds=5, tolerance=1e-3)
            exact = [exact_joint_radii(members, one, Norm.of(norm)) for one in data]
            found = {"outside": 0, "widths": [], "attacks": 0}
            for size in between([r for one in exact for r in one.values()]):
                low, high = game.value(size)
                true, attack = exact_value(exact, len(members), size), game.attack(size)
                found["outside"] += not low - 1e-9 <= true <= high + 1e-9
                found["attacks"] += len(attack.probabilities) > len(members) or abs(attack.value - low) > 1e-9
                found["widths"].append(high - low)
            known[str(seed)] = found
            kept.write_text(json.dumps(known))
        outside += known[str(seed)]["outside"]
        attacks += known[str(seed)]["attacks"]
        sizes_seen += len(known[str(seed)]["widths"])
        widths += known[str(seed)]["widths"]
        if sys.stderr.isatty():
            print(f"\r{seed + 1} of {count} games, {outside} values outside", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(f"{count} games, {sizes_seen} sizes: {outside} values outside their interval, {attacks} attacks that are")
    print(f"too many or get less than the low end; mean width {np.mean(widths):.4f}")
    return 1 if outside or attacks else 0


if __name__ == "__main__":
    sys.exit(main())
