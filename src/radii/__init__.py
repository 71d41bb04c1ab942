"""radii: how far can an input move before a neural network changes its mind?"""

from __future__ import annotations

__version__ = "0.1.0"
