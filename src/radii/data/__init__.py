"""Data sets: one `Dataset`, many sources, and the selection of the inputs to study."""

from radii.data.dataset import Dataset
from radii.data.load import load_dataset

__all__ = ["Dataset", "load_dataset"]
