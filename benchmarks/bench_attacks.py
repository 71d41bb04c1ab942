"""The minimum-norm attack against published radii, and beside adv-lib's and Foolbox's attacks.

    python benchmarks/bench_attacks.py [--quick] [--part jair|peers] [--networks NAME...] [--effort standard]
                                       [--images 50] [--data FOLDER] [--out FILE.json]

`jair`: for every network, the share of rows with status `ok` whose upper end the attack meets (within 0.002), and CPU
seconds per image. Rows below the published *lower* end are counted too: each is a replayed refutation of that row.
`peers`: median distances at about equal numbers of gradient evaluations (rows of backward passes), all points replayed
in onnxruntime and measured in float64. adv-lib (`pip install --no-deps adv-lib tqdm`) and Foolbox are left out when
they are absent; so are the Brendel-Bethge attacks, which take minutes. One torch thread.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import platform
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import DATA

from radii.attacks.exact import distances, settle
from radii.attacks.min_norm import minimum_norm
from radii.models import Classifier, load_classifier
from radii.problem import Norm

PEER_NETWORKS = ("mnist-net_256x2", "mnist_relu_3_50", "convSmallRELU__DiffAI")
EFFORTS = ("fast", "standard")  # peers get as many gradient evaluations as these take
Peer = Callable[[Any, torch.Tensor, torch.Tensor, Norm, int], torch.Tensor]


def mnist(folder: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first training images as rows in [0, 1], and their labels."""
    with gzip.open(folder / "mnist" / "train-images-idx3-ubyte.gz") as file:
        x = np.frombuffer(file.read(16 + 784 * count), np.uint8)[16:].reshape(-1, 784)
    with gzip.open(folder / "mnist" / "train-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(8 + count), np.uint8)[8:]
    return (x / 255).astype(np.float32), y.astype(np.int64)


def jair(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One result per network, and one for all of them together."""
    with open(options.data / "jair" / "results.csv") as file:
        rows = [r for r in csv.DictReader(file) if r["dataset"] == "MNIST" and r["status"] == "ok"]
    names = options.networks or sorted({r["network"] for r in rows})
    results, met, total = [], 0, 0
    print(f"{'network':24}{'rows':>6}{'met':>8}{'median/published':>18}{'below lower':>13}{'CPU s/image':>13}")
    for name in names:
        mine = [r for r in rows if r["network"] == name][: 10 if options.quick else None]
        result = jair_network(name, mine, options)
        results.append(result)
        met, total = met + round(result["met"] * len(mine)), total + len(mine)
        print(
            f"{name:24}{len(mine):6}{result['met']:8.3f}{result['median_ratio']:18.3f}"
            f"{result['below_lower']:13}{result['cpu_seconds_per_image']:13.3f}",
            flush=True,
        )
    print(f"{'all':24}{total:6}{met / max(1, total):8.3f}")
    return [*results, {"network": "all", "rows": total, "met": met / max(1, total)}]


def jair_network(name: str, rows: list[dict[str, str]], options: argparse.Namespace) -> dict[str, Any]:
    """How the attack does on the rows of one network; images that have several rows are attacked once."""
    network = load_classifier(options.data / "jair" / "networks" / f"{name}.onnx")
    indices = sorted({int(r["dataset_index"]) for r in rows})
    x, y = mnist(options.data, indices[-1] + 1)
    start = time.process_time()
    found = minimum_norm(network, x[indices], y[indices], effort=options.effort)
    spent = time.process_time() - start
    ours = dict(zip(indices, found.distances))
    mine = np.array([ours[int(r["dataset_index"])] for r in rows])
    upper = np.array([float(r["upper"]) for r in rows])
    lower = np.array([float(r["lower"]) for r in rows])
    missed = [int(r["dataset_index"]) for r, a, b in zip(rows, mine, upper) if a > b + 0.002]
    return {
        "network": name,
        "rows": len(rows),
        "met": float(np.mean(mine <= upper + 0.002)),
        "median_ratio": float(np.median(mine / upper)),
        "below_lower": int(np.sum(mine < lower)),
        "refuted": [int(r["dataset_index"]) for r, a, b in zip(rows, mine, lower) if a < b],
        "missed": missed,
        "cpu_seconds_per_image": spent / len(indices),
        "evaluations_per_image": found.evaluations / len(indices),
    }


class _Counted(torch.autograd.Function):
    """The identity; counts the rows of every backward pass."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, counter: list[int]) -> torch.Tensor:
        ctx.counter = counter
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.counter[0] += grads[0].shape[0]
        return grads[0], None


class Counting(torch.nn.Module):
    """The logits of a classifier, with a count of gradient evaluations."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier, self.counter = classifier, [0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits of a batch."""
        return _Counted.apply(self.classifier.logits(x), self.counter)


def adversarial_library() -> dict[str, Peer]:
    """adv-lib's minimum-norm attacks; it imports plotting and vision packages that its attacks do not use."""
    vision, plots = types.ModuleType("torchvision"), types.ModuleType("visdom")
    vision.models = types.ModuleType("torchvision.models")  # type: ignore[attr-defined]
    vision.transforms = types.ModuleType("torchvision.transforms")  # type: ignore[attr-defined]
    for name, module in (("torchvision", vision), ("torchvision.models", vision.models), ("visdom", plots)):
        sys.modules.setdefault(name, module)
    try:
        from adv_lib import attacks
        from adv_lib.attacks.auto_pgd import minimal_apgd
    except ImportError as error:
        print(f"adv-lib is left out: {error}")
        return {}
    reach = {"linf": 0.5, "l2": 5.0, "l1": 50.0}
    return {
        "adv-lib FMN": lambda m, x, y, n, k: attacks.fmn(m, x, y, norm=n.order, steps=k),
        "adv-lib FMN α=10": lambda m, x, y, n, k: attacks.fmn(m, x, y, norm=n.order, steps=k, α_init=10.0),
        "adv-lib DDN": lambda m, x, y, n, k: attacks.ddn(m, x, y, steps=k, levels=None),
        "adv-lib ALMA": lambda m, x, y, n, k: attacks.alma(m, x, y, num_steps=k, distance=n.name),
        "adv-lib PDPGD": lambda m, x, y, n, k: attacks.pdpgd(m, x, y, norm=n.order, num_steps=k),
        "adv-lib APGD-min": lambda m, x, y, n, k: minimal_apgd(
            m, x, y, norm=n.order, max_eps=reach[n.name], n_iter=max(5, k // 10), binary_search_steps=10
        ),
        "adv-lib FAB": lambda m, x, y, n, k: attacks.fab(m, x, y, norm=n.order, n_iter=max(2, k // 10)),
        "adv-lib FAB-T": lambda m, x, y, n, k: attacks.fab(
            m, x, y, norm=n.order, n_iter=max(2, k // 9), restarts=9, targeted_restarts=True
        ),
    }


def foolbox_library(classifier: Classifier) -> dict[str, Peer]:
    """Foolbox's minimum-norm attacks."""
    try:
        import foolbox
    except ImportError as error:
        print(f"Foolbox is left out: {error}")
        return {}

    def run(make: Callable[[Norm, int], Any]) -> Peer:
        def attack(m: Any, x: torch.Tensor, y: torch.Tensor, norm: Norm, steps: int) -> torch.Tensor:
            bounds = (classifier.domain.low, classifier.domain.high)
            model = foolbox.PyTorchModel(m.eval(), bounds=bounds, device="cpu")
            raw, _, _ = make(norm, steps)(model, x, foolbox.criteria.Misclassification(y), epsilons=None)
            return raw

        return attack

    f = foolbox.attacks
    fmn = {"linf": f.LInfFMNAttack, "l2": f.L2FMNAttack, "l1": f.L1FMNAttack}
    return {
        "Foolbox FMN": run(lambda n, k: fmn[n.name](steps=k)),
        "Foolbox DDN": run(lambda n, k: f.DDNAttack(steps=k)),
    }


FITS = {"adv-lib DDN": ("l2",), "Foolbox DDN": ("l2",), "adv-lib ALMA": ("l2", "l1")}


def peers(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One result for each network, norm, number of evaluations and attack."""
    results: list[dict[str, Any]] = []
    names = options.networks or (PEER_NETWORKS[:1] if options.quick else PEER_NETWORKS)
    for name in names:
        network = load_classifier(options.data / "jair" / "networks" / f"{name}.onnx")
        x, y = mnist(options.data, 4 * options.images + 50)
        right = np.flatnonzero(network.predict(x) == y)[: options.images]
        x, y = x[right].reshape(-1, *network.input_shape), y[right]
        for norm in (Norm.of("linf"), Norm.of("l2"), Norm.of("l1")):
            for effort in EFFORTS[: 1 if options.quick else None]:
                results += compare(network, x, y, norm, effort)
    return results


def compare(network: Classifier, x: np.ndarray, y: np.ndarray, norm: Norm, effort: str) -> list[dict[str, Any]]:
    """All attacks on the same images, with about the same number of gradient evaluations."""
    start = time.process_time()
    ours = minimum_norm(network, x, y, norm, effort=effort)
    spent, budget = time.process_time() - start, round(ours.evaluations / len(x))
    print(f"\n{network.name}, {norm}, about {budget} gradient evaluations an image, {len(x)} images")
    print(f"{'attack':24}{'median':>10}{'mean':>10}{'found':>7}{'not better':>12}{'gradients':>11}{'CPU s':>8}")
    rows = [line(f"radii {effort}", ours.distances, ours.distances, ours.evaluations, spent, len(x))]
    for name, attack in {**adversarial_library(), **foolbox_library(network)}.items():
        if norm.name not in FITS.get(name, (norm.name,)):
            continue
        model = Counting(network).eval()
        torch.manual_seed(0)
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                points = attack(model, torch.from_numpy(x), torch.from_numpy(y), norm, budget)
        except Exception as error:  # a peer that does not run is named, not hidden
            print(f"{name:24}does not run here: {type(error).__name__}: {str(error)[:80]}")
            continue
        spent = time.process_time() - start
        found = measured(network, x, y, points.detach().numpy().astype(np.float32), norm)
        rows.append(line(name, found, ours.distances, model.counter[0], spent, len(x)))
    head = {"network": network.name, "norm": str(norm), "budget": budget, "images": len(x)}
    return [{**head, **row} for row in rows]


def measured(network: Classifier, x: np.ndarray, y: np.ndarray, points: np.ndarray, norm: Norm) -> np.ndarray:
    """The distances of a peer's points, replayed (and nudged) as ours are; infinite where nothing breaks."""
    flat, centers = points.reshape(len(x), -1), x.reshape(len(x), -1)
    good, _ = settle(network, centers, y, np.full(len(y), -1), flat)
    return distances(norm, good, centers)


def line(name: str, found: np.ndarray, ours: np.ndarray, gradients: int, spent: float, count: int) -> dict[str, Any]:
    """One printed line, and the same as a record; "not better" is the share of images on which radii is as near."""
    some = found[np.isfinite(found)]
    record = {
        "attack": name,
        "median": float(np.median(found)),
        "mean_of_found": float(some.mean()) if len(some) else None,
        "found": len(some) / count,
        "not_better": float(np.mean(ours <= found * (1 + 1e-3))),
        "gradients_per_image": gradients / count,
        "cpu_seconds_per_image": spent / count,
    }
    mean = f"{record['mean_of_found']:10.4f}" if len(some) else f"{'-':>10}"
    print(
        f"{name:24}{record['median']:10.4f}{mean}{record['found']:7.2f}{record['not_better']:12.2f}"
        f"{record['gradients_per_image']:11.0f}{record['cpu_seconds_per_image']:8.3f}",
        flush=True,
    )
    return record


def main() -> int:
    """Run the parts asked for and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ten rows per network, one network beside the peers")
    parser.add_argument("--part", choices=("jair", "peers", "all"), default="all")
    parser.add_argument("--networks", nargs="*", default=[])
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.images = min(options.images, 10)
    torch.set_num_threads(1)
    result: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "effort": options.effort}
    if options.part != "peers":
        result["jair"] = jair(options)
    if options.part != "jair":
        result["peers"] = peers(options)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
