"""What benchmarks share: one torch thread, the data, the machine's name, results kept as JSON."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import resource
import subprocess
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from radii.data import load_dataset
from radii.models import Classifier, load_classifier
from radii.problem import Instance

torch.set_num_threads(1)  # more threads only fight over small tensors

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RADII_DATA") or ROOT.parent / "shared" / "data")  # CONTRIBUTING.md says what is in it

PLAIN_SECONDS = 10.0  # CPU seconds per image of networks that are trained for the benchmark


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    name = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.is_file():
        models = [line.split(":", 1)[1].strip() for line in cpu.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
    }


def commit() -> str | None:
    """The state of the code that is measured; None outside a clone."""
    asked, changed = (
        subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()
        for words in (("describe", "--always"), ("status", "--porcelain", "src", "benchmarks"))
    )
    return (asked + ("-dirty" if changed else "")) or None


def code() -> str:
    """The sources of the package that is measured, in twelve digits: the same as long as no line of them changes."""
    total = hashlib.sha256()
    for file in sorted((ROOT / "src").rglob("*.py")):
        total.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return total.hexdigest()[:12]


def peak_memory() -> int:
    """The most bytes this process has held."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if platform.system() == "Darwin" else used * 1024


class Elsewhere:
    """How much of the cores other programs and hosts take while this one and its children work."""

    def __init__(self) -> None:
        self.start = self._now()

    def share(self) -> float:
        """Of all core seconds since it was made, those of others."""
        clock, busy, own = (now - then for now, then in zip(self._now(), self.start))
        return max(0.0, (busy - own) / (clock * (os.cpu_count() or 1)))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        times = psutil.cpu_times()
        kinds = ("user", "nice", "system", "irq", "softirq", "steal")
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(u.ru_utime + u.ru_stime for u in used)
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                own += sum(child.cpu_times()[:4])  # its own, and those of its children that have ended
        return time.monotonic(), sum(getattr(times, kind, 0.0) for kind in kinds), own


@lru_cache
def network(data: Path, name: str) -> Classifier:
    """A JAIR network, or one that is trained for this: plain_2x256 has two hidden layers of 256 ReLUs."""
    if name.startswith("plain_"):
        from bench_growth import trained

        depth, width = map(int, name.removeprefix("plain_").split("x"))
        return trained(mnist(data, "train"), (width,) * depth)
    return load_classifier(data / "jair" / "networks" / f"{name}.onnx")


@lru_cache
def mnist(data: Path, split: str) -> Any:
    """All images of a split of MNIST."""
    return load_dataset("mnist", split=split, root=data / "mnist")


@lru_cache
def cifar_test(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first CIFAR-10 test images with exact pixels in [0, 1], labels and positions in the test set."""
    with np.load(data / "cifar10" / "cifar10_3000.npz") as held:
        keep = held["exact_test"]
        x, y, index = held["x_test"][keep], held["y_test"][keep], held["index_test"][keep]
    return (x.transpose(0, 3, 1, 2) / 255).astype(np.float32), y.astype(np.int64), index


@lru_cache
def cifar(data: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CIFAR-10 training images with exact pixels in [0, 1], labels and positions: those of the JAIR rows first."""
    with np.load(data / "cifar10" / "jair_train_images.npz") as rows:
        keep = rows["exact"]
        x, y, index = rows["x"][keep], rows["y"][keep], rows["index"][keep]
    with np.load(data / "cifar10" / "cifar10_3000.npz") as more:
        new = ~np.isin(more["index_train"], index)
        x = np.concatenate([x, more["x_train"][new]])
        y = np.concatenate([y, more["y_train"][new]])
        index = np.concatenate([index, more["index_train"][new]])
    return (x.transpose(0, 3, 1, 2) / 255).astype(np.float32), y.astype(np.int64), index


def correct(data: Path, name: str, count: int) -> list[Instance]:
    """The first training images that a network classifies correctly."""
    classifier = network(data, name)
    if "resnet" in name:
        x, y, index = cifar(data)
    else:
        images = mnist(data, "train")
        x, y, index = images.x, images.y, images.indices
    found: list[Instance] = []
    for start in range(0, len(x), 100):
        part = x[start : start + 100].reshape(-1, *classifier.input_shape)
        right = np.flatnonzero(classifier.predict(part) == y[start : start + 100])
        found += [Instance(part[i], int(y[start + i]), int(index[start + i])) for i in right]
        if len(found) >= count:
            break
    return found[:count]


def unseen(data: Path, name: str, first: int, count: int) -> list[Instance]:
    """Of the test images from position `first` on, so many; those that a network gets wrong are left out."""
    classifier = network(data, name)
    if "resnet" in name:
        x, y, index = cifar_test(data)
    else:
        images = mnist(data, "test")
        x, y, index = images.x, images.y, images.indices
    rows = np.flatnonzero((index >= first) & (index < first + count))
    part = x[rows].reshape(-1, *classifier.input_shape)
    right = classifier.predict(part) == y[rows]
    return [Instance(part[i], int(y[rows[i]]), int(index[rows[i]])) for i in np.flatnonzero(right)]


def published(data: Path, name: str) -> dict[int, dict[str, float]]:
    """The published rows of a network that nothing speaks against (`ok`), by image: the cheapest of repeated ones."""
    rows: dict[int, dict[str, float]] = {}
    with open(data / "jair" / "results.csv") as file:
        for row in csv.DictReader(file):
            if row["network"] == name and row["status"] == "ok":
                key = int(row["dataset_index"])
                value = {k: float(row[k]) for k in ("lower", "upper", "seconds")}
                if key not in rows or value["seconds"] < rows[key]["seconds"]:
                    rows[key] = value
    return rows


def keep(file: Path, part: str, values: dict[str, Any]) -> dict[str, Any]:
    """Adds results to a JSON file, part by part, and gives everything in it."""
    known: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    known.setdefault(part, {}).update(values)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(known, indent=1))
    return known


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
