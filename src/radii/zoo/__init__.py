"""The networks that come with radii, trained by `scripts/train_demo.py`; ask for one as "zoo:NAME"."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from radii._check import choice

PREFIX = "zoo:"


def cards() -> dict[str, dict[str, Any]]:
    """How each network was trained and how many of its test images it classifies correctly, by name."""
    text = files(__name__).joinpath("zoo.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def path(name: str) -> Path:
    """The ONNX file of a network of the zoo, by its name with or without the prefix."""
    plain = choice(name.removeprefix(PREFIX), "network of the zoo", cards())
    return Path(str(files(__name__).joinpath(f"{plain}.onnx")))
