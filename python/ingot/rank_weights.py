# SPDX-License-Identifier: Apache-2.0
"""Weights of which the ranks have parts of different sizes, for rank="all".

All ranks' engines have the type of the largest part, filled up with zeros, and the program takes the rows that are its rank's. An entry of
the option `shards` says how many these are on each rank. Before:

    linear(x, w)                       w: 8, 8, 8 and 7 rows on four ranks

after, where products have the fixed sizes for which weights are packed in advance:

    slice(linear(x, filled), -1, 0, size_of_rank)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import compat
from ingot.capture import Input
from ingot.rank_sizes import Sizes, Vector
from ingot.rank_traces import refusal

aten = torch.ops.aten


def fill_up(
    node: Node, given: Input, shape: Sequence[Vector], first: Node, sizes: Sizes
) -> tuple[Input, str, Vector]:
    """The input, its entry of `shards`, and the sizes; users of the placeholder get a slice of it."""
    axes = [axis for axis, vector in enumerate(shape) if len(set(vector)) > 1]
    if len(axes) > 1 or given.data is None:
        raise refusal(node, "a weight has other sizes along several axes")
    axis = axes[0]
    largest = [max(vector) for vector in shape]
    own = node.meta["val"]
    with own.fake_mode:
        node.meta["val"] = torch.empty(largest, dtype=own.dtype, device=own.device)
    size = sizes.node(shape[axis])
    with first.graph.inserting_before(first):
        part = first.graph.call_function(aten.slice.Tensor, (node, axis, 0, size))
    part.meta["val"] = own
    node.replace_all_uses_with(part, delete_user_cb=lambda user: user is not part)
    return replace(given, filled=_filled(given.data, largest)), f"{given.name}:{axis}", shape[axis]


def filled_up(node: Node, given: Input) -> Input:
    """The input with zeros up to the size that its placeholder has."""
    value = node.meta.get("val")
    if given.data is None or not isinstance(value, torch.Tensor):
        return given
    shape = [size for size in value.shape if isinstance(size, int)]
    is_other = len(shape) == value.ndim and list(given.data.shape) != shape
    return replace(given, filled=_filled(given.data, shape)) if is_other else given


def _filled(data: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    with compat.with_real_tensors():
        filled = torch.zeros(shape, dtype=data.dtype)
        filled[tuple(slice(size) for size in data.shape)] = data.detach().cpu()
        return filled


def move_slices(module: GraphModule) -> None:
    """Linear layers multiply by the filled weights: what they make too much is cut off, and what they read is filled up."""
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not aten.linear.default:
            continue
        _fill_operand(node)
        _cut_result(node)


def _part_of(value: Any, axis: int) -> tuple[Node, Node] | None:
    """The filled weight and the size of a part along that axis."""
    is_part = (
        isinstance(value, Node) and value.target is aten.slice.Tensor and value.args[0].op == "placeholder"
    )
    if not is_part or value.args[1] != axis or not isinstance(value.args[3], Node):
        return None
    return value.args[0], value.args[3]


def _cut_result(node: Node) -> None:
    found = _part_of(node.args[1], 0)
    bias = node.args[2] if len(node.args) > 2 else None
    own_bias = _part_of(bias, 0) if bias is not None else None
    if found is None or (bias is not None and own_bias is None):
        return
    weight, size = found
    cut = node.meta["val"]
    dim = cut.ndim - 1
    with node.graph.inserting_after(node):
        part = node.graph.call_function(aten.slice.Tensor, (node, dim, 0, size))
    node.replace_all_uses_with(part, delete_user_cb=lambda user: user is not part)
    node.args = (node.args[0], weight) if own_bias is None else (node.args[0], weight, own_bias[0])
    part.meta["val"] = cut
    with cut.fake_mode:
        node.meta["val"] = torch.empty([*cut.shape[:-1], weight.meta["val"].shape[0]], dtype=cut.dtype, device=cut.device)  # fmt: skip


def _fill_operand(node: Node) -> None:
    found = _part_of(node.args[1], 1)
    if found is None:
        return
    (weight, size), x = found, node.args[0]
    largest = weight.meta["val"].shape[1]
    with node.graph.inserting_before(node):
        # The size is asked for: where torch runs this node, the weight is the rank's own, and nothing is missing.
        whole = node.graph.call_function(aten.sym_size.int, (weight, 1))
        whole.meta["val"] = largest
        missing = node.graph.call_function(operator.sub, (whole, size))
        missing.meta["val"] = largest - size.meta["val"]
        filled = node.graph.call_function(aten.constant_pad_nd.default, (x, [0, missing]))
    value = x.meta["val"]
    with value.fake_mode:
        filled.meta["val"] = torch.empty([*value.shape[:-1], largest], dtype=value.dtype, device=value.device)
    node.args = (filled, weight, *node.args[2:])
