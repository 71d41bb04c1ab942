"""The published record of Bosman et al. (JAIR): lower bounds that a witness refutes, and a check of the witnesses.

    python studies/001/record.py search     # attacks the images of all published rows; goes on where it was stopped
    python studies/001/record.py check      # replays the kept witnesses; onnxruntime and numpy only

A published row says that a network is robust within `lower` of an image. A witness within `lower` that onnxruntime
gives another class refutes the row. `search` keeps the nearest witness of every refuted row in record.csv and
record.npz beside this file; `check` believes neither radii nor that table: it reads the published rows and the images,
measures the distance in float64, runs the network and ends with 1 when a witness does not refute its row.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import BUILD, DATA, markdown, read_csv, write_csv

HERE = Path(__file__).resolve().parent
EFFORTS = ("standard", "thorough")  # the second for rows that the first leaves standing and that are in doubt
DOUBTED = ("lower_unproven", "lower_refuted", "inverted")  # status of a row in the data's own check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("search", "check"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--network", action="append", help="only this network; may be given more than once")
    parser.add_argument("--images", type=int, help="with search: only the first images of each network")
    parser.add_argument("--folder", type=Path, default=HERE, help="where record.csv and record.npz are")
    options = parser.parse_args()
    return search(options) if options.what == "search" else check(options)


def published(options: argparse.Namespace) -> dict[str, list[dict[str, str]]]:
    """The MNIST rows with a lower end, by network."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in read_csv(options.data / "jair" / "results.csv"):
        wanted = not options.network or row["network"] in options.network
        if wanted and row["dataset"] == "MNIST" and row["lower"]:
            found.setdefault(row["network"], []).append(row)
    return found


