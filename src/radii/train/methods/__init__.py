"""Training methods, one file each: losses that recipes name. `base.py` says what a method is."""

from radii.train.methods.augment import Augment
from radii.train.methods.constraint import Constraint
from radii.train.methods.crown_ibp import CrownIbp
from radii.train.methods.diffai import DiffAI
from radii.train.methods.fgsm import Fgsm
from radii.train.methods.ibp import Ibp
from radii.train.methods.mtl_ibp import MtlIbp
from radii.train.methods.pgd import Pgd
from radii.train.methods.sabr import Sabr
from radii.train.methods.standard import Standard
from radii.train.methods.trades import Trades

__all__ = [
    "Augment",
    "Constraint",
    "CrownIbp",
    "DiffAI",
    "Fgsm",
    "Ibp",
    "MtlIbp",
    "Pgd",
    "Sabr",
    "Standard",
    "Trades",
]
