"""Fair order: early results should span every group, so that a run stopped early is still a fair picture."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def fair_order(items: Iterable[Item], group: Callable[[Item], Sequence[Hashable]]) -> list[Item]:
    """The items with groups taken in turns, and subgroups in turns within each group.

    `group` names an item's place from coarse to fine, such as (classifier, class); items of one
    finest group keep their order.

    >>> fair_order(["a1", "a2", "a3", "b1"], group=lambda item: item[0])
    ['a1', 'b1', 'a2', 'a3']
    """
    return _spread([(tuple(group(item)), item) for item in items], 0)


def _spread(items: list[tuple[tuple[Hashable, ...], Item]], depth: int) -> list[Item]:
    parts: dict[Hashable, list[tuple[tuple[Hashable, ...], Item]]] = {}
    for place, item in items:
        parts.setdefault(place[depth : depth + 1], []).append((place, item))
    if () in parts and len(parts) == 1:
        return [item for _, item in items]
    return list(_turns([_spread(part, depth + 1) for part in parts.values()]))


def _turns(parts: list[list[Item]]) -> Iterator[Item]:
    queues = [iter(part) for part in parts]
    while queues:
        alive = []
        for queue in queues:
            for item in queue:
                yield item
                alive.append(queue)
                break
        queues = alive
