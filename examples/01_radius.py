"""One radius: how far one image can move before the network changes its mind."""

from __future__ import annotations

import radii

net = radii.load_classifier("zoo:mnist5k-standard")
image = radii.load_dataset("mnist5k", split="test")[1]

found = radii.radius(net, image.x, image.label, seconds=10, seed=0)
print(f"the network takes this {image.label} for a {net.predict(image.x)}")
print(f"proven up to {found.lower:.4f}, broken at {found.upper:.4f}: {found.status}")
if found.witness is not None:
    print(f"the witness is taken for a {found.witness.prediction}")
