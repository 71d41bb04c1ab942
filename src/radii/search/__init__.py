"""Search: turns a decider into radii; pure state machines, and drivers that run them."""

from radii.search.direct import direct
from radii.search.drive import Pool, concurrently, in_batches
from radii.search.grid import Grid
from radii.search.iterative import Iterative
from radii.search.kbinary import KBinary
from radii.search.machine import Counts, GridSearch

__all__ = [
    "Counts",
    "Grid",
    "GridSearch",
    "Iterative",
    "KBinary",
    "Pool",
    "concurrently",
    "direct",
    "in_batches",
]
