# SPDX-License-Identifier: Apache-2.0
"""Numbers that follow from the rank alone: each part of a graph computes those that it needs, so that engines know them too."""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from ingot import rank_operators  # noqa: F401


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


def consumer_of(node: Node) -> Node:
    """The call that a number was copied for."""
    while is_rank_number(node):
        (node,) = node.users
    return node


def copy_to_users(module: GraphModule) -> None:
    """Gives each call that reads such numbers its own, right before it: they are in the same part then."""
    for node in list(module.graph.nodes):
        if is_rank_number(node):
            continue
        with module.graph.inserting_before(node):
            for number in filter(is_rank_number, node.all_input_nodes):
                node.replace_input_with(number, _copied(module, number))
    for node in reversed(list(module.graph.nodes)):
        if is_rank_number(node) and not node.users:
            module.graph.erase_node(node)


def _copied(module: GraphModule, number: Node) -> Node:
    """A copy whose numbers have no other user."""
    if not is_rank_number(number):
        return number  # a weight
    return module.graph.node_copy(number, lambda source: _copied(module, source))
