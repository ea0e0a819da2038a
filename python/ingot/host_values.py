# SPDX-License-Identifier: Apache-2.0
"""Tensors that a graph for a GPU computes on the host from nothing but its constants, as positions by `torch.arange(n)` are.

Eager computes them there and copies them. On the GPU they are as right, and neither leave the engine nor wait for the host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, Node
from torch.utils import _pytree

_READS = {torch.ops.aten._local_scalar_dense.default, torch.ops.aten.item.default}  # numbers for the host


def move(graph: Graph, gpu: torch.device, constants: Collection[Node] = ()) -> None:
    """Changes the nodes of the graph that compute on the host to ones that compute on `gpu`, where nobody can tell.

    `constants`: placeholders whose values are the program's own and never change, as its attributes are; they are copied.
    """
    given = {node for node in graph.nodes if node.op == "get_attr" or node in constants}
    copies: dict[Node, Node] = {}
    for group in _groups(graph, given):
        if all(_may_move(node) for node in group):
            for node in group:
                _move(node, gpu)
                _read_copies(node, gpu, given, copies)


def _groups(graph: Graph, given: Collection[Node]) -> Iterator[list[Node]]:
    """The nodes that compute tensors of the host, those that read each other in one group; `given` are in none."""
    group_of: dict[Node, dict[Node, None]] = {}
    for node in graph.nodes:
        if not _is_of_host(node) or node in given:
            continue
        own = group_of[node] = {node: None}
        for source in node.all_input_nodes:
            other = group_of.get(source, own)
            if other is not own:
                other |= own
                group_of |= dict.fromkeys(own, other)
                own = other
    unique = {id(group): list(group) for group in group_of.values()}
    yield from unique.values()


def tensors_of(node: Node) -> list[torch.Tensor]:
    """A node's results, as far as they are tensors."""
    return [value for value in _pytree.tree_leaves(node.meta.get("val")) if isinstance(value, torch.Tensor)]


def _is_of_host(node: Node) -> bool:
    return any(value.device.type == "cpu" for value in tensors_of(node))


def _may_move(node: Node) -> bool:
    """Not what callers pass and get, numbers are read from, other generators draw, or follows from the GPU's own."""
    own = isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "aten"
    if node.op != "call_function" or not own or torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    devices = [value for value in _pytree.tree_leaves((node.args, node.kwargs)) if isinstance(value, torch.device)]  # fmt: skip
    as_keyword = [node.kwargs["device"]] if node.kwargs.get("device") is not None else []
    return (
        devices == as_keyword
        and not node.kwargs.get("pin_memory")
        and all(isinstance(value, FakeTensor) for value in tensors_of(node))
        and all(_is_of_host(source) for source in node.all_input_nodes if tensors_of(source))
        and not any(user.op == "output" or user.target in _READS for user in node.users)
    )


def _move(node: Node, gpu: torch.device) -> None:
    takes_device = any(argument.name == "device" for argument in node.target._schema.arguments)
    reads_tensors = any(tensors_of(source) for source in node.all_input_nodes)
    if takes_device and (node.kwargs.get("device") is not None or not reads_tensors):
        node.update_kwarg("device", gpu)
    for user in list(node.users):  # assertions, which have no result; an update makes them users anew
        if not tensors_of(user) and user.kwargs.get("device") is not None:
            user.update_kwarg("device", gpu)
    node.meta["val"] = _pytree.tree_map_only(FakeTensor, lambda value: _on(value, gpu), node.meta["val"])


def _read_copies(node: Node, gpu: torch.device, given: Collection[Node], copies: dict[Node, Node]) -> None:
    """Makes a node that has moved read copies on the GPU of what is given on the host. One copy of each is for all."""
    for source in node.all_input_nodes:
        if source not in given or not _is_of_host(source):
            continue
        if source not in copies:
            copies[source] = _copied(source, gpu)
        node.replace_input_with(source, copies[source])


def _copied(source: Node, gpu: torch.device) -> Node:
    last = source
    while last.op == "placeholder" and last.next.op == "placeholder":  # which stay together
        last = last.next
    with source.graph.inserting_after(last):
        copy = source.graph.call_function(torch.ops.aten._to_copy.default, (source,), {"device": gpu})
    copy.meta["val"] = _on(source.meta["val"], gpu)
    return copy


def _on(value: FakeTensor, gpu: torch.device) -> torch.Tensor:
    with value.fake_mode:
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=gpu)
