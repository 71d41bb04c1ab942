"""Trains the ensembles of the suite of Gross et al. (2021) and lists the 38 rows of its Table 4.

    python scripts/train_ensembles.py             # MNIST and GTSRB in ../shared/data; writes build/ensembles/

Names, numbers of members, attacks and points, image sizes, α and ε are the paper's. It prints neither weights nor
widths nor the points, so the networks are ours: two outputs, grey images of pixel / 255 averaged down to n x n, members
that differ in shape, optimiser (Adam or SGD) and seed, at least 90 % (MNIST) or 80 % (GTSRB) right on test images. The
points are the first test images of the two classes in turns. GTSRB classes: 13 (give way) and 12 (priority road).
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from radii.data import load_dataset
from radii.models import Classifier, load_classifier

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RADII_DATA") or ROOT.parent / "shared" / "data")
OUTPUT = ROOT / "build" / "ensembles"
SIGNS = (13, 12)
POINTS = 4
MOST = 6000  # training images
DENSE = ((16,), (12, 12), (10, 10, 10), (20,))  # hidden layers of the members
CHANNELS = (3, 4, 5, 6)  # of the convolutions of the members

Arrays = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True)
class Ensemble:
    """Networks of one name and image size; `digits` is empty for traffic signs."""

    name: str
    side: int
    members: int
    digits: tuple[int, ...]
    convolutions: int = 0

    @property
    def key(self) -> str:
        """The start of the names of its files."""
        return f"{self.name}-{self.side}x{self.side}"


ENSEMBLES = (
    Ensemble("mnist_0_1", 7, 3, (0, 1)),
    Ensemble("mnist_0_1", 8, 3, (0, 1)),
    Ensemble("mnist_0_1_2convs", 8, 3, (0, 1), 2),
    Ensemble("mnist_0_1_3convs", 8, 3, (0, 1), 3),
    Ensemble("mnist_0_2", 9, 3, (0, 2)),
    Ensemble("mnist_3_6", 8, 4, (3, 6)),
    Ensemble("mnist_4_5", 10, 3, (4, 5)),
    Ensemble("mnist_7_8", 6, 3, (7, 8)),
    Ensemble("traffic_signs", 10, 3, ()),
)


@dataclass(frozen=True)
class Row:
    """One row of the paper's Table 4, with what it prints: seconds of SMT and MILP (None: timed out) and the result."""

    number: int
    name: str
    members: int
    attacks: int
    points: int
    side: int
    alpha: float
    epsilon: float
    smt: tuple[float, str] | None
    milp: tuple[float, str] | None

    @property
    def key(self) -> str:
        """The start of the names of the ensemble's files."""
        return f"{self.name}-{self.side}x{self.side}"


TABLE = """
1 mnist_0_1 3 2 4 7 0.1 1000 - 285:0.25
2 mnist_0_1 3 2 4 7 0.2 100 - 17:0.2002
3 mnist_0_1 3 2 4 8 0.3 1000 80:0.37 0.47:0.3002
4 mnist_0_1_2convs 3 2 4 8 0.1 1000 243:0.12 81.7:0.25
5 mnist_0_1_2convs 3 2 4 8 0.2 1000 - 92.45:0.25
6 mnist_0_1_2convs 3 2 4 8 0.4 100 - 53.79:0.5
7 mnist_0_1_2convs 3 2 4 8 0.9 100 - 55.19:0.9002
8 mnist_0_1_2convs 3 3 4 8 0.9 100 - 86.34:1.00
9 mnist_0_1 3 2 4 8 0.4 1000 - 0.49:0.4002
10 mnist_0_1 3 2 4 8 0.9 1000 - 62.54:0.9002
11 mnist_0_1 3 3 4 8 0.9 60 - 33.19:1.00
12 mnist_0_1 3 4 4 8 0.9 60 - 52.94:1.00
13 mnist_3_6 4 2 2 8 0.1 150 47:0.25 22.3:0.1005
14 mnist_3_6 4 2 3 8 0.1 150 85:0.33 24.7:0.1003
15 mnist_4_5 3 2 4 10 0.1 1000 188:0.63 99.77:0.25
16 mnist_4_5 3 2 4 10 0.2 100 - 34.6:0.25
17 mnist_4_5 3 4 4 10 0.3 50 - 128.78:0.3002
18 mnist_4_5 3 4 4 10 0.9 50 - 174.8:0.93
19 mnist_7_8 3 4 4 6 0.1 60 - 18.36:0.25
20 mnist_7_8 3 10 4 6 0.1 60 - 66.5:0.25
21 mnist_0_1 3 2 4 8 0.9 3.75 - -
22 mnist_0_1 3 2 4 8 1 1000 - 21:robust
23 mnist_0_1_3convs 3 2 4 8 0.1 1000 - -
24 mnist_3_6 2 9 2 8 1 0.005 - 13.31:robust
25 mnist_7_8 3 2 4 6 1 0.1 - 2.56:robust
26 mnist_7_8 3 2 4 6 0.9 0.1 - 4.5:robust
27 mnist_7_8 3 5 4 6 0.9 0.1 - 9.37:robust
28 mnist_7_8 3 5 4 6 0.9 0.2 - 18.48:robust
29 mnist_7_8 3 7 4 6 0.9 0.3 - 187.4:robust
30 mnist_0_2 3 27 4 9 1 0.01 - 114.99:robust
31 mnist_0_2 3 30 4 9 1 0.01 - 146.98:robust
32 traffic_signs 3 1 4 10 0.1 1000 - 71:0.25
33 traffic_signs 3 2 4 10 0.2 1000 - 1437.1:0.25
34 traffic_signs 3 2 4 10 1 0.01 - 13.89:robust
35 traffic_signs 3 2 4 10 1 0.1 - 23.23:robust
36 traffic_signs 3 2 4 10 1 0.2 - 20.62:robust
37 traffic_signs 3 2 4 10 1 1 - 24.47:robust
38 traffic_signs 3 2 4 10 1 2 - 27.28:robust
"""


