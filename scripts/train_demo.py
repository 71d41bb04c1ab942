"""Trains the three demo networks on the embedded MNIST digits and writes them into the package.

    .venv/bin/python scripts/train_demo.py            # about a minute on one core; rewrites src/radii/zoo/

The networks differ in one thing each: `mnist5k-standard` and `mnist5k-adversarial` have the same shape but not the
same training; `mnist5k-conv` is convolutional and trained like the standard one, with a little weight decay.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from radii.data.sources.embedded import mnist5k

ZOO = Path(__file__).parents[1] / "src" / "radii" / "zoo"


@dataclass(frozen=True)
class Recipe:
    """How one network is trained; epsilon 0 means without an adversary."""

    name: str
    shape: str
    epsilon: float
    epochs: int
    weight_decay: float = 0.0
    learning_rate: float = 2e-3
    batch: int = 100
    seed: int = 0


RECIPES = (
    Recipe("mnist5k-standard", "784-24-24-10", 0.0, 40),
    Recipe("mnist5k-adversarial", "784-24-24-10", 0.05, 40),
    Recipe("mnist5k-conv", "conv 4 (5x5, stride 3) - conv 8 (3x3, stride 2) - 24 - 10", 0.0, 40, weight_decay=1e-4),
)


def build(recipe: Recipe) -> nn.Module:
    """The untrained network of a recipe."""
    if recipe.shape.startswith("conv"):
        convolutions = [nn.Conv2d(1, 4, 5, 3, 1), nn.ReLU(), nn.Conv2d(4, 8, 3, 2), nn.ReLU()]
        return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(128, 24), nn.ReLU(), nn.Linear(24, 10))
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 10))


def shifted(x: Tensor, generator: torch.Generator) -> Tensor:
    """The images moved by up to two pixels: with 4,000 images this is worth several points of accuracy."""
    dy, dx = torch.randint(-2, 3, (2,), generator=generator).tolist()
    return torch.roll(x, (dy, dx), dims=(2, 3))


def attacked(model: nn.Module, x: Tensor, y: Tensor, epsilon: float, generator: torch.Generator) -> Tensor:
    """The images after ten steps of projected gradient ascent on the loss, inside the ball and [0, 1]."""
    step = epsilon / 4
    point = (x + epsilon * (2 * torch.rand(x.shape, generator=generator) - 1)).clamp(0, 1)
    for _ in range(10):
        point = point.detach().requires_grad_()
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(model(point), y), point)
        point = torch.minimum(torch.maximum(point + step * slope.sign(), x - epsilon), x + epsilon).clamp(0, 1)
    return point.detach()


def train(recipe: Recipe, x: Tensor, y: Tensor, say: Callable[[str], None]) -> nn.Module:
    """The trained network; the same recipe gives the same network on the same machine."""
    torch.manual_seed(recipe.seed)
    generator = torch.Generator().manual_seed(recipe.seed)
    model = build(recipe)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    steps = recipe.epochs * (len(x) // recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5 * recipe.learning_rate, total_steps=steps)
    for epoch in range(recipe.epochs):
        order = torch.randperm(len(x), generator=generator)
        total = 0.0
        for chosen in order.split(recipe.batch):
            images, labels = shifted(x[chosen], generator), y[chosen]
            if recipe.epsilon:
                size = recipe.epsilon * min(1.0, 2 * (epoch + 1) / recipe.epochs)  # grows over the first half
                images = attacked(model, images, labels, size, generator)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        if epoch % 10 == 9:
            say(f"{recipe.name}: epoch {epoch + 1}, mean loss {total / len(x):.4f}")
    return model.eval()


def export(model: nn.Module, path: Path) -> None:
    """Write the network as one ONNX file with a free batch size."""
    for name in ("onnxscript", "torch.onnx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            (torch.zeros(2, 1, 28, 28),),
            path,
            input_names=["image"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            external_data=False,
            verbose=False,
        )
    strip(path)


def strip(path: Path) -> None:
    """Remove what the exporter writes about the exporting machine (stack traces, paths)."""
    model = onnx.load(path)
    model.doc_string = ""
    for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
        part.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ZOO, help="where the ONNX files and zoo.json go")
    folder: Path = parser.parse_args().output
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    train_set, test_set = mnist5k("train"), mnist5k("test")
    x, y = torch.from_numpy(np.array(train_set.x)), torch.from_numpy(np.array(train_set.y))
    held_x, held_y = torch.from_numpy(np.array(test_set.x)), torch.from_numpy(np.array(test_set.y))
    cards = {}
    for recipe in RECIPES:
        model = train(recipe, x, y, print)
        with torch.no_grad():
            right = int((model(held_x).argmax(1) == held_y).sum())
        path = folder / f"{recipe.name}.onnx"
        export(model, path)
        cards[recipe.name] = {**asdict(recipe), "dataset": "mnist5k", "test_correct": right, "test_inputs": len(held_y)}
        print(f"{recipe.name}: {right} of {len(held_y)} test images right, {path.stat().st_size / 1e3:.0f} kB")
    (folder / "zoo.json").write_text(json.dumps(cards, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
