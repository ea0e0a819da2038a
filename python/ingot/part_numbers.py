# SPDX-License-Identifier: Apache-2.0
"""Numbers that each part of a graph computes for itself, so that engines know them too: those that follow from the rank alone,
from integers that calls find in tensors (`item()`), and what is not an expression over sizes (floats, comparisons, rounded floats)."""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from ingot import rank_operators  # noqa: F401
from ingot.capture import target_name
from ingot.dim_texts import dim_text
from ingot.errors import UnsupportedError

_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_OF_NUMBERS = ("_operator.", "torch.sym_", "torch._sym_", "math.", "builtins.round")


def is_rank_number(node: Node) -> bool:
    """Whether it is a size of ingot::size_of_rank, one of a weight (rank_weights), or a sum of such."""
    if node.op != "call_function" or not isinstance(node.meta.get("val"), (int, torch.SymInt)):
        return False
    if node.target is torch.ops.ingot.size_of_rank.default:
        return True
    sources = node.all_input_nodes
    if node.target is torch.ops.aten.sym_size.int:
        return isinstance(node.meta["val"], int) and sources[0].op == "placeholder"
    return bool(sources) and all(is_rank_number(source) for source in sources)


def is_found_number(node: Node) -> bool:
    """Whether it is computed from other numbers, `item()` of integers among them, or is not an expression over sizes."""
    if not _is_computed(node):
        return False
    sources = node.all_input_nodes
    return not _is_dim(node) or any(_is_item(source) or is_found_number(source) for source in sources)


def is_part_number(node: Node) -> bool:
    return is_rank_number(node) or is_found_number(node)


def _is_computed(node: Node) -> bool:
    return (
        node.op == "call_function"
        and isinstance(node.meta.get("val"), _NUMBERS)
        and target_name(node.target).startswith(_OF_NUMBERS)
        and all(isinstance(source.meta.get("val"), _NUMBERS) for source in node.all_input_nodes)
    )


def _is_dim(node: Node) -> bool:
    """Whether a part that gets the number knows it, by the symbols in it."""
    value = node.meta["val"]
    try:
        return isinstance(value, torch.SymInt) and bool(dim_text(value.node.expr))
    except UnsupportedError:
        return False


def _is_item(node: Node) -> bool:
    items = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default)
    return node.target in items and isinstance(node.meta.get("val"), torch.SymInt)


def consumer_of(node: Node) -> Node:
    """The call that a number was copied for."""
    while is_part_number(node):
        (node,) = node.users
    return node


def copy_to_users(module: GraphModule) -> None:
    """Gives each call that reads such numbers its own, right before it: they are in the same part then."""
    copies: dict[Node, str] = {}
    for node in list(module.graph.nodes):
        if is_part_number(node):
            continue
        with module.graph.inserting_before(node):
            for number in filter(is_part_number, node.all_input_nodes):
                node.replace_input_with(number, _copied(module, number, copies))
    for node in reversed(list(module.graph.nodes)):
        if is_part_number(node) and not node.users:
            module.graph.erase_node(node)
    taken = {node.name for node in module.graph.nodes}
    for node, name in copies.items():  # errors name them as the program does
        if name not in taken:
            node.name = name
            taken.add(name)


def _copied(module: GraphModule, number: Node, copies: dict[Node, str]) -> Node:
    """A copy whose numbers have no other user."""
    if not is_part_number(number):
        return number  # a weight
    copy = module.graph.node_copy(number, lambda source: _copied(module, source, copies))
    copies[copy] = number.name
    return copy
