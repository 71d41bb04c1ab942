"""The network that a command's MODEL names: a file, one of the zoo, or several as one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.errors import InputError

if TYPE_CHECKING:
    from radii.models import Classifier


def model_of(text: str, seconds: float | None, **options: Any) -> Classifier:
    """The classifier; a YAML file says how several are combined, in the words of a study's `classifiers`.

    `seconds` is the budget of an input, which limits loading.
    """
    from radii import api

    if Path(text).suffix not in (".yaml", ".yml"):
        return api.load_classifier(text, seconds=seconds, **options)
    from radii.study.sources import combination

    if any(value is not None for name, value in options.items() if name != "domain"):
        raise InputError(f"{text}: expected --mean, --std and --input-shape as parts of its members, not as options")
    return combination(Path(text), seconds)
