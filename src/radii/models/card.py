"""Training cards: what a network was trained with, kept in its ONNX file's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

KEY = "radii.training"


def read_card(model: bytes) -> dict[str, Any]:
    """The card in a network's bytes; empty where there is none that can be read."""
    if KEY.encode() not in model:  # spares most networks a second parse
        return {}
    import onnx

    proto = onnx.load_from_string(model)
    for entry in proto.metadata_props:
        if entry.key == KEY:
            try:
                found = json.loads(entry.value)
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def with_card(model: bytes, card: Mapping[str, Any]) -> bytes:
    """The network's bytes with this card instead of any other."""
    import onnx

    proto = onnx.load_from_string(model)
    kept = [(entry.key, entry.value) for entry in proto.metadata_props if entry.key != KEY]
    del proto.metadata_props[:]
    for key, value in (*kept, (KEY, json.dumps(dict(card), sort_keys=True, ensure_ascii=False))):
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value
    return bytes(proto.SerializeToString())


def card_line(card: Mapping[str, Any]) -> str:
    """A card in one line: how, on what, how long, and what came of it; what it does not say is left out."""
    recipe, data, found = (_part(card, key) for key in ("recipe", "data", "accuracies"))
    method = _part(recipe, "method")
    size = f" at ε = {method['epsilon']:g}" if isinstance(method.get("epsilon"), float) and method["epsilon"] else ""
    said = [f"{method.get('name', 'unknown method')}{size}"]
    if data.get("source"):
        said.append(f"{data['source']} ({data.get('inputs', '?')} inputs, {str(data.get('fingerprint', ''))[:12]})")
    if "epochs" in card:
        said.append(f"{card['epochs']} epochs, seed {card.get('seed', '?')}")
    test = _part(found, "test")
    shown = [(name, test.get(name)) for name in ("clean", "attacked", "certified")]
    shares = [f"{name} {100 * value:.1f} %" for name, value in shown if isinstance(value, float)]
    if shares:
        size = f" at ε = {found['epsilon']:g}" if isinstance(found.get("epsilon"), float) else ""
        said.append(f"test{size}: {', '.join(shares)}")
    versions = _part(card, "versions")
    said += [f"{name} {versions[name]}" for name in ("radii", "torch") if name in versions]
    return "; ".join(said)


def _part(card: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = card.get(key)
    return found if isinstance(found, Mapping) else {}
