# SPDX-License-Identifier: Apache-2.0
"""Where memory matters, not just values: views that a graph returns, and strides of engine results that torch reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.fx import Graph, GraphModule, Node

from ingot import compat
from ingot.capture import target_name


def take_views(module: GraphModule, mutations: dict[Node, Node]) -> GraphModule | None:
    """Takes inputs, views of inputs, views of memory that is returned more than once, and views with gaps, out of what the graph
    returns.

    What they view is returned in their place. The result makes the outputs out of all inputs, as they are after the call, and
    what the graph now returns. `mutations`: new values of inputs, which are the last outputs and stay. None: there are no such.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    output = next(node for node in module.graph.nodes if node.op == "output")
    returned = list(output.args[0])
    users, rest = returned[: len(returned) - len(mutations)], returned[len(returned) - len(mutations) :]
    shown = {value: given for given, value in mutations.items()} | {given: given for given in placeholders}
    anchors = _anchors(users, shown)
    tail = _Tail(placeholders, shown)
    makers = [tail.make(value, anchors) for value in users]
    if not tail.has_views:
        return None
    tail.graph.output(tuple(makers))
    output.args = ((*tail.needed, *rest),)
    for node in reversed(list(module.graph.nodes)):
        if viewed_by(node) is not None and not node.users:
            module.graph.erase_node(node)
    module.recompile()
    return GraphModule(module, tail.graph)


def viewed_by(node: object) -> Node | None:
    """The node that a node is a view of; None if it is not a view."""
    if not isinstance(node, Node) or node.op != "call_function":
        return None
    if target_name(node.target) == "_operator.getitem":
        return viewed_by(node.args[0])
    schema = getattr(node.target, "_schema", None)
    alias = schema.returns[0].alias_info if schema is not None and schema.returns else None
    return (
        node.args[0] if alias is not None and not alias.is_write and isinstance(node.args[0], Node) else None
    )


def storage_order(example: object) -> list[int] | None:
    """The dims of a tensor from the slowest in memory to the fastest; None if they are in order, or have gaps."""
    order = _dense_order(example)
    return None if order is None or order == sorted(order) else order


def has_gaps(example: object) -> bool:
    """Whether the elements of a tensor are dense in no order of its dims: they have others between them, or share memory."""
    is_strided = isinstance(example, torch.Tensor) and example.layout is torch.strided
    is_empty = is_strided and 0 in map(compat.size_seen, example.shape)
    return is_strided and not is_empty and _dense_order(example) is None


def _dense_order(example: object) -> list[int] | None:
    """The dims of a tensor from the slowest in memory to the fastest; None if they have gaps."""
    if not isinstance(example, torch.Tensor) or example.layout is not torch.strided:
        return None
    sizes = [compat.size_seen(size) for size in example.shape]
    strides = [compat.size_seen(stride) for stride in example.stride()]
    order = sorted(range(len(sizes)), key=lambda dim: (-strides[dim], dim))
    expected = 1
    for dim in reversed(order):
        if sizes[dim] != 1 and strides[dim] != expected:
            return None
        expected *= sizes[dim]
    return order


