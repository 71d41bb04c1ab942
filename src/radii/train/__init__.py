"""Training: losses that make networks robust, one loop over them, recipes, checkpoints.

`radii.train("recipe.yaml")` calls `radii.train.run.train`: the package and the function share their name, so the
package can be called. Its modules load torch, this file does not.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """The package as a function; Python lets a module choose its class for such cases."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from radii.train.run import train

        return train(*arguments, **options)


sys.modules[__name__].__class__ = _Package
