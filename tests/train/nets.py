"""Small networks in float64, one for each kind of layer that training can bound."""

from __future__ import annotations

import torch
from torch import nn

from radii.models.blocks import Clamp, Residual, conv_relu, mlp

KINDS = ("dense", "conv", "pool", "residual", "clamp", "batch_norm", "no_bias")
LOOSER = ("tight_clamp",)  # the verifier lowers a clamp to two ReLUs: its intervals are wider where both act


def net(kind: str, seed: int = 0) -> tuple[nn.Module, tuple[int, ...]]:
    """A network of three classes in evaluation mode, and the shape of its inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made, shape = _net(kind)
        for part in made.modules():
            if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
                for value in (part.running_mean, part.running_var, part.weight, part.bias):
                    nn.init.uniform_(value, 0.4, 1.6)
                part.weight.data[0] *= -1
    return made.double().eval(), shape  # weights that float32 holds too: onnxruntime has no float64 convolution


def _net(kind: str) -> tuple[nn.Module, tuple[int, ...]]:
    images = (2, 5, 5)
    if kind == "dense":
        return nn.Sequential(*mlp(4, [6, 5], 3)), (4,)
    if kind == "conv":
        return nn.Sequential(*conv_relu(2, 3, 3, 2, 1), *conv_relu(3, 4, 2), *mlp(16, [5], 3)), images
    if kind == "pool":
        return nn.Sequential(*conv_relu(2, 3, 2), nn.AvgPool2d(2), *mlp(12, [5], 3)), images
    if kind == "residual":
        return nn.Sequential(Residual(2, 3, 2), Residual(3, 3, 1), *mlp(27, [], 3)), images
    if kind == "clamp":
        return nn.Sequential(*mlp(4, [6], 3), Clamp(-100, 100)), (4,)
    if kind == "tight_clamp":
        return nn.Sequential(*mlp(4, [6], 3), Clamp(-0.3, 0.2)), (4,)
    if kind == "batch_norm":
        first = [nn.Conv2d(2, 3, 3, 2), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*first, nn.Linear(12, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)), images
    plain = [nn.Conv2d(2, 3, 3, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(27, 3, bias=False)]
    return nn.Sequential(*plain), images


def inputs(shape: tuple[int, ...], count: int = 6, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs in [0, 1] and labels."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand((count, *shape), generator=generator, dtype=torch.float64)
    return x, torch.randint(0, 3, (count,), generator=generator)
