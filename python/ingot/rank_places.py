# SPDX-License-Identifier: Apache-2.0
"""Which groups a program for all ranks has, and where each rank is in them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from ingot import ranks
from ingot.errors import UserError

Vector = Sequence[int]  # one entry per rank that shows its trace


@dataclass
class Axis:
    """A group of the program: as the program names it, as this rank's torch does, and the position of each rank in its own."""

    name: str
    own: str
    size: int
    positions: list[int]

    def in_order(self, vector: Vector) -> list[int]:
        """Values that depend on this group alone, by position."""
        known = dict(zip(self.positions, vector, strict=True))
        return [known[position] for position in range(self.size)]


class Places:
    """The groups of a program, and the ranks that show each other their traces."""

    def __init__(self, axes: Sequence[Axis], count: int) -> None:
        self.axes, self.count = list(axes), count

    def names(self) -> dict[str, str]:
        """This rank's name of a group -> the program's."""
        return {axis.own: axis.name for axis in self.axes if axis.own != axis.name}

    def axes_of(self, values: Sequence[Any]) -> list[Axis] | None:
        """The fewest groups on whose positions alone the values depend; None if two ranks at the same positions differ."""
        for length in range(1, len(self.axes) + 1):
            for axes in itertools.combinations(self.axes, length):
                if self._by_position(axes, values) is not None:
                    return list(axes)
        return None

    def table(self, vector: Vector) -> tuple[list[str], list[int], list[int]]:
        """The arguments of ingot::size_of_rank."""
        axes = self.axes_of(vector)
        assert axes is not None  # it was asked for each vector of the program
        known = self._by_position(axes, vector) or {}
        positions = itertools.product(*(range(axis.size) for axis in axes))
        sizes = [known.get(position, vector[0]) for position in positions]
        return [axis.own for axis in axes], [axis.size for axis in axes], sizes

    def representatives(self) -> list[int]:
        """Per rank, the first one at the same positions."""
        return [self._positions(self.axes).index(position) for position in self._positions(self.axes)]

    def _by_position(self, axes: Sequence[Axis], values: Sequence[Any]) -> dict[tuple[int, ...], Any] | None:
        known: dict[tuple[int, ...], Any] = {}
        for position, value in zip(self._positions(axes), values, strict=True):
            if known.setdefault(position, value) != value:
                return None
        return known

    def _positions(self, axes: Sequence[Axis]) -> list[tuple[int, ...]]:
        return [tuple(axis.positions[rank] for axis in axes) for rank in range(self.count)]


def comparing_group(names: Sequence[str]) -> Any:
    """The group of torch whose ranks show each other their traces: that of the program, or all ranks if it has several."""
    return ranks.torch_group(names[0] if len(names) == 1 else None)


def own_groups(names: Sequence[str]) -> list[dict[str, Any]]:
    """What this rank shows the others of its groups, in the order in which the program names them first."""
    groups = [ranks.torch_group(name) for name in names]
    return [
        {
            "name": group.group_name,
            "alias": ranks.alias_of(group),
            "ranks": dist.get_process_group_ranks(group),
        }
        for group in groups
    ]


def places_of(shown: Sequence[Sequence[Mapping[str, Any]]], own: int, group: Any) -> Places:
    """`shown`: `own_groups` of each rank of `group`, in which this rank is `own`."""
    members = dist.get_process_group_ranks(group)
    axes = []
    for columns in zip(*shown, strict=True):
        sizes = {len(column["ranks"]) for column in columns}
        if len(sizes) > 1:
            raise _refusal(f"group '{columns[0]['name']}' has {' and '.join(map(str, sorted(sizes)))} ranks")
        positions = [column["ranks"].index(rank) for rank, column in zip(members, columns, strict=True)]
        axes.append(Axis(_name(columns), columns[own]["name"], sizes.pop(), positions))
    return Places(axes, len(shown))


def _name(columns: Sequence[Mapping[str, Any]]) -> str:
    """One that all ranks know: that of a group of all, or the one that the user gave the groups of which each rank has its own."""
    names, aliases = ({column[key] for column in columns} for key in ("name", "alias"))
    if len(names) == 1:
        return names.pop()
    if len(aliases) == 1 and (alias := aliases.pop()):
        return alias
    raise _refusal(
        f"ranks have other groups in the place of '{columns[0]['name']}', without a name in common"
    )


def _refusal(what: str) -> UserError:
    return UserError(
        f"one program for all ranks cannot have these groups: {what}",
        code="INGOT-U359",
        advice="divide the ranks by a DeviceMesh with mesh_dim_names, or call "
        'new_group(..., group_desc="rows") with the same name for the groups that take each other\'s place',
    )
