"""Module: a classifier for tools that want a torch module."""

from __future__ import annotations

import torch
from torch import Tensor

from radii.models.classifier import Classifier


class Module(torch.nn.Module):
    """A classifier's logits for tools that expect a module."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        """The logits of a batch."""
        return self.classifier.logits(x)
