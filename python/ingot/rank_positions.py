# SPDX-License-Identifier: Apache-2.0
"""Positions of slices that depend on the rank, for rank="all": slices become gathers at positions that the program computes.

A slice at 8 * rank takes rows 8 * rank + 0, 1, 2, ..., where the first position comes from a constant with one element per rank, and the
number of rows from `rank_sizes` if that differs too.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

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


def replace(node: Node, values: Values, constants: Any, shape_of: Callable[[Node], list], sizes: Any) -> None:
    """The node's users get what the gather returns. `constants`: of all ranks; `shape_of`: a node's sizes on them; `sizes`: as nodes."""
    call = Calls(node, _fake_mode(node))
    tensor, dim = _tensor_and_dim(node)
    step = _argument(node, 4, 1) if node.target is aten.slice.Tensor else 1
    step = _argument(node, 5, 1) if node.target is aten.slice_scatter.default else step
    starts = _starts(node, values, shape_of(tensor)[dim])
    counts = [1] * len(starts) if _is_single(node) else shape_of(_elements(node))[dim]
    if node.target is aten.slice.Tensor and step == 1 and not any(starts):
        node.args, node.kwargs = (tensor, dim, 0, sizes.node(counts)), {}
        return
    if len(set(counts)) == 1:
        offsets = constants.positions([step * k for k in range(counts[0])])
    else:
        offsets = call(aten.mul.Tensor, call(aten.arange.default, sizes.node(counts)), step)
    positions = call(aten.add.Tensor, offsets, constants.of(starts))
    if node.target in (aten.slice_scatter.default, aten.select_scatter.default):
        source = node.args[1]
        if node.target is aten.select_scatter.default:
            source = call(aten.unsqueeze.default, source, dim)
        result = call(aten.index_copy.default, tensor, dim, positions, source)
    else:
        result = call(aten.index_select.default, tensor, dim, positions)
        if _is_single(node):
            result = call(aten.squeeze.dim, result, dim)
    result.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)


def _elements(node: Node) -> Node:
    """What is taken, or written."""
    return node.args[1] if node.target is aten.slice_scatter.default else node


def _fake_mode(node: Node) -> Any:
    return node.meta["val"].fake_mode


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


def _tensor_and_dim(node: Node) -> tuple[Node, int]:
    """What the node takes elements of, or writes them into."""
    if node.target is operator.getitem:
        parts = node.args[0]
        position = 1 if parts.target is aten.unbind.int else 2
        tensor, dim = parts.args[0], _argument(parts, position, 0)
    else:
        is_scatter = node.target in (aten.slice_scatter.default, aten.select_scatter.default)
        tensor, dim = node.args[0], _argument(node, 2 if is_scatter else 1, 0)
    return tensor, dim % len(_sizes(tensor))


def _argument(node: Node, position: int, default: int) -> Any:
    if position < len(node.args):
        return node.args[position]
    name = node.target._schema.arguments[position].name
    return node.kwargs.get(name, default)


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
