# SPDX-License-Identifier: Apache-2.0
"""Values with gaps in memory that calls in torch read of engines, whose results are dense."""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import GraphModule, Node

from ingot.capture import target_name
from ingot.part_numbers import is_part_number
from ingot.views import has_gaps

# Calls that read the sizes or the values of a tensor, and not its strides.
_WITHOUT_STRIDES = (
    "_operator.getitem",
    "aten._local_scalar_dense.default",
    "aten.item.default",
    "aten.sym_numel.default",
    "aten.sym_size.int",
)
_SHOWS_GAPS = "ingot_shows_gaps"


def shows_gaps(node: Node) -> bool:
    """Whether the node is such a copy."""
    return _SHOWS_GAPS in node.meta


class GapsInTorch:
    """Gives calls in torch copies of such values (slices, expanded dims), which torch computes out of dense ones before the call.

    So their strides are eager's. An engine keeps the values that it reads itself.
    """

    def __init__(self, module: GraphModule, in_engines: Iterable[Node]) -> None:
        self._graph = module.graph
        self._in_engines = set(in_engines)
        self._copies: dict[Node, Node] = {}  # of the current part
        self._added: list[Node] = []
        self._copied: set[Node] = set()

    def begin_part(self) -> None:
        self._copies = {}

    def add_copies(self, call: Node) -> list[Node]:
        """Makes a call in torch read copies; returns those that it is the first to read."""
        self._added = []
        if target_name(call.target) in _WITHOUT_STRIDES:
            return []
        with self._graph.inserting_before(call):
            for value in call.all_input_nodes:
                if value in self._in_engines and has_gaps(value.meta.get("val")):
                    call.replace_input_with(value, self._copy(value))
        return self._added

    def erase_unread(self) -> set[Node]:
        """The values that nothing reads but the copies."""
        unread = set()
        for node in reversed(list(self._graph.nodes)):
            if node in self._copied and not node.users:
                self._graph.erase_node(node)
                unread.add(node)
        return unread

    def _copy(self, value: Node) -> Node:
        example = value.meta.get("val")
        is_copied = isinstance(example, (tuple, list)) or has_gaps(example) or is_part_number(value)
        if value not in self._in_engines or not is_copied:
            return value
        if value not in self._copies:
            self._copies[value] = self._graph.node_copy(value, self._copy)
            self._copies[value].meta[_SHOWS_GAPS] = True
            self._added.append(self._copies[value])
            self._copied.add(value)
        return self._copies[value]
