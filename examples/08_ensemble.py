"""Two networks against an attacker who tosses a coin: value for every ε, the defender's mix, the attack."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report.ensembles import game_figure
from radii.report.style import save

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
nets = [radii.load_classifier(f"zoo:mnist5k-{name}") for name in ("standard", "conv")]
data = radii.load_dataset("mnist5k", split="test")[:6]

game = radii.ensemble(nets, data, limit=0.06, seconds=1, tolerance=0.004)
for epsilon in (0.01, 0.02):
    low, high = game.value(epsilon)
    mix = game.mix(epsilon)
    shares = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(game.names, mix.weights, strict=True))
    print(f"ε = {epsilon}: an attack gets {low:.3f}, the mix allows {high:.3f} ({shares})")
    print(f"    the best network alone allows {mix.single:.3f}, choosing uniformly {mix.uniform:.3f}")

attack = game.attack(0.02)
for chance, fooled in zip(attack.probabilities, attack.fooled, strict=True):
    print(f"with probability {chance:.2f}:", ", ".join(f"{n} fooled on {k}" for n, k in zip(game.names, fooled.sum(0))))
print("expected loss of each network:", attack.losses.round(3).tolist())
save(game_figure(game), folder / "08_ensemble.png")
