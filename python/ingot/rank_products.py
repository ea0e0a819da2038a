# SPDX-License-Identifier: Apache-2.0
"""Linear layers multiply by the filled weights of rank_weights.py, for rank="all": what they make too much is cut off, and what they read
is filled up.

What is computed element by element between two such layers has the filled size too, so that it becomes part of the product before it:

    slice(linear(x, up)) -> gelu -> linear(, slice(down))
    linear(x, filled_up) -> gelu -> where(arange < size_of_rank, , 0) -> linear(, filled_down)

The zeros are chosen, not multiplied: what is behind the rank's own columns may be infinite where its input is.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot.rank_positions import Calls

aten = torch.ops.aten


@dataclass
class _Part:
    """The first `size` of all that a tensor has along its last dim."""

    whole: Node
    size: Node

    @property
    def count(self) -> int:
        return self.whole.meta["val"].shape[-1]


def move_slices(module: GraphModule, in_torch: Collection[Node]) -> None:
    """`in_torch`: nodes that torch will run, with the rank's own weights; they stay as they are."""
    parts: dict[Node, _Part] = {}
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node in in_torch:
            continue
        if node.target is aten.linear.default:
            _fill_operand(node, parts)
            _cut_result(node, parts)
        elif _is_by_element(node):
            _compute_whole(node, parts)


def _is_by_element(node: Node) -> bool:
    """Floats alone: integers that are nobody's may not be divided by."""
    tags, value = getattr(node.target, "tags", ()), node.meta.get("val")
    if torch.Tag.pointwise not in tags or torch.Tag.nondeterministic_seeded in tags:
        return False
    return (
        isinstance(value, torch.Tensor) and value.is_floating_point() and not node.target._schema.is_mutable
    )


def _part_of_weight(value: Any, axis: int) -> tuple[Node, Node] | None:
    """The filled weight and the size of a part along that axis."""
    is_part = (
        isinstance(value, Node) and value.target is aten.slice.Tensor and value.args[0].op == "placeholder"
    )
    if not is_part or value.args[1] != axis or not isinstance(value.args[3], Node):
        return None
    return value.args[0], value.args[3]


def _cut(node: Node, size: Node, count: int, parts: dict[Node, _Part]) -> None:
    """The node has `count` elements along its last dim from now on, and its users a part of them."""
    value = node.meta["val"]
    with node.graph.inserting_after(node):
        part = node.graph.call_function(aten.slice.Tensor, (node, value.ndim - 1, 0, size))
    node.replace_all_uses_with(part, delete_user_cb=lambda user: user is not part)
    part.meta["val"] = value
    with value.fake_mode:
        node.meta["val"] = torch.empty([*value.shape[:-1], count], dtype=value.dtype, device=value.device)
    parts[part] = _Part(node, size)


def _cut_result(node: Node, parts: dict[Node, _Part]) -> None:
    found = _part_of_weight(node.args[1], 0)
    bias = node.args[2] if len(node.args) > 2 else None
    own_bias = _part_of_weight(bias, 0) if bias is not None else None
    if found is None or (bias is not None and own_bias is None):
        return
    weight, size = found
    node.args = (node.args[0], weight) if own_bias is None else (node.args[0], weight, own_bias[0])
    _cut(node, size, weight.meta["val"].shape[0], parts)


def _compute_whole(node: Node, parts: dict[Node, _Part]) -> None:
    operands = [each for each in node.args if isinstance(each, Node)]
    found = [parts[each] for each in operands if each in parts]
    if not found or any(isinstance(each, Node) for each in node.kwargs.values()):
        return
    size, count = found[0].size, found[0].count
    wholes: dict[Node, Node] = {}
    for operand in operands:
        whole = _whole_of(operand, size, count, parts)
        if whole is None:
            return
        wholes[operand] = whole
    node.args = tuple(wholes[each] if isinstance(each, Node) else each for each in node.args)
    _cut(node, size, count, parts)


def _whole_of(operand: Node, size: Node, count: int, parts: dict[Node, _Part]) -> Node | None:
    """What is read in place of an operand by who computes all; None if there is no such thing."""
    if operand in parts:
        part = parts[operand]
        return part.whole if (part.size, part.count) == (size, count) else None
    weight = _part_of_weight(operand, 0)
    if weight is not None and operand.meta["val"].ndim == 1:
        return weight[0] if (weight[1], weight[0].meta["val"].shape[0]) == (size, count) else None
    value = operand.meta.get("val")
    is_broadcast = isinstance(value, torch.Tensor) and (value.ndim == 0 or value.shape[-1] == 1)
    return operand if is_broadcast or isinstance(value, (int, torch.SymInt)) else None


def _fill_operand(node: Node, parts: dict[Node, _Part]) -> None:
    found = _part_of_weight(node.args[1], 1)
    if found is None:
        return
    (weight, size), x = found, node.args[0]
    largest = weight.meta["val"].shape[1]
    call = Calls(node, x.meta["val"].fake_mode)
    with node.graph.inserting_before(node):
        # The size is asked for: where torch runs this node, the weight is the rank's own, and nothing is missing.
        whole = node.graph.call_function(aten.sym_size.int, (weight, 1))
    whole.meta["val"] = largest
    part = parts.get(x)
    if part is not None and (part.size, part.count) == (size, largest):
        value = part.whole.meta["val"]
        is_own = call(aten.lt.Scalar, call(aten.arange.default, largest, device=value.device), size)
        filled = call(aten.where.ScalarOther, is_own, part.whole, 0.0)
        filled = call(aten.slice.Tensor, filled, value.ndim - 1, 0, whole)
    else:
        with node.graph.inserting_before(node):
            missing = node.graph.call_function(operator.sub, (whole, size))
            missing.meta["val"] = largest - size.meta["val"]
            filled = node.graph.call_function(aten.constant_pad_nd.default, (x, [0, missing]))
        value = x.meta["val"]
        with value.fake_mode:
            filled.meta["val"] = torch.empty(
                [*value.shape[:-1], largest], dtype=value.dtype, device=value.device
            )
    node.args = (filled, weight, *node.args[2:])
