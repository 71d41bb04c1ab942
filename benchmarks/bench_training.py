"""Training: what a step costs beside a plain loop, and the field's reference figures rebuilt.

    python benchmarks/bench_training.py speed [--steps N]
    python benchmarks/bench_training.py reference FOLDER [--rows NAMES] [--seeds 0,1,2] [--certify N] [--seconds S]
    python benchmarks/bench_training.py table

`speed` times every loss, per step, against code that does the same arithmetic without recipes, layers or losses of
ours. `reference` trains the rows below, one folder per row and seed, and proves test images with the engine. What is
measured is kept in docs/training.json, with recipe, seed and commit; rows and seeds that it holds are not measured
again, and a run that was stopped goes on from its folder. `table` prints what is kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from common import DATA, ROOT, keep, machine, markdown
from torch import Tensor, nn

import radii
from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.prepare import working
from radii.models import load_classifier
from radii.problem import Classification, Domain, Norm, Query, Verdict
from radii.train.architectures import build
from radii.train.from_graph import trainable
from radii.train.from_torch import read
from radii.train.methods.base import State, box, make
from radii.train.methods.pgd import attacked as pgd_points
from radii.train.recipe import read_recipe

TESTS = 10_000  # test images of MNIST
KEPT = ROOT / "docs" / "training.json"
# Row -> recipe, changes, the ε that is certified (None: only attacked), and what was published.
ROWS: dict[str, tuple[str, dict[str, Any], float | None, str]] = {
    "ibp-0.1": ("convSmall-ibp-0.1", {}, 0.1, "97.8 / 96.2 / 95.5 (DiffAI)"),
    "crown-ibp-0.1": ("convSmall-crown_ibp-0.1", {}, 0.1, "97.8 / 96.2 / 95.5 (DiffAI)"),
    "sabr-0.1": ("convSmall-sabr-0.1", {}, 0.1, "above IBP in clean accuracy"),
    "mtl-ibp-0.1": ("convSmall-mtl_ibp-0.1", {}, 0.1, "above IBP in clean accuracy"),
    "ibp-0.3": ("convSmall-ibp-0.3", {}, 0.3, "96.9 / 93.6 / 89.1 (DiffAI)"),
    "crown-ibp-0.3": ("convSmall-crown_ibp-0.3", {}, 0.3, "96.9 / 93.6 / 89.1 (DiffAI)"),
    "sabr-0.3": ("convSmall-sabr-0.3", {}, 0.3, "above IBP in clean accuracy"),
    "mtl-ibp-0.3": ("convSmall-mtl_ibp-0.3", {}, 0.3, "above IBP in clean accuracy"),
    "mnist_nn-fgsm": ("mnist_nn-fgsm", {}, None, "91.0; PGD 0.2: 44.4, 0.3: 8.1 (JAIR, Table 14)"),
    "mnist_nn-pgd": ("mnist_nn-pgd", {"epochs": 20}, None, "80.2; PGD 0.2: 62.3, 0.3: 51.9 (JAIR, Table 14)"),
    "mnist_nn-pgd-ramp": (
        "mnist_nn-pgd",
        {"epochs": 20, "schedule": {"ramp": [0, 5], "every": 9, "factor": 0.73}},
        None,
        "80.2; PGD 0.2: 62.3, 0.3: 51.9 (JAIR, Table 14)",
    ),
}


def main() -> None:
    """One of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "reference", "table"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--certify", type=int, default=2000, help="test images, the first so many, for the engine")
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds of the engine per image")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of each loss")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.steps)
        return
    if options.what == "reference":
        if options.folder is None:
            parser.error("expected a folder for the runs")
        for row in options.rows.split(","):
            for seed in map(int, options.seeds.split(",")):
                reference(row, seed, options)
    table()


