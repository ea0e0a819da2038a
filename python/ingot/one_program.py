# SPDX-License-Identifier: Apache-2.0
"""One program for all ranks, of the traces of all of them (docs/design/043): the option rank="all".

Numbers that differ become constants stored per rank, positions of slices gathers, sizes expressions over symbols that have a value per
rank (`rank_sizes`), and weights of different sizes parts of one type (`rank_weights`). Anything else that differs is refused with the
node's name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import carried_sizes, rank_labels, rank_program, rank_texts, rank_weights, ranks
from ingot.capture import Input, Output
from ingot.inputs import narrowed
from ingot.rank_bodies import bodies_of
from ingot.rank_places import comparing_group
from ingot.rank_program import Program, Unified
from ingot.rank_traces import compare
from ingot.settings import Settings

JUST_IN_TIME = "torch.compile"  # what ranks compile where nobody knows of what the graph is a part


@contextmanager
def calling(model: Any, options: Any, what: str = "") -> Iterator[None]:
    """Around all that a rank does before its program is known, with the options as the user gave them: if they are wrong on one of them,
    or the trace fails there, the others hear of it at once."""
    if not is_wanted(options):
        yield
        return
    with rank_texts.one_call(what or type(model).__qualname__, model):
        yield


@contextmanager
def building(module: GraphModule, is_for_all: bool) -> Iterator[None]:
    """Around all that ranks tell each other of one program: if its build fails on one of them, the others hear of it at once."""
    names = list(dict.fromkeys(ranks.groups_in(module))) if is_for_all else []
    if not names or comparing_group(names).size() == 1:
        yield
        return
    with rank_texts.one_build(comparing_group(names)):
        yield


def is_wanted(options: Any) -> bool:
    """Of options that nobody has checked yet."""
    rank = options.get("rank") if isinstance(options, Mapping) else None
    return isinstance(rank, str) and rank == "all"


def unify(
    module: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output], in_torch: Collection[Node] = ()
) -> Unified:
    """Makes the graph that of all ranks. UserError INGOT-U359 names the node where they differ in what a program cannot.

    `in_torch`: nodes that torch will run, with the rank's own weights.
    """
    names = list(dict.fromkeys(ranks.groups_in(module)))
    unified = _as_before(module, inputs)
    if not names or comparing_group(names).size() == 1:
        return unified
    bodies = bodies_of(module)
    found, places = compare(bodies, unified.inputs, names)
    if found.are_any:
        unified = Program(bodies, inputs, outputs, found, places).unified(in_torch)
        module.meta["ingot_unified"] = unified
    rank_labels.rename(found.names)
    unified.groups = places.names()
    return unified


def agree_on_ranges(
    program: torch.export.ExportedProgram, args: tuple, kwargs: Mapping[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """What one rank was not traced for, the program is not: the arguments with each Input narrowed to the sizes of all ranks."""
    nodes = list(program.graph.nodes)
    shown = _shown(program.graph_module, rank_labels.ranges_of(nodes))
    if shown is None:
        return args, dict(kwargs)
    rank_labels.narrow_ranges(nodes, shown)
    return narrowed(program, args, kwargs, rank_labels.range_of)


def guards_of_all(module: GraphModule, guards: Sequence[str]) -> list[str]:
    """Likewise, all ranks have the guards of all."""
    shown = _shown(module, list(guards))
    return list(guards) if shown is None else list(dict.fromkeys(text for own in shown for text in own))


def read_by_any(module: GraphModule) -> list[int]:
    """Of the integers of calls, those that the trace of any rank reads."""
    shown = _shown(module, carried_sizes.read_integers(module))
    return sorted({position for own in shown or [] for position in own})


def _shown(module: GraphModule, own: Any) -> list[Any] | None:
    """What each rank shows the others; None if there are none."""
    names = list(dict.fromkeys(ranks.groups_in(module)))
    if not names or comparing_group(names).size() == 1:
        return None
    group = comparing_group(names)
    with rank_texts.one_build(group):  # which is under way, unless the program got its groups since
        return [json.loads(text) for text in rank_texts.shared_texts(group, json.dumps(own))]


def _as_before(module: GraphModule, inputs: Sequence[Input]) -> Unified:
    """A graph that is compiled again has the form of all ranks already, and is given its rank's tensors."""
    known = module.meta.get("ingot_unified")
    if known is None:
        return Unified(inputs)
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    again = [
        rank_program.without_value(given)
        if given.name in known.constants
        else rank_weights.filled_up(node, given)
        for node, given in zip(nodes, inputs, strict=True)
    ]
    return Unified(again, known.shards, known.constants, known.groups)


def settings_for(unified: Unified, settings: Settings) -> Settings:
    """One engine for all ranks, whose parts of weights are first those that were found, then those that the user declares."""
    compiler = {**settings.compiler, "rank": "any"}
    declared = [_renamed(entry, unified.groups) for entry in compiler.get("shards", "").split(",") if entry]
    if unified.shards or declared:
        compiler["shards"] = ",".join([*unified.shards, *declared])
    return replace(settings, compiler=compiler, groups=unified.groups)


def _renamed(entry: str, groups: Mapping[str, str]) -> str:
    """An entry of `shards` with the program's name of its group."""
    name, separator, group = entry.rpartition("@")
    return f"{name}@{groups.get(group, group)}" if separator else entry


def settings_of_part(settings: Settings, inputs: Sequence[Input]) -> Settings:
    """Of the entries for parts of different sizes, those of its weights."""
    shards = settings.compiler.get("shards", "")
    if "+" not in shards:
        return settings
    names = {given.name for given in inputs}
    own = [entry for entry in shards.split(",") if "+" not in entry or entry.rsplit(":", 1)[0] in names]
    return replace(settings, compiler={**settings.compiler, "shards": ",".join(own)})
