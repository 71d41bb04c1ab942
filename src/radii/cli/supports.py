"""`radii supports`: what radii can verify, in the words of the VNN-LIB solver interface."""

from __future__ import annotations

from typing import Annotated

import typer

from radii.errors import InputError

VNNLIB_VERSIONS = ("1.0", "2.0")
_NOTE = "* proofs hold over the reals, counterexamples are replayed in float32"


def supports(
    onnx_opset_versions: Annotated[bool, typer.Option("--onnx-opset-versions", help="First and last opset.")] = False,
    onnx_element_types: Annotated[bool, typer.Option("--onnx-element-types", help="Element types.")] = False,
    onnx_operators: Annotated[bool, typer.Option("--onnx-operators", help="ONNX operators.")] = False,
    vnnlib_versions: Annotated[bool, typer.Option("--vnnlib-versions", help="First and last version.")] = False,
    hidden_nodes: Annotated[bool, typer.Option("--hidden-node-theories", help="Theories.")] = False,
    multiple_io: Annotated[bool, typer.Option("--multiple-input-output-theories", help="Theories.")] = False,
    multiple_networks: Annotated[bool, typer.Option("--multiple-network-theories", help="Theories.")] = False,
    node_comparisons: Annotated[bool, typer.Option("--multiple-node-comparison-theories", help="Theories.")] = False,
    arithmetic: Annotated[bool, typer.Option("--arithmetic-complexity-theories", help="Theories.")] = False,
    disjunction: Annotated[bool, typer.Option("--optimised-disjunctive-reasoning", help="true or false.")] = False,
    serialise: Annotated[bool, typer.Option("--serialise-assignments", help="true or false.")] = False,
    proofs: Annotated[bool, typer.Option("--unsat-proofs", help="true or false.")] = False,
) -> None:
    """What radii can verify, one answer per line, for tools that choose a solver.

    \b
    Example:
      radii supports --onnx-operators
    """
    asked = {
        "onnx_opset_versions": onnx_opset_versions,
        "onnx_element_types": onnx_element_types,
        "onnx_operators": onnx_operators,
        "vnnlib_versions": vnnlib_versions,
        "hidden_nodes": hidden_nodes,
        "multiple_io": multiple_io,
        "multiple_networks": multiple_networks,
        "node_comparisons": node_comparisons,
        "arithmetic": arithmetic,
        "disjunction": disjunction,
        "serialise": serialise,
        "proofs": proofs,
    }
    chosen = [name for name, wanted in asked.items() if wanted]
    if len(chosen) != 1:
        raise InputError(f"supports: expected one question such as --onnx-operators, got {len(chosen)}; see --help")
    for line in capability(chosen[0]):
        typer.echo(line)


def capability(name: str) -> list[str]:
    """The lines that answer one question."""
    if name == "onnx_opset_versions":
        from radii.models.from_onnx import OPSETS

        return [str(OPSETS[0]), str(OPSETS[-1])]
    if name == "onnx_operators":
        from radii.models.from_onnx import HANDLERS

        return sorted(HANDLERS)
    return {
        "onnx_element_types": ["real", f"float32 {_NOTE}"],
        "vnnlib_versions": list(VNNLIB_VERSIONS),
        "hidden_nodes": ["NH"],
        "multiple_io": ["SIO"],
        "multiple_networks": ["SNET"],
        "node_comparisons": ["SNC"],
        # Linear conditions on outputs are decided too, but those that join inputs are not, so LIN is not claimed.
        "arithmetic": ["BND", "OUTC"],
        "disjunction": ["false"],
        "serialise": ["true"],
        "proofs": ["false"],
    }[name]