def reference(row: str, seed: int, options: argparse.Namespace) -> None:
    """Trains one row with one seed and measures it, unless that is done."""
    name, changes, epsilon, _ = ROWS[row]
    folder = options.folder / f"{row}-{seed}"
    recipe = read_recipe(name)
    asked = {"certify": options.certify, "seconds": options.seconds} if epsilon is not None else {}
    settings = {**recipe.model_dump(mode="json", exclude_unset=True), **changes, "seed": seed, **asked}
    if keep(KEPT, row, {})[row].get(str(seed), {}).get("settings") == settings:
        return
    data = {**recipe.data.model_dump(exclude_unset=True), "root": str(options.data / "mnist")}

    def tell(epoch: Any, epochs: int) -> None:
        print(f"{row} {seed}: {epoch}", flush=True)

    run = radii.train(name, output=folder, resume=True, progress=tell, **{**changes, "data": data, "seed": seed})
    test = radii.load_dataset("mnist", split="test", root=options.data / "mnist")
    measured: dict[str, Any] = {"settings": settings, "cpu_seconds": run.card["cpu_seconds"], "machine": machine()}
    measured["data"] = run.card["data"]["fingerprint"]
    for size in (0.2, 0.3) if epsilon is None else (epsilon,):
        measured[f"pgd {size:g}"], proven, left = attacked(folder / f"{name}.onnx", test, size)
    if epsilon is not None:
        measured["engine"] = certified(
            run.classifier, test[: options.certify], (proven, left), epsilon, options.seconds
        )
    keep(KEPT, row, {str(seed): measured})


def attacked(network: Path, test: Any, epsilon: float) -> tuple[dict[str, float], Tensor, Tensor]:
    """Shares of the test images: right, proven by intervals, not broken by PGD-40; which are proven, which are left.

    Intervals are in double precision, and a margin below 1e-6 is no proof. Only images that they leave open are
    attacked: of the others the answer is known. What is left is right, and neither proven nor broken.
    """
    model = trainable(load_classifier(network)).double().eval()
    x, y = torch.from_numpy(test.x.copy()).double(), torch.from_numpy(test.y.copy())
    state, size = State(torch.Generator().manual_seed(0), test.domain), torch.tensor(epsilon, dtype=torch.float64)
    right, proven, left = (torch.zeros(len(y), dtype=torch.bool) for _ in range(3))
    with torch.no_grad():
        for part in torch.arange(len(y)).split(500):
            net = read(model, x[part])
            right[part] = net.clean.argmax(1) == y[part]
            worst = net.worst(*box(x[part], size, test.domain), y[part]).scatter(1, y[part][:, None], -torch.inf)
            proven[part] = right[part] & (worst.amax(1) < -1e-6)
    for part in torch.nonzero(right & ~proven)[:, 0].split(500):
        net = read(model, x[part])
        points = pgd_points(net, x[part], y[part], size, state, 40, 2.5 / 40)
        left[part] = net(points).argmax(1) == y[part]
    names = {"clean": right, "intervals": proven, "attacked": proven | left}
    return {name: float(flags.double().mean()) for name, flags in names.items()}, proven, left


def certified(
    classifier: Any, part: Any, flags: tuple[Tensor, Tensor], epsilon: float, seconds: float
) -> dict[str, Any]:
    """Shares of the images that are right, proven and open: intervals have proven some, the engine decides the rest."""
    proven, left = (one[: len(part)] for one in flags)
    native, budget = Native(attack="fgsm"), Budget(seconds=seconds)  # PGD-40 has failed on all of them
    start, verdicts = time.process_time(), []
    with working(classifier):
        for one, ask in zip(part.instances, left.tolist()):
            if ask:
                query = Query(one, epsilon, Classification(), Norm.of("linf"))
                verdicts.append(native.decide(classifier, [query], budget)[0].verdict)
    return {
        "images": len(part),
        "asked": len(verdicts),
        "clean": float((classifier.predict(part.x) == part.y).mean()),
        "proven": (int(proven.sum()) + verdicts.count(Verdict.ROBUST)) / len(part),
        "by_engine": verdicts.count(Verdict.ROBUST),
        "open": verdicts.count(Verdict.UNKNOWN) / len(part),
        "seconds": seconds,
        "cpu_seconds": time.process_time() - start,
    }


