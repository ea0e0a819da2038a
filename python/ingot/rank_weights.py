# SPDX-License-Identifier: Apache-2.0
"""Weights of which the ranks have parts of different sizes, for rank="all".

All ranks' engines have the type of the largest part, filled up with zeros, and the program takes the rows that are its rank's. An entry of
the option `shards` says how many these are on each rank. Before:

    linear(x, w)                       w: 8, 8, 8 and 7 rows on four ranks

after, where products have the fixed sizes for which weights are packed in advance (`rank_products`):

    slice(linear(x, filled), -1, 0, size_of_rank)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.fx import Node

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
