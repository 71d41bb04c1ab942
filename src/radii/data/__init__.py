"""Data sets: one `Dataset`, many sources, and the selection of the inputs to study."""

from radii.data.dataset import Dataset
from radii.data.fetch import fetch, fetch_dataset
from radii.data.load import load_dataset
from radii.data.select import Selection, only, parse_indices, select
from radii.data.sources.registry import SOURCES, Source

__all__ = [
    "SOURCES",
    "Dataset",
    "Selection",
    "Source",
    "fetch",
    "fetch_dataset",
    "load_dataset",
    "only",
    "parse_indices",
    "select",
]
