# SPDX-License-Identifier: Apache-2.0
"""The graphs of a program, for rank="all": the whole, and those of branches in it (torch.cond)."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field

from torch.fx import GraphModule, Node

from ingot.capture import ANY_SIGN, attribute_of, target_name

_GRAPHS = slice(1, 3)  # the arguments of a branch that are its graphs
_OPERANDS = 3


@dataclass
class Body:
    """A graph, and the call in the graph around it that runs it."""

    module: GraphModule
    call: Node | None = None
    outer: Body | None = None
    _lifted: dict[Node, Node] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Node]:
        return list(self.module.graph.nodes)

    def beginning(self) -> Node:
        """A node of no use, before which all new ones of the beginning go: others may be replaced. Integers of calls are found
        before it."""
        nodes = [node for node in self.module.graph.nodes if node.op not in ("placeholder", "get_attr")]
        chosen = [position for position, node in enumerate(nodes) if node.meta.get(ANY_SIGN)]
        first = nodes[chosen[-1] + 1 if chosen else 0]
        with self.module.graph.inserting_before(first):
            return self.module.graph.call_function(operator.pos, (0,))

    def lifted(self, value: Node) -> Node:
        """A value of the graph around this one, as one more operand of the branch, which both of its graphs take."""
        if value not in self._lifted:
            assert self.call is not None
            arguments = list(self.call.args)
            arguments[_OPERANDS] = (*arguments[_OPERANDS], value)
            self.call.args = tuple(arguments)
            for graph in self.call.args[_GRAPHS]:
                module = attribute_of(graph.graph.owning_module, graph.target)
                taken = _placeholder(module, value)
                if module is self.module:
                    self._lifted[value] = taken
        return self._lifted[value]


def _placeholder(module: GraphModule, value: Node) -> Node:
    before = [node for node in module.graph.nodes if node.op == "placeholder"]
    first = next(iter(module.graph.nodes))
    with module.graph.inserting_after(before[-1]) if before else module.graph.inserting_before(first):
        node = module.graph.placeholder(f"of_rank_{len(before)}")
    node.meta["val"] = value.meta["val"]
    return node


def bodies_of(module: GraphModule) -> list[Body]:
    """The graph itself, then those in it whose nodes may differ between ranks."""
    return list(_within(Body(module)))


def _within(body: Body) -> Iterator[Body]:
    yield body
    for node in body.nodes:
        for graph in graphs_of(node):
            yield from _within(Body(attribute_of(body.module, graph.target), node, body))


def graphs_of(node: Node) -> list[Node]:
    """Those of a branch, each of which only it runs."""
    if node.op != "call_function" or target_name(node.target) != "higher_order.cond":
        return []
    graphs = [graph for graph in node.args[_GRAPHS] if isinstance(graph, Node) and graph.op == "get_attr"]
    names = [graph.target for graph in graphs]
    others = [
        other.target
        for other in node.graph.nodes
        if other.op == "get_attr" and other not in graphs and other.target in names
    ]
    is_own = len(graphs) == 2 and len(set(names)) == 2 and not others
    return graphs if is_own and all(len(graph.users) == 1 for graph in graphs) else []
