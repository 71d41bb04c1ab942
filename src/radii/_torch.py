"""torch, imported when it is first used: planning, listing and reading must not wait for it.

`from radii._torch import Tensor, torch` instead of `import torch`, and nothing of it used while a module is imported;
classes that derive from torch's live in modules of their own. `Tensor` is for annotations only.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
    import torch.nn.functional as functional
    from torch import Tensor as Tensor
else:

    class _Later(ModuleType):
        """Stands for a module until one of its names is asked for; names that were found are kept."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    torch, functional, Tensor = _Later("torch"), _Later("torch.nn.functional"), Any

__all__ = ["Tensor", "functional", "torch"]