def in_storage_order(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """The same elements with the dims in that order in memory."""
    return tensor.permute(*order).contiguous().permute(*inverse_of(order))


def storage_orders(examples: Iterable[object]) -> dict[int, list[int]]:
    """By position, where tensors have one."""
    orders = {k: storage_order(example) for k, example in enumerate(examples)}
    return {k: order for k, order in orders.items() if order is not None}


def restore_orders(results: list, orders: Mapping[int, Sequence[int]]) -> list:
    """In place: the results at these positions in these storage orders."""
    for k, order in orders.items():
        results[k] = in_storage_order(results[k], order)
    return results


def inverse_of(order: Sequence[int]) -> list[int]:
    return [list(order).index(dim) for dim in range(len(order))]


_KEEPS_ORDER = "ingot_keeps_order"


def keeps_order(node: Node) -> bool:
    """Whether `keep_orders` added the node."""
    return _KEEPS_ORDER in node.meta


def keep_orders(module: GraphModule, mutations: dict[Node, Node]) -> dict[int, list[int]]:
    """Makes the graph return dense results in the storage order that they have in eager, with their dims in that order.

    Returns, by output, the permutation that restores the dims: what follows a graph break may depend on strides.
    """
    output = next(node for node in module.graph.nodes if node.op == "output")
    returned = list(output.args[0])
    restored: dict[int, list[int]] = {}
    for k, value in enumerate(returned[: len(returned) - len(mutations)]):
        example = value.meta.get("val") if isinstance(value, Node) else None
        order = storage_order(example)
        if order is None:
            continue
        with module.graph.inserting_before(output):
            returned[k] = module.graph.call_function(torch.ops.aten.permute.default, (value, order))
        returned[k].meta = {key: kept for key, kept in value.meta.items() if key != "tensor_meta"}
        returned[k].meta |= {"val": example.permute(order), _KEEPS_ORDER: True}
        restored[k] = inverse_of(order)
    output.args = (tuple(returned),)
    module.recompile()
    return restored


def _root(node: Node, shown: dict[Node, Node]) -> Node:
    """The root of a chain of views. The new value of an input has memory of its own, even if it is computed as a view."""
    base = None if node in shown else viewed_by(node)
    return node if base is None else _root(base, shown)


def _anchors(users: Sequence[object], shown: dict[Node, Node]) -> set[Node]:
    """The values whose memory the caller sees more than once, or with gaps."""
    values = [value for value in users if isinstance(value, Node)]
    roots = [_root(value, shown) for value in values]
    several = {root for root in roots if root in shown or roots.count(root) > 1}
    alone = {value for value, root in zip(values, roots, strict=True) if root not in several}
    bases = {_dense_base(value) for value in alone} - alone
    return several | {base for base in bases if not has_gaps(base.meta.get("val"))}


def _dense_base(node: Node) -> Node:
    """The nearest value without gaps that a node is a view of; the root if it has gaps itself."""
    base = viewed_by(node)
    return node if base is None or not has_gaps(node.meta.get("val")) else _dense_base(base)


def _shows(node: Node, anchors: set[Node]) -> bool:
    """Whether a node is a view of one of them."""
    base = viewed_by(node)
    return base is not None and (base in anchors or _shows(base, anchors))


class _Tail:
    """The graph that computes the outputs. `needed` are its inputs besides those of the original."""

    def __init__(self, placeholders: Sequence[Node], shown: dict[Node, Node]) -> None:
        self.graph = Graph()
        self.needed: list[Node] = []
        self.has_views = False
        self._made = {node: self.graph.placeholder(node.name) for node in placeholders}
        self._made |= {value: self._made[given] for value, given in shown.items()}
        self._last = next(iter(reversed(self.graph.nodes)), None)

    def make(self, value: object, anchors: set[Node]) -> object:
        """The node that replaces one output."""
        if not isinstance(value, Node):
            return value
        self.has_views |= value in self._made
        if _shows(value, anchors) and self._can_copy(value, anchors):
            self.has_views = True
            return self._copy(value, anchors)
        return self._take(value)

    def _take(self, value: Node) -> Node:
        if value not in self._made:
            self.needed.append(value)
            with self.graph.inserting_after(self._last):
                self._made[value] = self._last = self.graph.placeholder(f"viewed_{len(self.needed)}")
        return self._made[value]

    def _can_copy(self, value: Node, anchors: set[Node]) -> bool:
        if value in self._made or value in anchors:
            return True
        is_number = isinstance(value.meta.get("val"), (torch.SymInt, torch.SymBool))
        return (viewed_by(value) is not None or is_number) and all(
            self._can_copy(source, anchors) for source in value.all_input_nodes
        )

    def _copy(self, value: Node, anchors: set[Node]) -> Node:
        if value in anchors:
            return self._take(value)
        if value not in self._made:
            self._made[value] = self.graph.node_copy(value, lambda source: self._copy(source, anchors))
        return self._made[value]
