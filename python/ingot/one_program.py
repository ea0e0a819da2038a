# SPDX-License-Identifier: Apache-2.0
"""One program for all ranks, of the traces of all of them (docs/design/043): the option rank="all".

The ranks compare their traces. Scalars and positions of slices that differ become constants stored per rank, from which the program takes
its rank's; anything else that differs is refused with the node's name.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import compat, rank_positions, ranks
from ingot.capture import Input, attribute_of, target_name
from ingot.errors import UserError
from ingot.kinds import InputRole
from ingot.source import source_of

Row = dict[str, Any]  # what one node of a trace is: everything but `scalars` has to be the same on all ranks


def unify(module: GraphModule, inputs: Sequence[Input]) -> None:
    """Makes the graph that of all ranks. UserError INGOT-U359 names the node where they differ in more than a scalar."""
    names = sorted(set(ranks.groups_in(module)))
    if not names:
        return
    group = ranks.torch_group(names[0])
    if len(names) > 1:
        raise UserError(
            f'rank="all" is for programs with one group of ranks; this one has {", ".join(names)}',
            code="INGOT-U359",
            advice="let each rank build its own engine: leave out rank=",
        )
    if group.size() == 1:
        return
    nodes = list(module.graph.nodes)
    traces = ranks.shared_texts(group, json.dumps(_rows(module, nodes, inputs)))
    _replace_scalars(module, _tables(nodes, [json.loads(text) for text in traces]), group)


# ---- what a trace is ----
def _rows(module: GraphModule, nodes: Sequence[Node], inputs: Sequence[Input]) -> list[Row]:
    positions = {node: position for position, node in enumerate(nodes)}
    given = iter(inputs)
    return [
        _row(module, node, positions, next(given, None) if node.op == "placeholder" else None)
        for node in nodes
    ]


def _row(module: GraphModule, node: Node, positions: dict[Node, int], given: Input | None) -> Row:
    scalars: list[float] = []

    def keep(scalar: float) -> str:
        scalars.append(scalar)
        return type(scalar).__name__

    arguments = _walk((node.args, node.kwargs), keep, lambda other: f"%{positions[other]}")
    row: Row = {"operator": node.op, "arguments": repr(arguments), "scalars": scalars}
    if node.op == "call_function":
        row["operator"] = target_name(node.target)
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        row["type"] = f"{value.dtype} {[str(size) for size in value.shape]}"
    if given is not None:
        row["value"] = f"{given.kind} {given.literal!r}"
        is_constant = given.kind == InputRole.CONSTANT
        row["value"] += _content(given.data) if is_constant or not _is_weight(given.data) else ""
    elif node.op == "get_attr":
        row["value"] = _content(attribute_of(module, node.target))
    return row


def _is_weight(data: torch.Tensor | None) -> bool:
    """Weights may have any value; other tensors are constants of the program."""
    return data is not None and (data.is_floating_point() or data.is_complex())


def _content(data: Any) -> str:
    """Of a nested graph, all that it is: its scalars cannot differ either."""
    if isinstance(data, GraphModule):
        rows = _rows(data, list(data.graph.nodes), [])
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
    if not isinstance(data, torch.Tensor):
        return ""
    content = data.detach().cpu().contiguous().view(-1)
    return hashlib.sha256(content.view(torch.uint8).numpy().tobytes() if content.numel() else b"").hexdigest()


def _walk(argument: Any, scalar: Callable[[Any], Any], node: Callable[[Node], Any]) -> Any:
    """The arguments with their scalars and nodes replaced, in one order."""
    if isinstance(argument, Node):
        return node(argument)
    if isinstance(argument, (int, float)) and not isinstance(argument, bool):
        return scalar(argument)
    if isinstance(argument, (list, tuple)):
        walked = [_walk(each, scalar, node) for each in argument]
        return tuple(walked) if isinstance(argument, tuple) else walked
    if isinstance(argument, dict):
        return {name: _walk(each, scalar, node) for name, each in argument.items()}
    return argument


# ---- where traces differ ----
def _tables(nodes: Sequence[Node], traces: Sequence[list[Row]]) -> dict[Node, dict[int, list[Any]]]:
    """Per node, the scalars that differ, by their order among its arguments: one value per rank."""
    tables: dict[Node, dict[int, list[Any]]] = {}
    for node, *rows in zip(nodes, *traces, strict=False):
        for rank, row in enumerate(rows):
            _require_same(node, rows[0], row, rank)
        columns = zip(*(row["scalars"] for row in rows), strict=True)
        differing = {k: list(values) for k, values in enumerate(columns) if len(set(map(repr, values))) > 1}
        if differing:
            if not _are_positions(node, differing):
                _require_tensor_slots(node, differing)
            tables[node] = differing
    for rank, trace in enumerate(traces):
        if len(trace) != len(traces[0]):
            raise _refusal(nodes[-1], f"rank 0 has {len(traces[0])} nodes and rank {rank} has {len(trace)}")
    return tables


def _require_same(node: Node, first: Row, other: Row, rank: int) -> None:
    for name in {**first, **other}:
        if name != "scalars" and first.get(name) != other.get(name):
            raise _refusal(
                node, f"the {name} is {first.get(name)} on rank 0 and {other.get(name)} on rank {rank}"
            )


def _are_positions(node: Node, differing: dict[int, list[Any]]) -> bool:
    slots = _slots(node)
    return rank_positions.are_positions(node, {slots[order] for order in differing})


def _require_tensor_slots(node: Node, differing: dict[int, list[Any]]) -> None:
    """Scalars that are arguments of their own, of a type that may be a tensor."""
    slots = _slots(node)
    for order, values in differing.items():
        slot = slots[order]
        if slot is None or _tensor_overload(node, slot) is None:
            raise _refusal(node, f"a size or position is {', '.join(map(str, values))} on the ranks")


def _refusal(node: Node, what: str) -> UserError:
    file, line, function, _ = source_of(node)
    return UserError(
        f"the program depends on the rank in a way that one program for all ranks cannot: {what}",
        code="INGOT-U359",
        node=node.name,
        source=f"{file}:{line} in {function}" if file else "",
        advice='let each rank build its own engine: leave out rank="all"',
    )


# ---- scalars as constants per rank ----
def _replace_scalars(module: GraphModule, tables: dict[Node, dict[int, list[Any]]], group: Any) -> None:
    if not tables:
        return
    constants = _Constants(module, group)
    for node, differing in tables.items():
        if _are_positions(node, differing):
            slots = _slots(node)
            values = {slots[order]: table for order, table in differing.items() if slots[order] is not None}
            rank_positions.replace(node, values, constants.of, constants.positions)
            continue
        order = itertools.count()

        def replaced(scalar: Any, order: Iterator[int] = order, differing: dict = differing) -> Any:
            values = differing.get(next(order))
            return scalar if values is None else constants.of(values)

        slots = [slot for k, slot in enumerate(_slots(node)) if k in differing]
        target = node.target
        node.args, node.kwargs = _walk((node.args, node.kwargs), replaced, lambda other: other)
        for slot in slots:
            target = _tensor_overload(node, slot)
        node.target = target
        constants.require_type(node)
    module.graph.lint()
    module.recompile()


def _slots(node: Node) -> list[int | None]:
    """Of each scalar, in the order of `_walk`: the argument that it is, None if it is in a list."""
    slots: list[int | None] = []
    for position, argument in enumerate((*node.args, node.kwargs)):
        found: list[Any] = []
        _walk(argument, found.append, lambda other: None)
        slots += [None if isinstance(argument, (list, tuple, dict)) else position] * len(found)
    return slots


def _tensor_overload(node: Node, slot: int) -> Any:
    """The overload that takes a tensor as this argument; None if there is none."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or slot >= len(schema.arguments):
        return None
    if str(schema.arguments[slot].type) == "Tensor":
        return node.target
    other = getattr(node.target.overloadpacket, "Tensor", None)
    takes = other is not None and len(other._schema.arguments) > slot
    return other if takes and str(other._schema.arguments[slot].type) == "Tensor" else None