def table() -> None:
    """The rows that are kept: means over seeds, and their range."""
    lines, kept = [], json.loads(KEPT.read_text())
    for row, (name, _, epsilon, published) in ROWS.items():
        done = [measured for _, measured in sorted(kept.get(row, {}).items())]
        if not done:
            continue
        sizes = [key for key in done[0] if key.startswith("pgd")]
        attacked = "; ".join(f"{key[4:]}: {_range([one[key]['attacked'] for one in done])}" for key in sizes)
        certified = least = "-"
        if epsilon is not None:
            certified = _range([one[sizes[0]]["intervals"] for one in done])
            # Proven by intervals among all, or by the engine among those that it was asked about.
            least = _range([one[sizes[0]]["intervals"] + one["engine"]["by_engine"] / TESTS for one in done])
        engine = "-" if epsilon is None else "; ".join(_asked(done))
        spent = statistics.mean(one["cpu_seconds"] for one in done)
        lines.append(
            (
                name + " with a ramp" * row.endswith("-ramp"),
                str(done[0]["settings"]["epochs"]),
                str(len(done)),
                _range([one[sizes[0]]["clean"] for one in done]),
                attacked,
                certified,
                least,
                engine,
                f"{spent:.0f}",
                published,
            )
        )
    heads = (
        "recipe",
        "epochs",
        "seeds",
        "clean %",
        "PGD-40 %",
        "intervals %",
        "proven %, at least",
        "engine %",
        "CPU s",
        "published %",
    )
    print(markdown(heads, lines))


def _asked(done: list[dict[str, Any]]) -> list[str]:
    """What intervals and the engine prove of the images that it was asked about: seeds may differ in their number."""
    cells = []
    for count in sorted({one["engine"]["images"] for one in done}):
        part = [one["engine"] for one in done if one["engine"]["images"] == count]
        shares, clean = (_range([one[key] for one in part]) for key in ("proven", "clean"))
        left = max(100 * one["open"] for one in part)
        cells.append(f"{shares} of {count} (clean {clean}; at most {left:.1f} open)")
    return cells


def _range(shares: list[float]) -> str:
    values = [100 * share for share in shares]
    middle = f"{statistics.mean(values):.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.1f} to {max(values):.1f})"


# What follows is the plain code: convSmall without batch norm, every line of arithmetic written out.

Loss = Callable[[nn.Sequential, Tensor, Tensor, float, torch.Generator], Tensor]


