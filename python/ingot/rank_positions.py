# SPDX-License-Identifier: Apache-2.0
"""Positions of slices that depend on the rank, for rank="all".

They are sizes of `rank_sizes` like others: a slice at 8 * rank stays a slice, which costs nothing. Only of every other element, or of
fewer still, as many as the rank has, it becomes a gather.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from ingot.rank_expressions import size_of

aten = torch.ops.aten
Values = Mapping[int, Sequence[int]]  # argument -> its value on each rank

# Operators with positions, and which arguments these are.
_POSITIONS: Mapping[Any, set[int]] = {
    aten.slice.Tensor: {2, 3},
    aten.select.int: {2},
    aten.slice_scatter.default: {3, 4},
    aten.select_scatter.default: {3},
    operator.getitem: {1},
}
_PARTS = (
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.chunk.default,
    aten.tensor_split.sections,
    aten.unbind.int,
)


def are_positions(node: Node, arguments: set[int | str]) -> bool:
    """Whether these arguments, and no others, differ between ranks only in where the node takes or writes elements of one tensor."""
    if node.op != "call_function" or not arguments <= _POSITIONS.get(node.target, set()):
        return False
    if node.target is operator.getitem and not is_part(node):
        return False
    tensor, dim = _tensor_and_dim(node)
    sizes = [_sizes(tensor)[dim], _count(node, dim), *(_part_sizes(node, dim) if is_part(node) else ())]
    return all(isinstance(size, int) for size in sizes)


def is_part(node: Node) -> bool:
    """Whether it takes a part of what was split."""
    return (
        node.target is operator.getitem and isinstance(node.args[0], Node) and node.args[0].target in _PARTS
    )


def starts_of(node: Node, differing: Values) -> list[Any] | None:
    """Where a slice of neighbours begins on each rank, `differing` or not; None of other nodes, and where it may be counted from the end.

    Of sizes that vary, unless `are_positions`.
    """
    if node.target not in (aten.slice.Tensor, aten.slice_scatter.default) or _step(node) != 1:
        return None
    begins = min(_POSITIONS[node.target])
    own = _argument(node, begins, 0) or 0
    own = size_of(own.meta["val"]) if isinstance(own, Node) else own
    starts = list(differing.get(begins, [own] * len(next(iter(differing.values())))))
    is_from_end = all(isinstance(start, int) and start < 0 for start in starts)
    is_from_start = all(
        start >= 0 if isinstance(start, int) else all(number > 0 for number, _ in start) for start in starts
    )
    return starts if is_from_end or is_from_start else None


def replace_varying(node: Node, starts: Sequence[Any], shape_of: Callable[[Node], list], sizes: Any) -> None:
    """The slice ends as many elements later as each rank takes, so that nothing has to be proved of its size."""
    tensor, dim = _tensor_and_dim(node)
    start = sizes.node(starts)
    if isinstance(starts[0], int) and starts[0] < 0:
        start = sizes.added(sizes.node(shape_of(tensor)[dim]), start)
    end = sizes.added(start, sizes.node(shape_of(_elements(node))[dim]))
    operands = 3 if node.target is aten.slice_scatter.default else 2
    node.args, node.kwargs = (*node.args[: operands - 1], dim, start, end), {}


@dataclass
class Positions:
    """Where a node takes or writes elements, on each rank."""

    dim: int
    step: int
    starts: list[int]
    ends: list[int]  # one after the last element
    counts: list[int]

    @property
    def is_slice(self) -> bool:
        """Whether a slice at positions that the program computes is right: not if its length were a quotient."""
        return self.step == 1 or len(set(self.counts)) == 1

    def vectors(self) -> list[list[int]]:
        """What the node needs to be a size."""
        return [self.starts, self.ends] if self.is_slice else [self.counts]


def positions_of(node: Node, values: Values, shape_of: Callable[[Node], list]) -> Positions:
    """`shape_of`: a node's sizes on all ranks."""
    tensor, dim = _tensor_and_dim(node)
    step = _step(node)
    starts = _starts(node, values, shape_of(tensor)[dim])
    counts = [1] * len(starts) if _is_single(node) else shape_of(_elements(node))[dim]
    ends = [start + max(step * (count - 1) + 1, 0) for start, count in zip(starts, counts, strict=True)]
    return Positions(dim, step, starts, ends, counts)


def replace(node: Node, found: Positions, constants: Any, sizes: Any) -> None:
    """The node's users get the same elements on each rank. `constants`: of all ranks; `sizes`: as nodes."""
    made = _slice(node, found, sizes) if found.is_slice else _gather(node, found, constants, sizes)
    made.meta.update(node.meta)  # its line too
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