class _Constants:
    """Nodes for constants stored per rank, ahead of all others."""

    def __init__(self, module: GraphModule, group: Any) -> None:
        nodes = list(module.graph.nodes)
        self._module, self._count = module, 0
        self._first = next(node for node in nodes if node.op != "placeholder")
        values = (node.meta.get("val") for node in nodes)
        self._fake = next(value.fake_mode for value in values if hasattr(value, "fake_mode"))
        self._call = rank_positions.Calls(self._first, self._fake)
        functional = torch.ops._c10d_functional
        # The same on all ranks: each gets its own element.
        everyone = self._constant(list(range(group.size())), torch.int64)
        started = self._call(
            functional.reduce_scatter_tensor.default, everyone, "max", group.size(), group.group_name
        )
        self._rank = self._call(functional.wait_tensor.default, started)

    def of(self, values: list[Any]) -> Node:
        dtype = torch.int64 if all(isinstance(value, int) for value in values) else torch.float64
        table = self._constant(values, dtype)
        own = self._call(torch.ops.aten.index_select.default, table, 0, self._rank)
        return self._call(torch.ops.aten.view.default, own, [])

    def positions(self, values: list[int]) -> Node:
        return self._constant(values, torch.int64)

    def require_type(self, node: Node) -> None:
        """A tensor without dims may promote what a scalar does not: an integer tensor, say."""
        walked = _walk((node.args, node.kwargs), lambda scalar: scalar, lambda other: other.meta["val"])
        with self._fake:
            value = node.target(*walked[0], **walked[1])
        expected = node.meta["val"]
        if (value.dtype, value.shape) != (expected.dtype, expected.shape):
            raise _refusal(
                node, f"with a tensor in place of a scalar the result is {value.dtype}, not {expected.dtype}"
            )

    def _constant(self, values: list[Any], dtype: torch.dtype) -> Node:
        with compat.with_real_tensors():
            data = torch.tensor(values, dtype=dtype)
        name = f"_of_ranks_{self._count}"
        self._count += 1
        self._module.register_buffer(name, data)
        with self._module.graph.inserting_before(self._first):
            node = self._module.graph.get_attr(name)
        node.meta["val"] = self._fake.from_tensor(data, static_shapes=True)
        return node