def rows() -> tuple[Row, ...]:
    """The 38 rows."""
    found = []
    for line in TABLE.split("\n"):
        if line:
            number, name, *rest = line.split()
            counts, (alpha, epsilon), (smt, milp) = [int(v) for v in rest[:4]], map(float, rest[4:6]), rest[6:]
            found.append(Row(int(number), name, *counts, alpha, epsilon, _printed(smt), _printed(milp)))
    return tuple(found)


def _printed(text: str) -> tuple[float, str] | None:
    seconds, _, result = text.partition(":")
    return (float(seconds), result) if result else None


def images(ensemble: Ensemble, split: str, root: Path = DATA) -> Arrays:
    """Grey images (n, 1, side, side) in [0, 1] and labels 0 and 1."""
    if ensemble.digits:
        data = load_dataset("mnist", split=split, root=root / "mnist")
        classes = ensemble.digits
    else:
        data = load_dataset("gtsrb", split=split, root=root / "gtsrb", resize=40, grayscale=True, crop="square")
        classes = SIGNS
    chosen = np.flatnonzero(np.isin(data.y, classes))[:MOST]
    x = torch.from_numpy(np.array(data.x[chosen])).reshape(len(chosen), 1, *data.x.shape[-2:])
    y = (data.y[chosen] == classes[1]).astype(np.int64)
    return nn.functional.interpolate(x, size=(ensemble.side,) * 2, mode="area").numpy(), y


def points(data: Arrays) -> Arrays:
    """The first test images of both classes in turns."""
    x, y = data
    chosen = [int(np.flatnonzero(y == label)[k // 2]) for k, label in enumerate((0, 1) * (POINTS // 2))]
    return x[chosen], y[chosen]


def build(ensemble: Ensemble, member: int) -> nn.Sequential:
    """An untrained member."""
    size, layers = ensemble.side, list[nn.Module]()
    if not ensemble.convolutions:
        widths = [size * size, *DENSE[member]]
        for before, after in itertools.pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], 2))
    channels = (1, *(CHANNELS[member],) * ensemble.convolutions)
    for before, after in itertools.pairwise(channels):
        layers += [nn.Conv2d(before, after, 3), nn.ReLU()]
        size -= 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels[-1] * size * size, 2))


def train(ensemble: Ensemble, member: int, data: Arrays, steps: int = 1500) -> nn.Sequential:
    """A trained member; the same call gives the same network on the same machine."""
    torch.manual_seed(member)
    x, y = map(torch.from_numpy, data)
    model = build(ensemble, member)
    if member % 2:
        optimiser: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        chosen = torch.randint(len(x), (64,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimiser.step()
    return model.eval()


def load(row: Row, folder: Path = OUTPUT) -> tuple[list[Classifier], Arrays]:
    """The members and points of a row; as in the paper nothing but ε bounds how far an input moves."""
    members = [load_classifier(folder / f"{row.key}-{k}.onnx", domain=None) for k in range(row.members)]
    with np.load(folder / f"{row.key}.npz") as file:
        return members, (file["x"][: row.points], file["y"][: row.points])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--name", action="append", help="only this ensemble, such as mnist_0_1-7x7; may be repeated")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    options.output.mkdir(parents=True, exist_ok=True)
    for ensemble in ENSEMBLES:
        if options.name and ensemble.key not in options.name:
            continue
        begun, held, test = (
            time.process_time(),
            images(ensemble, "train", options.data),
            images(ensemble, "test", options.data),
        )
        x, y = points(test)
        np.savez(options.output / f"{ensemble.key}.npz", x=x, y=y)
        for member in range(ensemble.members):
            model = train(ensemble, member, held)
            net = load_classifier(model, input_shape=held[0].shape[1:], domain=None)
            net.save(options.output / f"{ensemble.key}-{member}.onnx")
            rate = float((net.predict(test[0]) == test[1]).mean())
            right = int((net.predict(x) == y).sum())
            print(f"{ensemble.key}-{member}: {rate:.3f} of test images right, {right} of {POINTS} points", flush=True)
            if rate < (0.9 if ensemble.digits else 0.8):
                raise SystemExit(
                    f"{ensemble.key}-{member}: expected at least 90 % (MNIST) or 80 % (GTSRB), got {rate:.1%}"
                )
        print(f"{ensemble.key}: {time.process_time() - begun:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