def _slice(node: Node, found: Positions, sizes: Any) -> Node:
    first, end = sizes.node(found.starts), sizes.node(found.ends)
    is_write = node.target in (aten.slice_scatter.default, aten.select_scatter.default)
    operands = node.args[:2] if is_write else (_tensor(node),)
    if _is_single(node):
        target = aten.select_scatter.default if is_write else aten.select.int
        places: tuple[Any, ...] = (found.dim, first)
    else:
        target = aten.slice_scatter.default if is_write else aten.slice.Tensor
        places = (found.dim, first, end, found.step)
    with node.graph.inserting_before(node):
        return node.graph.call_function(target, (*operands, *places))


def _gather(node: Node, found: Positions, constants: Any, sizes: Any) -> Node:
    call = Calls(node, node.meta["val"].fake_mode)
    indices = call(aten.arange.default, sizes.node(found.counts), device=node.meta["val"].device)
    offsets = call(aten.mul.Tensor, indices, found.step)
    positions = call(aten.add.Tensor, offsets, constants.of(found.starts))
    if node.target is aten.slice_scatter.default:
        return call(aten.index_copy.default, _tensor(node), found.dim, positions, node.args[1])
    return call(aten.index_select.default, _tensor(node), found.dim, positions)


def _elements(node: Node) -> Node:
    """What is taken, or written."""
    return node.args[1] if node.target is aten.slice_scatter.default else node


class Calls:
    """Makes nodes before another one, with values of a fake mode."""

    def __init__(self, node: Node, fake: Any) -> None:
        self._node, self._fake = node, fake

    def __call__(self, target: Any, *arguments: Any, **named: Any) -> Node:
        with self._node.graph.inserting_before(self._node):
            made = self._node.graph.call_function(target, arguments, named)
        with self._fake:
            values = map_arg(arguments, lambda each: each.meta["val"])
            made.meta["val"] = target(*values, **named)
        return made


def _tensor(node: Node) -> Node:
    """What the node takes elements of, or writes them into."""
    return node.args[0].args[0] if node.target is operator.getitem else node.args[0]


def _tensor_and_dim(node: Node) -> tuple[Node, int]:
    if node.target is operator.getitem:
        parts = node.args[0]
        dim = _argument(parts, 1 if parts.target is aten.unbind.int else 2, 0)
    else:
        is_scatter = node.target in (aten.slice_scatter.default, aten.select_scatter.default)
        dim = _argument(node, 2 if is_scatter else 1, 0)
    return _tensor(node), dim % len(_sizes(_tensor(node)))


def _argument(node: Node, position: int, default: int) -> Any:
    if position < len(node.args):
        return node.args[position]
    name = node.target._schema.arguments[position].name
    return node.kwargs.get(name, default)


def _step(node: Node) -> int:
    """Of a slice or another node with positions."""
    if node.target is aten.slice.Tensor:
        return _argument(node, 4, 1)
    return _argument(node, 5, 1) if node.target is aten.slice_scatter.default else 1


def _sizes(node: Node) -> Sequence[int]:
    return node.meta["val"].shape


def _is_single(node: Node) -> bool:
    """Whether the dim is not there in the result."""
    is_unbound = node.target is operator.getitem and node.args[0].target is aten.unbind.int
    return node.target in (aten.select.int, aten.select_scatter.default) or is_unbound


def _count(node: Node, dim: int) -> Any:
    """Positions along the dim."""
    if _is_single(node):
        return 1
    return _sizes(_elements(node))[dim]


def _part_sizes(node: Node, dim: int) -> list[Any]:
    return [1 if _is_single(node) else part.shape[dim] for part in node.args[0].meta["val"]]


def _starts(node: Node, values: Values, sizes: Sequence[int]) -> list[int]:
    """The first position on each rank. `sizes`: of the dim on each."""
    if node.target is operator.getitem:
        parts = _part_sizes(node, _tensor_and_dim(node)[1])
        first = [0, *itertools.accumulate(parts)]
        return [first[index % len(parts)] for index in values[1]]
    position = min(_POSITIONS[node.target])
    starts = values.get(position, [_argument(node, position, 0) or 0] * len(sizes))
    counted = [start + size if start < 0 else start for start, size in zip(starts, sizes, strict=True)]
    return [min(max(start, 0), size) for start, size in zip(counted, sizes, strict=True)]
