"""Start-up: CPU seconds of whole commands that have little to do, and of importing what they load.

    python benchmarks/bench_startup.py [--runs N] [--data FOLDER]

Each command runs N times in a process of its own; the table has the median and the most, and whether torch was loaded.
The VNN-LIB queries are of VNN-COMP 2021: two that a first look settles, by a proof and by a witness, and one that needs
the search.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from common import DATA, markdown

STUDY = """
name: startup
classifiers: ["zoo:mnist5k-standard"]
data: {source: mnist5k, split: test, indices: "0:100"}
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "study.yaml").write_text(STUDY)
        lines = [
            [name, *measured(words, Path(folder), options.runs)]
            for name, words in commands(options.data / "vnncomp2021")
        ]
    print(markdown(["command", "CPU s, median", "CPU s, most", "torch"], lines))


def commands(data: Path) -> list[tuple[str, list[str]]]:
    """What is run: a name, and the words after python."""
    radii, mnist, acas = ["-m", "radii"], data / "mnistfc", data / "acasxu"
    network, dense = mnist / "onnx" / "mnist-net_256x2.onnx", acas / "onnx" / "ACASXU_run2a_1_2_batch_2000.onnx"

    def verify(query: Path, model: Path) -> list[str]:
        return [*radii, "verify", str(query), "--network", f"N={model}", "--timeout", "60"]

    return [
        ("radii --help", [*radii, "--help"]),
        ("radii run --dry-run", [*radii, "run", "study.yaml", "--dry-run"]),
        ("radii verify, unsat by the first look", verify(mnist / "vnnlib" / "prop_4_0.03.vnnlib.gz", network)),
        ("radii verify, sat by the first look", verify(mnist / "vnnlib" / "prop_7_0.03.vnnlib.gz", network)),
        ("radii verify, unsat by the search", verify(acas / "vnnlib" / "prop_3.vnnlib.gz", dense)),
        ("radii radius, one image", [*radii, "radius", "zoo:mnist5k-standard", "--data", "mnist5k", "--index", "0"]),
        ("import numpy, onnx, onnxruntime alone", ["-c", "import numpy, onnx, onnxruntime"]),
        ("import torch alone", ["-c", "import torch"]),
    ]


def measured(words: list[str], folder: Path, runs: int) -> list[str]:
    """The figures of one command."""
    used = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime")))
    loaded = subprocess.run([sys.executable, "-X", "importtime", *words], cwd=folder, capture_output=True, text=True)
    # What importlib loads by name has no line of its own there, but its parts have.
    torch = any(line.split("|")[-1].strip().split(".")[0] == "torch" for line in loaded.stderr.splitlines())
    return [f"{median(used):.2f}", f"{max(used):.2f}", "yes" if torch else "no"]


if __name__ == "__main__":
    main()
