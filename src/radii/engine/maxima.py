"""Maxima: clauses of several rows written into the graph as ReLUs, max(a, b) = b + relu(a − b).

Exact, but relaxed where it is bounded: searches over signs take weights λ of the rows instead (`output_rows`).
"""

from __future__ import annotations

from typing import Any

from radii._torch import torch
from radii.bounds.lowering import is_smooth
from radii.engine.output_rows import OutputRows
from radii.models.graph import Graph, Node
from radii.models.operators import Add, Concat, Dense, Relu, Reshape, Scale, Select


def searchable(asked: OutputRows) -> OutputRows:
    """The question as a search takes it: clauses as they are over signs, as maxima over intervals of curves."""
    return maxima(asked) if is_smooth(asked.graph) else asked


def maxima(asked: OutputRows) -> OutputRows:
    """The same question with one row for each clause: the greatest of its rows, made of ReLUs."""
    if asked.members is None:
        return asked
    nodes = list(asked.graph.nodes)
    outputs = nodes[-1].size
    flat = Node(Reshape((outputs,)), (len(nodes) - 1,), (outputs,))
    nodes += [flat, Node(Dense(asked.rows, -asked.shift), (len(nodes),), (len(asked.rows),))]

    def add(operator: Any, inputs: tuple[int, ...], size: int) -> int:
        nodes.append(Node(operator, inputs, (size,)))
        return len(nodes) - 1

    def select(value: int, indices: list[int]) -> int:
        return add(Select(torch.tensor(indices), 0), (value,), len(indices))

    value = len(nodes) - 1
    groups = [list(dict.fromkeys(m)) for m in asked.members.tolist()]
    while any(len(g) > 1 for g in groups):
        pairs = [(g[i], g[i + 1]) for g in groups for i in range(0, len(g) - 1, 2)]
        single = [g[-1] for g in groups if len(g) % 2]
        a, b = select(value, [p[0] for p in pairs]), select(value, [p[1] for p in pairs])
        count = len(pairs)
        less = add(Scale(torch.tensor(-1.0, dtype=torch.float64), None), (b,), count)
        above = add(Relu(), (add(Add(), (a, less), count),), count)
        value = add(Add(), (b, above), count)
        if single:
            rest = select(nodes[a].inputs[0], single)
            value = add(Concat(0), (value, rest), count + len(single))
        groups = _paired(groups, count)
    select(value, [g[0] for g in groups])
    unit = torch.eye(len(groups), dtype=torch.float64)
    return OutputRows(Graph(tuple(nodes)).to(torch.float64), unit, unit.new_zeros(len(unit)))


def _paired(groups: list[list[int]], pairs: int) -> list[list[int]]:
    """Where the members of each group stand after one round of maxima: all pairs first, then the odd ones out."""
    pair, odd, result = 0, pairs, []
    for group in groups:
        half = len(group) // 2
        result.append([*range(pair, pair + half), *([odd] if len(group) % 2 else [])])
        pair, odd = pair + half, odd + len(group) % 2
    return result