def mnist(folder: Path, split: str) -> tuple[Any, Any]:
    """Pixels (images, 784) in [0, 1] as float32, and labels."""
    stem = {"train": "train", "test": "t10k"}[split]
    with gzip.open(folder / "mnist" / f"{stem}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / "mnist" / f"{stem}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return (pixels / 255).astype(np.float32), labels.astype(np.int64)


def search(options: argparse.Namespace) -> int:
    """Attacks every image that has a published row, and keeps the witnesses that refute one."""
    rows, points = [], []
    for name, mine in published(options).items():
        nearest = witnesses(name, mine, options)
        refuted = [row for row in mine if nearest[int(row["dataset_index"])][0] <= float(row["lower"])]
        for row in refuted:
            distance, point, predicted = nearest[int(row["dataset_index"])]
            rows.append(
                {
                    "network": name,
                    "split": row["split"],
                    "index": row["dataset_index"],
                    "run": row["run"],
                    "label": row["label"],
                    "published_lower": row["lower"],
                    "published_upper": row["upper"],
                    "published_seconds": row["seconds"],
                    "epsilon": f"{distance:.9f}",
                    "predicted": predicted,
                }
            )
            points.append(point)
        print(f"{name}: {len(refuted)} of {len(mine)} published rows refuted", file=sys.stderr, flush=True)
    write_csv(options.folder / "record.csv", rows)
    np.savez_compressed(options.folder / "record.npz", x=np.array(points, np.float32))
    print(f"{len(rows)} witnesses in {options.folder / 'record.csv'} and record.npz", file=sys.stderr)
    return 0


def witnesses(
    name: str, rows: list[dict[str, str]], options: argparse.Namespace
) -> dict[int, tuple[float, np.ndarray[Any, Any], int]]:
    """By image: distance, point and class of the nearest witness found; kept in build/ from run to run."""
    from radii.attacks.min_norm import minimum_norm
    from radii.models import load_classifier

    network = load_classifier(options.data / "jair" / "networks" / f"{name}.onnx")
    x, y = mnist(options.data, rows[0]["split"])
    indices = sorted({int(row["dataset_index"]) for row in rows})[: options.images]
    lowers = {i: max(float(r["lower"]) for r in rows if int(r["dataset_index"]) == i) for i in indices}
    doubted = {int(r["dataset_index"]) for r in rows if r["status"] in DOUBTED}
    found: dict[int, tuple[float, np.ndarray[Any, Any], int]] = {}
    for effort in EFFORTS:
        left = [i for i in indices if i not in found or (i in doubted and found[i][0] > lowers[i])]
        for start in range(0, len(left), 50):
            part = left[start : start + 50]
            file = BUILD / "001" / "record" / f"{name}-{effort}-{part[0]}-{part[-1]}-{len(part)}.npz"
            if not file.is_file():
                result = minimum_norm(network, x[part], y[part], effort=effort)
                file.parent.mkdir(parents=True, exist_ok=True)
                scratch = file.with_suffix(".part.npz")
                flat = result.points.reshape(len(part), -1)
                np.savez_compressed(
                    scratch, index=part, x=flat, distance=result.distances, predicted=result.predictions
                )
                scratch.replace(file)
            with np.load(file) as kept:
                for i, d, point, predicted in zip(kept["index"], kept["distance"], kept["x"], kept["predicted"]):
                    if int(i) not in found or d < found[int(i)][0]:
                        found[int(i)] = (float(d), point, int(predicted))
    nothing = (np.inf, np.zeros(784, np.float32), -1)
    return {int(row["dataset_index"]): found.get(int(row["dataset_index"]), nothing) for row in rows}


def check(options: argparse.Namespace) -> int:
    """Replays every witness in onnxruntime against the published row and the image; prints counts and what fails."""
    import onnxruntime

    table = read_csv(options.folder / "record.csv")
    with np.load(options.folder / "record.npz") as kept:
        points = kept["x"]
    if len(points) != len(table):
        print(f"record.npz: expected {len(table)} witnesses, got {len(points)}", file=sys.stderr)
        return 1
    rows = {(r["network"], r["split"], r["dataset_index"], r["run"]): r for m in published(options).values() for r in m}
    images = {split: mnist(options.data, split) for split in {row["split"] for row in table}}
    networks: dict[str, Any] = {}
    faults, counts = [], {}
    for row, point in zip(table, points):
        name = row["network"]
        if options.network and name not in options.network:
            continue
        if name not in networks:
            file = options.data / "jair" / "networks" / f"{name}.onnx"
            networks[name] = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        claim = rows.get((name, row["split"], row["index"], row["run"]))
        pixels, labels = (part[int(row["index"])] for part in images[row["split"]])
        fault = judged(networks[name], claim, point, pixels, int(labels))
        if fault:
            faults.append(f"{name}, {row['split']} image {row['index']}: {fault}")
        counts[name] = counts.get(name, 0) + 1
    every = {name: len(found) for name, found in published(options).items()}
    lines = [
        (name, every[name], counts.get(name, 0), f"{100 * counts.get(name, 0) / every[name]:.1f} %") for name in every
    ]
    print(markdown(("network", "published rows", "refuted by a witness", "share"), lines))
    print(f"\n{sum(counts.values())} witnesses replayed, {len(faults)} do not refute their row")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def judged(session: Any, claim: dict[str, str] | None, point: Any, pixels: Any, label: int) -> str:
    """Why a witness does not refute a published row; empty when it does."""
    if claim is None or int(claim["label"]) != label:
        return "the published table has no such row"
    if point.min() < 0 or point.max() > 1:
        return "the witness leaves [0, 1]"
    distance = float(np.abs(point.astype(np.float64) - pixels.astype(np.float64)).max())
    if not distance <= float(claim["lower"]):
        return f"the witness is {distance:.6f} away, the published lower end is {claim['lower']}"
    wanted = session.get_inputs()[0]
    shape = [size if isinstance(size, int) else 1 for size in wanted.shape]
    outputs = session.run(None, {wanted.name: point.reshape(shape)})[0].reshape(-1)
    rest = np.delete(outputs, label)
    if not (np.isfinite(outputs).all() and rest.max() >= outputs[label]):
        return f"the network still says {label}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
