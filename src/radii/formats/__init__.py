"""Formats: VNN-LIB 1.0 and 2.x, and the text of counterexamples."""

from radii.formats.vnnlib import Tensor, VnnlibProblem
from radii.formats.vnnlib_read import parse_vnnlib, read_vnnlib
from radii.formats.vnnlib_write import Layout, problem_text, query_text, spec_text
from radii.formats.witness import assignment_text, pairs_text, read_witness

__all__ = [
    "Layout",
    "Tensor",
    "VnnlibProblem",
    "assignment_text",
    "pairs_text",
    "parse_vnnlib",
    "problem_text",
    "query_text",
    "read_vnnlib",
    "read_witness",
    "spec_text",
]
