# SPDX-License-Identifier: Apache-2.0
"""One FX graph of ATen calls -> engines for the parts that Ingot runs, torch for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch.fx import GraphModule, Node

from ingot import _core, assertions, carried_sizes, devices, one_program, ranks, refusals
from ingot.capture import Capture, Input, Output, target_name
from ingot.conditions import Conditions
from ingot.errors import InternalError, UnsupportedError
from ingot.gaps import shows_gaps
from ingot.guards import Guards
from ingot.kinds import OutputRole
from ingot.notices import require_used_choices, warn_of_entries_without_node
from ingot.part_numbers import consumer_of
from ingot.partition import (
    PartCall,
    Place,
    lift_numbers,
    makes_number,
    partition,
    returns_numbers,
    split,
)
from ingot.parts import PartBuilder, backends_of, build_runner, forget_orders, precisions_of
from ingot.refusals import Refused
from ingot.reporting import Report, ReportedNode, Segment
from ingot.running import PartEngine, WriteBack
from ingot.settings import Settings
from ingot.slowness import Slowness
from ingot.source import line_of
from ingot.speed import Times, TooSlowError, measure, taken_slow
from ingot.staged_part import StagedPart, levels_after
from ingot.staged_ranks import StagedRanks
from ingot.staging import Staged
from ingot.views import keeps_order


@dataclass
class Compiled:
    """The result for one graph: `call(arguments)` takes the flat inputs and returns the flat outputs of the user.

    Values that the graph mutates are written back into the arguments. `graph` is the module that calls engines and torch in turn,
    None if one engine is the whole.
    """

    call: Callable[[list], list]
    report: Report
    engines: list[_core.Engine] = field(default_factory=list)
    graph: GraphModule | None = None
    guards: Guards | None = None  # where `graph` is: an engine that is the whole checks its own
    conditions: Conditions | None = None  # likewise; asked before `call`
    staged: Staged | None = None  # what replaces the engines; not started yet


@ranks.at_work()
def compile_graph(
    module: GraphModule,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    settings: Settings,
    prepare: Callable[[Capture], None] = lambda capture: None,
    leaving: Refused | None = None,
) -> Compiled:
    """Compiles `module`; unsupported nodes run in torch, unless full compilation is required.

    `prepare` completes the program of a whole-model engine (its calling convention). `leaving`: nodes for torch, with the reason.
    """
    with one_program.building(module, settings.one_program):
        return _compile_graph(module, inputs, outputs, settings, prepare, leaving)


def _compile_graph(
    module: GraphModule,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    settings: Settings,
    prepare: Callable[[Capture], None],
    leaving: Refused | None,
) -> Compiled:
    unified = one_program.Unified(inputs)
    if settings.one_program:
        in_torch = {*refusals.by_choice(module, settings), *(leaving or {})}
        unified = one_program.unify(module, inputs, outputs, in_torch)
        inputs, settings = unified.inputs, one_program.settings_for(unified, settings)
    settings = ranks.settings_for(module, devices.settings_for(module, inputs, settings))
    devices.compute_on_gpu(module, inputs, settings)
    refused = {**refusals.by_choice(module, settings), **devices.refused(module, inputs, settings)}
    refused |= leaving or {}
    like = devices.like(module, inputs, settings)
    # A profile names the model's inputs; the sizes of a part follow from its symbols.
    options = {name: text for name, text in settings.compiler.items() if name != "shapes"}
    builder = PartBuilder(replace(settings, compiler=options), like, {})
    while True:
        capture = Capture(f"torch {torch.__version__}", groups=settings.groups)
        capture.graph(module, inputs, outputs)
        carried = carried_sizes.carried(module)
        carried_sizes.declare(capture, carried)
        prepare(capture)
        for name in unified.constants:
            capture.builder.other_name(name, "")
        capture.builder.check_options(settings.compiler)
        reads_integers = bool(carried) or carried_sizes.reads_signed(module)
        in_parts = _complete(refused, module, outputs, capture, settings, reads_integers)
        if refused and settings.require_full_compilation:
            raise refusals.full_compilation_error(refused)
        try:
            if in_parts:
                return _in_parts(module, inputs, outputs, refused, capture, builder)
            return _whole(module, capture, inputs, settings, like)
        except TooSlowError as error:
            refused |= error.nodes
            if settings.require_full_compilation:
                raise refusals.full_compilation_error(refused) from error
        except (UnsupportedError, InternalError) as error:
            if isinstance(error, InternalError) and settings.require_full_compilation:
                raise
            refused |= _found_late(error, module, refused)


def mutated_names(outputs: Sequence[Output]) -> set[str | None]:
    """The inputs whose new values are outputs."""
    return {output.target for output in outputs if output.kind != OutputRole.USER}


def _complete(
    refused: Refused, module: GraphModule, outputs: Sequence[Output], capture: Capture, settings: Settings,
    reads_integers: bool,
) -> bool:  # fmt: skip
    """Adds the unsupported nodes that are known before a build; returns whether the graph has to be split, as one has that reads
    integers of a call."""
    refused |= refusals.by_importer(capture, settings.compiler)
    if not reads_integers:  # else the module checks the guards
        refused |= refusals.by_guards(capture, refused)
    refused |= refusals.viewed_by_refused(refused)
    in_parts = (
        reads_integers
        or bool(refused)
        or (returns_numbers(module) and not settings.one_engine)
        or refusals.writes_strided(module, outputs)
    )
    if in_parts:
        refused |= refusals.by_writes(module, refused)
    return in_parts


def _found_late(error: UnsupportedError | InternalError, module: GraphModule, refused: Refused) -> Refused:
    """The node that a build rejects, or all if it names none: torch runs it, and the graph is split again."""
    calls = [node for node in module.graph.nodes if node.op == "call_function" and node not in refused]
    late = [consumer_of(node) for node in calls if node.name == error.node] or calls
    if not late:
        raise error
    return dict.fromkeys(late, refusals.reason_of(error))


def _reason_of_place(node: Node) -> str:
    """Why torch runs a node that an engine could run."""
    if makes_number(node):
        return "computes a number between tensors"
    if shows_gaps(node):
        return "another call in torch reads its result, which has gaps in memory"
    return "its partition has fewer nodes than min_block_size"


def _reported(
    place: Place,
    nodes: Sequence[Node],
    refused: Refused,
    slow: Mapping[Node, Slowness] | None = None,
    precisions: Mapping[str, str] | None = None,
    backends: Mapping[str, str] | None = None,
) -> tuple[ReportedNode, ...]:
    rows = []
    for node in nodes:
        if target_name(node.target) == "_operator.getitem" or keeps_order(node):
            continue  # not a call of the model: selects one of several results, or lays one out as in eager
        source = line_of(node)
        reason = refused.get(node) or (_reason_of_place(node) if place is Place.TORCH else "")
        slowness = str(slow[node]) if slow and node in slow else ""
        precision = (precisions or {}).get(node.name, "")
        code = refusals.code_of(reason)
        rows.append(
            ReportedNode(
                node.name,
                target_name(node.target),
                source,
                str(reason),
                slowness,
                precision,
                code,
                (backends or {}).get(node.name, ""),
            )
        )
    return tuple(rows)


def _whole(
    module: GraphModule, capture: Capture, inputs: Sequence[Input], settings: Settings, like: torch.Tensor
) -> Compiled:
    slow = taken_slow(module, capture, settings)
    built = build_runner(capture, inputs, settings, like)
    engine, made = built.engine, built.report
    warn_of_entries_without_node([made["disabled_without_node"]])
    require_used_choices([made])
    times = None
    if settings.measures:
        times = measure(module, inputs, built.runner)
        engine.reset_states()
    nodes = _reported(Place.ENGINE, capture.nodes, {}, slow, precisions_of(made), backends_of(made))
    report = Report([_timed_segment(Place.ENGINE, nodes, times)], [engine], builds=[made])
    compiled = Compiled(built.runner, report, [engine])
    compiled.staged = _staged([built.staged], settings)
    return compiled


def _timed_segment(place: Place, nodes: tuple[ReportedNode, ...], times: Times | None) -> Segment:
    if times is None:
        return Segment(place.value, nodes)
    return Segment(place.value, nodes, times.torch_ms, times.engine_ms, times.is_faster_in_torch)


def _staged(parts: Sequence[StagedPart | None], settings: Settings) -> Staged | None:
    first = settings.first_level
    if first is None:
        return None
    levels = levels_after(first, settings.compiler.get("optimization_level"))
    found = [part for part in parts if part is not None]
    has_groups = any(part.core.group_names() for part in found)
    return (StagedRanks if has_groups else Staged)(
        found, levels if found else [], first, settings.staged == "same_bits", settings.staged_threads
    )


def _in_parts(
    module: GraphModule,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    refused: Refused,
    capture: Capture,
    builder: PartBuilder,
) -> Compiled:
    """`capture`: of the whole module."""
    assertions.explain(module)
    lift_numbers(module)
    graph, calls = split(module, partition(module, set(refused), builder.settings))
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    mutated = mutated_names(outputs)
    given = {node: what for node, what in zip(placeholders, inputs, strict=True) if what.name not in mutated}
    compiled = Compiled(WriteBack(graph, inputs, outputs), Report(), graph=graph)
    compiled.guards = Guards.of(capture.builder)
    compiled.conditions = Conditions.of(module, inputs, capture)
    for call in calls:
        _place(compiled, call, given, refused, builder)
    parts = [part for part in graph.modules() if isinstance(part, PartEngine)]
    in_order = {id(part.engine): part.staged for part in parts}
    compiled.staged = _staged([in_order[id(engine)] for engine in compiled.engines], builder.settings)
    warn_of_entries_without_node([part.without_node for part in parts])
    require_used_choices([part.build for part in parts])
    forget_orders(graph)
    graph.recompile()
    return compiled


def _place(
    compiled: Compiled, call: PartCall, given: Mapping[Node, Input], refused: Refused, builder: PartBuilder
) -> None:
    """Replaces a part by its engine, if one can be built, and reports what runs there."""
    nodes, segments = call.part.nodes, compiled.report.segments
    if call.part.place is Place.TORCH:
        if reported := _reported(Place.TORCH, nodes, refused):
            segments.append(Segment(Place.TORCH.value, reported))
        return
    carried_sizes.carry(compiled.graph, call)
    try:
        built = builder.build(call, given)
    except (UnsupportedError, InternalError) as error:
        is_own = any(error.node == node.name for node in nodes)
        if builder.settings.require_full_compilation or is_own:
            raise  # only that node joins torch
        reasons = dict.fromkeys(nodes, refusals.reason_of(error))
        segments.append(Segment(Place.TORCH.value, _reported(Place.TORCH, nodes, reasons)))
        return
    setattr(compiled.graph, str(call.node.target), built)
    compiled.engines.append(built.engine)
    compiled.report.engines.append(built.engine)
    compiled.report.builds.append(built.build)
    compiled.conditions.add(built.engine, built.names)
    slow = {node: built.slow[node.name] for node in nodes if node.name in built.slow}
    segments.append(
        _timed_segment(Place.ENGINE, _reported(Place.ENGINE, nodes, {}, slow, built.precisions), built.times)
    )
