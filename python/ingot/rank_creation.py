# SPDX-License-Identifier: Apache-2.0
"""Tensors of a number or a range that depend on the rank, for rank="all", where no overload takes tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from ingot.rank_expressions import Size, is_constant
from ingot.rank_positions import Calls
from ingot.rank_sizes import Sizes
from ingot.rank_traces import refusal

aten = torch.ops.aten

# Which arguments begin a range, and are its step.
_RANGES: Mapping[Any, tuple[int | None, int | None]] = {
    aten.arange.default: (None, None),
    aten.arange.start: (0, None),
    aten.arange.start_step: (0, 2),
}
# Which argument is the number that all elements have.
_FILLED: Mapping[Any, int] = {
    aten.full.default: 1,
    aten.scalar_tensor.default: 0,
    aten.full_like.default: 1,
    aten.new_full.default: 2,
}


def is_creation(node: Node) -> bool:
    return node.target in _RANGES or node.target in _FILLED


def replace(
    node: Node,
    values: Mapping[int | str, Sequence[Any]],
    constants: Any,
    shape: list[Sequence[Size]],
    sizes: Sizes,
) -> None:
    """Values: those of the differing arguments, on each rank."""
    call = Calls(node, node.meta["val"].fake_mode)
    dtype = node.meta["val"].dtype
    made = (
        _range(node, values, constants, shape, sizes, call)
        if node.target in _RANGES
        else _filled(node, values, constants, shape, sizes, call)
    )
    made = call(aten._to_copy.default, made, dtype=dtype)
    made.meta.update(node.meta)  # its line too
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


def _range(
    node: Node, values: Mapping, constants: Any, shape: list[Sequence[Size]], sizes: Sizes, call: Calls
) -> Node:
    """0, 1, 2, ... times the step, beyond where it begins: of integers, so that nothing is rounded."""
    begins, step = _RANGES[node.target]
    is_whole = not any(isinstance(value, float) for vector in values.values() for value in vector)
    if node.meta["val"].dtype.is_floating_point or not is_whole or step in values:
        raise refusal(node, "a range of other than integers, or with another step, depends on the rank")
    count = shape[0]
    made = call(aten.arange.default, sizes.node(count), device=node.meta["val"].device)
    if step is not None and len(node.args) > step and node.args[step] != 1:
        made = call(aten.mul.Tensor, made, node.args[step])
    if begins in values:
        own = constants.of if is_constant(values[begins]) else sizes.node
        return call(aten.add.Tensor, made, own(values[begins]))
    first = 0 if begins is None else node.args[begins]
    return made if first == 0 else call(aten.add.Tensor, made, first)


def _filled(
    node: Node, values: Mapping, constants: Any, shape: list[Sequence[Size]], sizes: Sizes, call: Calls
) -> Node:
    slot = _FILLED[node.target]
    if slot not in values:  # the sizes alone differ
        number: Any = constants.of([node.args[slot]] * constants.ranks)
    elif any(isinstance(value, tuple) for value in values[slot]):
        like = node.meta["val"]
        number = call(aten.full.default, [], sizes.node(values[slot]), dtype=like.dtype, device=like.device)
    else:
        number = constants.of(values[slot])
    return call(aten.expand.default, number, [sizes.node(size) for size in shape])
