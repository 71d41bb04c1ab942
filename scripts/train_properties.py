"""Trains the networks on which definitions of robustness are measured, as Casadio et al. (2022) describe them.

    python scripts/train_properties.py            # Fashion-MNIST, GTSRB and MNIST in ../shared/data; build/properties/

Fully connected, one hidden layer of 30 or 100 ReLUs, ten outputs clamped to [−100, 100]; cross-entropy only, Adam with
a step of 1e-4, batches of 128 and as many steps as the paper's 100 epochs. Of GTSRB the paper takes ten classes that it
does not name: here the ten that are most frequent in the benchmark, grey, cut to a square, 48 x 48. `mnist-tanh-50` is
of ours: one hidden layer of 50 Tanh, outputs as they are.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from radii.data import Dataset, load_dataset

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("RADII_DATA") or ROOT.parent / "shared" / "data")
SIGNS = (1, 2, 4, 5, 9, 10, 12, 13, 25, 38)  # classes of GTSRB with most images in the published training set
CLAMP = 100.0


@dataclass(frozen=True)
class Recipe:
    """How one network is trained."""

    source: str
    hidden: int
    steps: int  # the paper's 100 epochs, of 60,000 and of 12,660 images
    activation: str = "Relu"
    rate: float = 1e-4
    batch: int = 128
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.source}-{self.hidden}" if self.activation == "Relu" else f"{self.source}-tanh-{self.hidden}"


RECIPES = (
    Recipe("fashion", 30, 46_900),
    Recipe("fashion", 100, 46_900),
    Recipe("gtsrb", 30, 9_900),
    Recipe("gtsrb", 100, 9_900),
    Recipe("mnist", 50, 4_700, activation="Tanh", rate=1e-3),
)


def images(source: str, split: str, root: Path = DATA) -> Dataset:
    """The images that a network sees; labels are positions in `SIGNS` for GTSRB."""
    if source != "gtsrb":
        name = "fashion-mnist" if source == "fashion" else source
        return load_dataset(name, split=split, root=root / name)
    data = load_dataset("gtsrb", split=split, root=root / "gtsrb", resize=48, grayscale=True, crop="square")
    chosen = np.flatnonzero(np.isin(data.y, SIGNS))
    part = data[chosen]
    names = tuple(data.class_names[sign] for sign in SIGNS) if data.class_names else None
    return Dataset(part.x, np.searchsorted(SIGNS, part.y), "gtsrb", split, names, data.domain, indices=part.indices)


def build(recipe: Recipe, inputs: int) -> nn.Sequential:
    """The untrained network."""
    middle, last = (
        (nn.Tanh(), nn.Identity()) if recipe.activation == "Tanh" else (nn.ReLU(), nn.Hardtanh(-CLAMP, CLAMP))
    )
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, recipe.hidden), middle, nn.Linear(recipe.hidden, 10), last)


def train(recipe: Recipe, data: Dataset) -> nn.Sequential:
    """The trained network; the same recipe gives the same network on the same machine."""
    torch.manual_seed(recipe.seed)
    x, y = torch.from_numpy(np.array(data.x)), torch.from_numpy(np.array(data.y))
    model = build(recipe, x[0].numel())
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.rate, fused=True)
    todo = torch.empty(0, dtype=torch.int64)
    for _ in range(recipe.steps):
        if len(todo) < recipe.batch:
            todo = torch.cat([todo, torch.randperm(len(x))])
        chosen, todo = todo[: recipe.batch], todo[recipe.batch :]
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimiser.step()
    return model.eval()


def export(model: nn.Sequential, shape: tuple[int, ...], path: Path) -> None:
    """Write the network as an ONNX file with a free batch size."""
    weights = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    clamped = isinstance(model[-1], nn.Hardtanh)
    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("Gemm", ["flat", "1.weight", "1.bias"], ["before"], transB=1),
        helper.make_node("Tanh" if isinstance(model[2], nn.Tanh) else "Relu", ["before"], ["after"]),
        helper.make_node("Gemm", ["after", "3.weight", "3.bias"], ["scores" if clamped else "outputs"], transB=1),
    ]
    if clamped:
        weights |= {"low": np.float32(-CLAMP), "high": np.float32(CLAMP)}
        nodes.append(helper.make_node("Clip", ["scores", "low", "high"], ["outputs"]))
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", *shape])],
        [helper.make_tensor_value_info("outputs", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(made, path)


def accuracy(model: nn.Sequential, data: Dataset) -> float:
    """The share of images that are classified correctly."""
    with torch.no_grad():
        found: Tensor = model(torch.from_numpy(np.array(data.x))).argmax(1)
    return float((found.numpy() == data.y).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "properties")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for recipe in RECIPES:
        begun, held = time.process_time(), images(recipe.source, "train", options.data)
        model, path = train(recipe, held), options.output / f"{recipe.name}.onnx"
        export(model, held.x.shape[1:], path)
        rates = [accuracy(model, held), accuracy(model, images(recipe.source, "test", options.data))]
        print(
            f"{recipe.name}: {len(held)} training images, accuracy {rates[0]:.3f} on them, {rates[1]:.3f} on test "
            f"images, {time.process_time() - begun:.0f} CPU s -> {path}",
            flush=True,
        )


if __name__ == "__main__":
    main()
