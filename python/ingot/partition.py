# SPDX-License-Identifier: Apache-2.0
"""A graph in parts that run in engines and parts that torch runs."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.split_module import split_module

from ingot.capture import target_name
from ingot.gaps import GapsInTorch
from ingot.part_numbers import consumer_of, copy_to_users, is_part_number
from ingot.settings import Settings
from ingot.views import keeps_order


class Place(enum.Enum):
    """The place where a part runs."""

    ENGINE = "cpu"
    TORCH = "torch"


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive calls of the whole graph that run in one place."""

    place: Place
    nodes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class PartCall:
    """A partition, as it is in the graph that calls the partitions."""

    part: Part
    node: Node  # which calls it
    graph: GraphModule  # what it consists of, in nodes of its own
    origins: dict[Node, Node]  # its calls -> those of the whole graph


def is_number(node: object) -> bool:
    return isinstance(node, Node) and isinstance(
        node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)
    )


HOLDS_INTEGER = "ingot_holds_integer"  # of a call that puts an integer of calls into a tensor: torch runs it


# Assertions on scalars: an engine of the whole graph knows how they are computed, one of a partition does not.
_NUMBER_ASSERTIONS = (
    "aten._assert_scalar.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)


def asserts_number(node: Node) -> bool:
    return target_name(node.target) in _NUMBER_ASSERTIONS


def makes_number(node: Node) -> bool:
    """Whether torch runs a call because it computes or checks a number, or puts one into a tensor."""
    return is_number(node) or asserts_number(node) or bool(node.meta.get(HOLDS_INTEGER))


def returns_numbers(module: GraphModule) -> bool:
    """Engines return tensors; torch passes on the sizes that a graph returns."""
    output = next(node for node in module.graph.nodes if node.op == "output")
    return any(is_number(value) for value in output.all_input_nodes)


def lift_numbers(module: GraphModule) -> None:
    """Moves scalars that follow from the arguments to the front, so that they do not end a partition."""
    known = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in [node for node in module.graph.nodes if node.op == "call_function"]:
        if (is_number(node) or asserts_number(node)) and all(
            source in known for source in node.all_input_nodes
        ):
            known[-1].append(node)
            known.append(node)


_Runs = list[tuple[Place, list[Node]]]


def partition(module: GraphModule, refused: Iterable[Node], settings: Settings) -> list[Part]:
    """All calls of the graph, in execution order."""
    copy_to_users(module)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    runs: _Runs = []
    for node in calls:
        caller = consumer_of(node) if is_part_number(node) else node
        in_torch = caller in refused or makes_number(caller) or caller.op == "output"
        place = Place.TORCH if in_torch else Place.ENGINE
        if keeps_order(node):
            place = runs[-1][0] if runs else Place.TORCH  # not worth an engine of its own
        if target_name(node.target) == "_operator.getitem" and runs:
            place = runs[-1][0]  # stays with the call whose result it uses
        _append(runs, place, [node])
    merged: _Runs = []
    for place, nodes in runs:
        _append(merged, place if len(nodes) >= max(1, settings.min_block_size) else Place.TORCH, nodes)
    return [Part(place, tuple(nodes)) for place, nodes in _with_gaps_in_torch(module, merged)]


def _with_gaps_in_torch(module: GraphModule, runs: _Runs) -> _Runs:
    gaps = GapsInTorch(module, [node for place, nodes in runs if place is Place.ENGINE for node in nodes])
    added: dict[Node, list[Node]] = {}
    for place, nodes in runs:
        gaps.begin_part()
        if place is Place.TORCH:
            added |= {node: gaps.add_copies(node) for node in nodes}
    unread = gaps.erase_unread()
    found: _Runs = []
    for place, nodes in runs:
        for node in nodes:
            if node not in unread:
                _append(found, place, [*added.get(node, []), node])
    return found


def _append(runs: _Runs, place: Place, nodes: list[Node]) -> None:
    if not runs or runs[-1][0] is not place:
        runs.append((place, []))
    runs[-1][1].extend(nodes)


_ORIGIN = "ingot_origin"  # while the graph is split: the node of the whole graph that a node was copied from


def split(module: GraphModule, parts: list[Part]) -> tuple[GraphModule, list[PartCall]]:
    """The graph that calls the parts, and its calls in execution order."""
    part_of = {node: part for part in parts for node in part.nodes}
    numbers = {part: number for number, part in enumerate(parts)}
    for node in part_of:
        node.meta[_ORIGIN] = node
    whole = split_module(module, None, lambda node: numbers[part_of[node]], keep_original_order=True)
    for node in part_of:
        del node.meta[_ORIGIN]
    calls = []
    for node in whole.graph.nodes:
        if node.op == "call_module":
            graph = whole.get_submodule(str(node.target))
            origins = {own: own.meta.pop(_ORIGIN) for own in graph.graph.nodes if own.op == "call_function"}
            _name_as_before(graph.graph, origins)
            calls.append(PartCall(part_of[next(iter(origins.values()))], node, graph, origins))
    return whole, calls


def _name_as_before(graph: Graph, origins: Mapping[Node, Node]) -> None:
    """Reports and errors of engines name nodes as the whole graph does: a copy is named after its operator."""
    taken = {node.name for node in graph.nodes if node not in origins}
    for own, origin in origins.items():
        if origin.name not in taken:
            own.name = origin.name
