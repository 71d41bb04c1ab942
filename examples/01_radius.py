"""One radius: how far one image can move before the network changes its mind, and the image that fools it."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
net = radii.load_classifier("zoo:mnist5k-standard")
image = radii.load_dataset("mnist5k", split="test")[1]

found = radii.radius(net, image.x, image.label, seconds=10, seed=0)
print(f"the network takes this {image.label} for a {net.predict(image.x)}")
print(f"proven up to {found.lower:.4f}, broken at {found.upper:.4f}: {found.status}")
if found.witness is not None:
    taken = str(found.witness.prediction)
    print(f"the witness is taken for a {taken}")
    witness = found.witness.x.reshape(image.x.shape)
    shown = figures.Fooled(net.name, image.x, witness, str(image.label), taken, found.witness.distance)
    figures.save(figures.fooled_grid([shown]), folder / "01_radius.png")