def ball(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return (x - eps).clamp_min(0.0), (x + eps).clamp_max(1.0)


def plain_pgd(
    model: nn.Module, x: Tensor, y: Tensor, eps: float, rng: torch.Generator, steps: int, size: float
) -> Tensor:
    low, high = ball(x, eps)
    point = low + torch.rand(x.shape, generator=rng) * (high - low)
    for _ in range(steps):
        point = point.detach().requires_grad_()
        (slope,) = torch.autograd.grad(F.cross_entropy(model(point), y, reduction="sum"), point)
        point = torch.minimum(torch.maximum(point.detach() + size * slope.sign(), low), high)
    return point.detach()


def plain_intervals(
    model: nn.Sequential, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
    seen = []
    for layer in list(model)[:-1]:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            middle, half = layer((low + high) / 2), (high - low) / 2
            weight = layer.weight.abs()
            half = (
                F.linear(half, weight) if isinstance(layer, nn.Linear) else F.conv2d(half, weight, None, layer.stride)
            )
            low, high = middle - half, middle + half
        elif isinstance(layer, nn.ReLU):
            seen.append((low, high))
            low, high = F.relu(low), F.relu(high)
        else:
            low, high = low.flatten(1), high.flatten(1)
    return low, high, seen


def plain_worst(model: nn.Sequential, low: Tensor, high: Tensor, y: Tensor) -> Tensor:
    low, high, _ = plain_intervals(model, low, high)
    last = model[-1]
    rows = last.weight[None] - last.weight[y][:, None]
    middle, half = (low + high) / 2, (high - low) / 2
    return (rows @ middle[:, :, None] + rows.abs() @ half[:, :, None])[..., 0] + last.bias[None] - last.bias[y][:, None]


def plain_crown(model: nn.Sequential, low: Tensor, high: Tensor, y: Tensor) -> Tensor:
    _, _, seen = plain_intervals(model, low, high)
    unit = torch.eye(10)
    rows = (unit[y][:, None] - unit[None]).reshape(-1, 10)
    constant = torch.zeros(len(rows))
    shapes = {"conv": [(16, 13, 13), (32, 5, 5)], "in": [(1, 28, 28), (16, 13, 13)]}
    convs = 1
    for layer in reversed(list(model)):
        if isinstance(layer, nn.Linear):
            constant, rows = constant + rows @ layer.bias, rows @ layer.weight
        elif isinstance(layer, nn.Conv2d):
            constant = constant + rows.sum((2, 3)) @ layer.bias
            rest = [
                n - ((m - 1) * s + k)
                for n, m, s, k in zip(shapes["in"][convs][1:], rows.shape[2:], layer.stride, layer.kernel_size)
            ]
            rows, convs = F.conv_transpose2d(rows, layer.weight, None, layer.stride, 0, rest), convs - 1
        elif isinstance(layer, nn.ReLU):
            a, b = seen.pop()
            unstable = (a < 0) & (b > 0)
            active = (a >= 0).float()
            steep = torch.where(unstable, b / torch.where(unstable, b - a, torch.ones_like(a)), active)
            offset = torch.where(unstable, -steep * a, torch.zeros_like(a))
            gentle = torch.where(unstable, (b > -a).float(), active)
            wide = rows.reshape(len(y), -1, *a.shape[1:])
            above, below = wide.clamp_min(0.0), wide.clamp_max(0.0)
            constant = constant + (below * offset[:, None]).flatten(2).sum(2).reshape(-1)
            rows = (above * gentle[:, None] + below * steep[:, None]).reshape(rows.shape)
        else:
            rows = rows.reshape(-1, 32, 5, 5)
    wide = rows.reshape(len(y), 10, -1)
    middle, half = ((high + low) / 2).flatten(1), ((high - low) / 2).flatten(1)
    least = (wide @ middle[:, :, None] - wide.abs() @ half[:, :, None])[..., 0] + constant.reshape(-1, 10)
    return -least


def standard(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    return F.cross_entropy(model(x), y)


def fgsm(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    return F.cross_entropy(model(plain_pgd(model, x, y, eps, rng, 1, 1.25 * eps)), y)


def pgd(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    return F.cross_entropy(model(plain_pgd(model, x, y, eps, rng, 10, 0.25 * eps)), y)


def augment(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    low, high = (end.repeat(2, 1, 1, 1) for end in ball(x, eps))
    points = low + torch.rand(low.shape, generator=rng) * (high - low)
    return F.cross_entropy(torch.cat([model(x), model(points)]), y.repeat(3))


def trades(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    low, high = ball(x, eps)
    clean = model(x)
    target = clean.detach().log_softmax(1)
    noise = 2 * torch.rand(x.shape, generator=rng) - 1
    point = torch.minimum(torch.maximum(x + 0.1 * eps * noise, low), high)
    for _ in range(10):
        point = point.detach().requires_grad_()
        gap = F.kl_div(model(point).log_softmax(1), target, reduction="sum", log_target=True)
        (slope,) = torch.autograd.grad(gap, point)
        point = torch.minimum(torch.maximum(point.detach() + 0.25 * eps * slope.sign(), low), high)
    near = F.kl_div(model(point.detach()).log_softmax(1), clean.log_softmax(1), reduction="batchmean", log_target=True)
    return F.cross_entropy(clean, y) + 6 * near


def ibp(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    clean, worst = model(x), plain_worst(model, *ball(x, eps), y)
    return 0.5 * F.cross_entropy(clean, y) + 0.5 * F.cross_entropy(worst, y)


def crown_ibp(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    low, high = ball(x, eps)
    clean, worst = model(x), plain_crown(model, low, high, y)
    return 0.5 * F.cross_entropy(clean, y) + 0.5 * F.cross_entropy(worst, y)


def sabr(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    low, high = ball(x, eps)
    small, clean = 0.4 * eps, model(x)
    centre = plain_pgd(model, x, y, eps - small, rng, 8, 0.5 * (eps - small))
    worst = plain_worst(model, torch.maximum(centre - small, low), torch.minimum(centre + small, high), y)
    return 0.5 * F.cross_entropy(clean, y) + 0.5 * F.cross_entropy(worst, y)


def mtl_ibp(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    worst, clean = plain_worst(model, *ball(x, eps), y), model(x)
    hit = model(plain_pgd(model, x, y, eps, rng, 8, 0.25 * eps))
    return 0.5 * F.cross_entropy(hit, y) + 0.5 * F.cross_entropy(worst, y) + 0 * clean.sum()


def diffai(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    return F.cross_entropy(model(x), y) + 0.1 * F.cross_entropy(plain_worst(model, *ball(x, eps), y), y)


def constraint(model: nn.Sequential, x: Tensor, y: Tensor, eps: float, rng: torch.Generator) -> Tensor:
    low, high = ball(x, eps)
    clean = model(x)
    fixed = clean.detach()
    point = low + torch.rand(x.shape, generator=rng) * (high - low)
    for _ in range(10):
        point = point.detach().requires_grad_()
        far = (model(point) - fixed).abs().amax(1)
        (slope,) = torch.autograd.grad(far.sum(), point)
        point = torch.minimum(torch.maximum(point.detach() + 0.25 * eps * slope.sign(), low), high)
    over = ((model(point.detach()) - clean).abs().amax(1) - 0.01).clamp_min(0.0)
    return F.cross_entropy(clean, y) + 0.2 * over.mean()


PLAIN: dict[str, tuple[Loss, dict[str, Any]]] = {
    "standard": (standard, {}),
    "augment": (augment, {}),
    "fgsm": (fgsm, {}),
    "pgd": (pgd, {}),
    "trades": (trades, {}),
    "ibp": (ibp, {"kappa": 0.5, "regulariser": 0}),
    "crown_ibp": (crown_ibp, {"kappa": 0.5, "beta": 1, "regulariser": 0}),
    "diffai": (diffai, {}),
    "sabr": (sabr, {"kappa": 0.5, "regulariser": 0}),
    "mtl_ibp": (mtl_ibp, {"regulariser": 0}),
    "constraint": (constraint, {"property": "standard:delta=0.01"}),
}


def speed(steps: int) -> None:
    """CPU milliseconds per step of each loss, ours and plain, alternating; and whether both compute the same."""
    rng = torch.Generator().manual_seed(0)
    x, y = torch.rand((256, 1, 28, 28), generator=rng), torch.randint(0, 10, (256,), generator=rng)
    eps, lines = 0.1, []
    for name, (plain, values) in PLAIN.items():
        model = build("convSmall", (1, 28, 28), 10, seed=0)
        assert isinstance(model, nn.Sequential)
        method = make({"name": name, **({} if name == "standard" else {"epsilon": eps}), **values})
        size = torch.full((256, 1, 1, 1), eps)

        def ours(method: Any = method, model: nn.Sequential = model, size: Tensor = size) -> Tensor:
            state = State(torch.Generator().manual_seed(1), Domain())
            found = method.loss(read(model, x), x, y, size, state)
            return found.losses.mean() + found.penalty

        def theirs(plain: Loss = plain, model: nn.Sequential = model) -> Tensor:
            return plain(model, x, y, eps, torch.Generator().manual_seed(1))

        difference = abs(float(ours().detach()) - float(theirs().detach()))
        spent: dict[str, list[float]] = {"ours": [], "plain": []}
        optimiser = torch.optim.Adam(model.parameters(), 1e-9)
        for step in range(steps + 3):
            for key, loss in (("ours", ours), ("plain", theirs)):
                start = time.process_time()
                optimiser.zero_grad()
                torch.autograd.backward(loss())
                optimiser.step()
                if step >= 3:
                    spent[key].append(time.process_time() - start)
        mine, other = (1000 * statistics.median(spent[key]) for key in ("ours", "plain"))
        lines.append((name, f"{mine:.1f}", f"{other:.1f}", f"{mine / other:.2f}", f"{difference:.0e}"))
    print(markdown(("loss", "ours ms", "plain ms", "ratio", "difference of the losses"), lines))
    print(json.dumps(machine()))


if __name__ == "__main__":
    main()
