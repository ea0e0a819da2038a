# SPDX-License-Identifier: Apache-2.0
"""One FX graph of ATen calls -> engines for the stretches that Ingot runs, torch for the rest."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.split_module import split_module

from ingot import _core
from ingot.capture import OUTPUT_INPUT_MUTATION, OUTPUT_USER, USER, Capture, Input, Output, target_name
from ingot.conditions import Conditions
from ingot.errors import Error, InternalError, UnsupportedError
from ingot.guards import Guards
from ingot.reporting import Report, ReportedNode, Segment
from ingot.running import Stretch, WithLiterals, WriteBack
from ingot.settings import Settings
from ingot.source import source_of
from ingot.speed import Slowness, TooSlowError, measure, taken_slow
from ingot.views import storage_order, viewed_by

_log = logging.getLogger("ingot")


@dataclass
class Compiled:
    """The result for one graph: `call(arguments)` takes the flat inputs and returns the flat outputs of the user.

    What the graph mutates is written back into the arguments. `graph` is the module that calls engines and torch in turn,
    None where one engine is the whole.
    """

    call: Callable[[list], list]
    report: Report
    engines: list[_core.Engine] = field(default_factory=list)
    graph: GraphModule | None = None
    guards: Guards | None = None  # where `graph` is: an engine that is the whole checks its own
    conditions: Conditions | None = None  # likewise; asked before `call`


def compile_graph(
    module: GraphModule,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    settings: Settings,
    prepare: Callable[[Capture], None] = lambda capture: None,
) -> Compiled:
    """Compiles `module`; nodes that are refused run in torch, unless full compilation is required.

    `prepare` completes the program of a whole-model engine (its calling convention).
    """
    refused = _refused_by_choice(module, settings)
    returns_numbers = _returns_numbers(module)
    built: Built = {}
    while True:
        capture = Capture(f"torch {torch.__version__}")
        capture.graph(module, inputs, outputs)
        prepare(capture)
        capture.builder.check_options(settings.compiler)
        refused |= _refused_by_importer(capture)
        refused |= _refused_by_guards(capture, refused)
        refused |= _viewed_by_refused(refused)
        in_parts = bool(refused) or returns_numbers or _writes_strided(module, outputs)
        if in_parts:
            refused |= _refused_by_writes(module, refused)
        if refused and settings.require_full_compilation:
            raise _full_compilation_error(refused)
        try:
            if in_parts:
                compiled = _split(module, inputs, outputs, refused, settings, built)
                compiled.guards = Guards.of(capture.builder)
                parts = [part for part in compiled.graph.children() if isinstance(part, Stretch)]
                conditions = Conditions.of(module, inputs, capture)
                for part in parts:
                    conditions.add(part.engine, part.names)
                compiled.conditions = conditions
                return compiled
            return _whole(module, capture, inputs, settings)
        except TooSlowError as error:
            refused |= error.nodes
            if settings.require_full_compilation:
                raise _full_compilation_error(refused) from error
        except (
            UnsupportedError,
            InternalError,
        ) as error:  # found late: that node joins torch, and the split is made again
            calls = [
                node for node in module.graph.nodes if node.op == "call_function" and node not in refused
            ]
            late = [node for node in calls if node.name == error.node] or calls
            if not late or (isinstance(error, InternalError) and settings.require_full_compilation):
                raise
            refused |= dict.fromkeys(late, _reason(error))


def _reason(error: Error) -> str:
    """One line for the report; a bug of ours costs speed, not the answer, and is told aloud."""
    if isinstance(error, InternalError) or error.code == "INGOT-N523":
        _log.warning("torch runs a part of the model because of a bug in Ingot: %s", error)
    return str(error).splitlines()[0]


def _is_number(node: object) -> bool:
    return isinstance(node, Node) and isinstance(
        node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)
    )


# Assertions on numbers: an engine that is the whole knows what its numbers are made of, a stretch does not.
_NUMBER_ASSERTIONS = (
    "aten._assert_scalar.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
)


def _asserts_number(node: Node) -> bool:
    return target_name(node.target) in _NUMBER_ASSERTIONS


def _returns_numbers(module: GraphModule) -> bool:
    """Engines return tensors; torch passes on the sizes that a graph returns."""
    output = next(node for node in module.graph.nodes if node.op == "output")
    return any(_is_number(value) for value in output.all_input_nodes)


def _writes_strided(module: GraphModule, outputs: Sequence[Output]) -> bool:
    """Engines update dense memory in place; torch writes what else the graph mutates."""
    mutated = {what.target for what in outputs if what.kind == OUTPUT_INPUT_MUTATION}
    written = [node for node in module.graph.nodes if node.op == "placeholder" and node.name in mutated]
    return not all(node.meta["val"].is_contiguous() for node in written)


def _refused_by_choice(module: GraphModule, settings: Settings) -> dict[Node, str]:
    chosen = set(settings.torch_executed_ops)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    return {node: "named in torch_executed_ops" for node in calls if target_name(node.target) in chosen}


def _refused_by_importer(capture: Capture) -> dict[Node, str]:
    rows = json.loads(capture.builder.unsupported())
    return {capture.nodes[row["node"]]: row["reason"] for row in rows}


def _refused_by_guards(capture: Capture, refused: dict[Node, str]) -> dict[Node, str]:
    """All nodes, where the program was traced for what no engine can check: torch runs it, behind its guards."""
    reasons = [row["reason"] for row in json.loads(capture.builder.guards()) if row["reason"]]
    return {node: reasons[0] for node in capture.nodes if node not in refused} if reasons else {}


def _viewed_by_refused(refused: dict[Node, str]) -> dict[Node, str]:
    """The views below as_strided: it reads the memory that they show, which only torch lays out as torch does."""
    views: dict[Node, str] = {}
    for node in refused:
        base = node.args[0] if "as_strided" in target_name(node.target) else None
        while viewed_by(base) is not None:
            views.setdefault(base, f"{target_name(node.target)} reads the memory that it shows")
            base = viewed_by(base)
    return {node: reason for node, reason in views.items() if node not in refused}


def _refused_by_writes(module: GraphModule, refused: dict[Node, str]) -> dict[Node, str]:
    """All nodes, where torch could not make the program functional: a part does not see what others write in place."""
    calls = [node for node in module.graph.nodes if node.op == "call_function" and node not in refused]
    writes = [node for node in calls if getattr(getattr(node.target, "_schema", None), "is_mutable", False)]
    if not writes:
        return {}
    return dict.fromkeys(calls, f"{target_name(writes[0].target)} writes in place into what other parts read")


def _full_compilation_error(refused: dict[Node, str]) -> UnsupportedError:
    rows = [f"  {target_name(node.target)} ({node.name}): {reason}" for node, reason in refused.items()]
    first = next(iter(refused))
    file, line, function, _ = source_of(first)
    return UnsupportedError(
        "these nodes cannot run in Ingot, and require_full_compilation is set:\n" + "\n".join(rows),
        code="INGOT-N001",
        node=first.name,
        source=f"{file}:{line} in {function}" if file else "",
    )


def _reported(
    nodes: Sequence[Node], refused: dict[Node, str], slow: dict[Node, Slowness] | None = None
) -> tuple[ReportedNode, ...]:
    rows = []
    for node in nodes:
        if target_name(node.target) == "_operator.getitem":
            continue  # one of several results
        file, line, function, _ = source_of(node)
        source = f"{file}:{line} in {function}" if file else ""
        reason = refused.get(node, "stands between nodes that torch runs" if refused else "")
        slowness = str(slow[node]) if slow and node in slow else ""
        rows.append(ReportedNode(node.name, target_name(node.target), source, reason, slowness))
    return tuple(rows)


def _whole(module: GraphModule, capture: Capture, inputs: Sequence[Input], settings: Settings) -> Compiled:
    slow = taken_slow(module, capture, settings)
    runner, engine = build_runner(capture, inputs, settings)
    times = measure(module, inputs, runner) if settings.check_speed else ()
    report = Report([Segment("cpu", _reported(capture.nodes, {}, slow), *times)], [engine])
    return Compiled(runner, report, [engine])


def build_runner(
    capture: Capture, inputs: Sequence[Input], settings: Settings
) -> tuple[Callable[[list], list], _core.Engine]:
    """A callable from the flat argument list to the flat output list, and its engine."""
    engine, _ = capture.builder.build(settings.compiler, settings.progress, settings.metadata)
    signature = json.loads(engine.signature())
    users = [position for position, given in enumerate(inputs) if given.kind == USER]
    tensors = [users[i] for i, literal in enumerate(signature["literals"]) if literal == ""]
    weights = [
        (given.name, given.data, position) for position, given in enumerate(inputs) if given.data is not None
    ]
    runner = _core.Runner(engine, tensors, weights)
    if all(literal == "" for literal in signature["output_literals"]):
        return runner, engine
    return WithLiterals(runner, signature["output_literals"]), engine


def _split(
    module: GraphModule,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    refused: dict[Node, str],
    settings: Settings,
    built: Built,
) -> Compiled:
    _lift_numbers(module)
    part_of = _stretches(module, refused, settings)
    split = split_module(module, None, lambda node: part_of[node][0], keep_original_order=True)
    placeholders = [node for node in split.graph.nodes if node.op == "placeholder"]
    # A profile names the model's inputs; the sizes of a stretch follow from its symbols.
    options = {name: text for name, text in settings.compiler.items() if name != "shapes"}
    settings = replace(settings, compiler=options)
    mutated = {output.target for output in outputs if output.kind != OUTPUT_USER}
    given = {node: what for node, what in zip(placeholders, inputs, strict=True) if what.name not in mutated}
    compiled = Compiled(WriteBack(split, inputs, outputs), Report(), graph=split)
    for node in [node for node in split.graph.nodes if node.op == "call_module"]:
        part = split.get_submodule(str(node.target))
        number = int(str(node.target).rsplit("_", 1)[1])
        members = [member for member, (position, _) in part_of.items() if position == number]
        backend, reasons, slow, times = "torch", refused, {}, ()
        if members and part_of[members[0]][1]:
            try:
                stretch = _stretch(part, node.args, given, settings, tuple(members), built)
            except (UnsupportedError, InternalError) as error:
                if settings.require_full_compilation or any(error.node == member.name for member in members):
                    raise  # only that node joins torch
                reasons = dict.fromkeys(members, _reason(error))
            else:
                backend, reasons, times = "cpu", {}, stretch.times
                slow = {members[position]: slowness for position, slowness in stretch.slow.items()}
                setattr(split, str(node.target), stretch)
                compiled.engines.append(stretch.engine)
                compiled.report.engines.append(stretch.engine)
        compiled.report.segments.append(Segment(backend, _reported(members, reasons, slow), *times))
    _forget_orders(split)
    split.recompile()
    return compiled


def _forget_orders(split: GraphModule) -> None:
    """Only torch looks at strides: between engines, and for the caller, results are dense."""
    for node in [node for node in split.graph.nodes if node.op == "call_module"]:
        stretch = split.get_submodule(str(node.target))
        if not isinstance(stretch, Stretch):
            continue
        results = {0: node} if stretch.returns_one else {user.args[1]: user for user in node.users}
        readers = {
            k: [user for user in result.users if user.op == "call_module"] for k, result in results.items()
        }
        stretch.orders = {
            k: order
            for k, order in stretch.orders.items()
            if any(
                not isinstance(split.get_submodule(str(user.target)), Stretch) for user in readers.get(k, [])
            )
        }


def _lift_numbers(module: GraphModule) -> None:
    """Moves the numbers that follow from the arguments to the front, so that no stretch ends for them."""
    known = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in [node for node in module.graph.nodes if node.op == "call_function"]:
        if (_is_number(node) or _asserts_number(node)) and all(
            source in known for source in node.all_input_nodes
        ):
            known[-1].append(node)
            known.append(node)


def _stretches(
    module: GraphModule, refused: dict[Node, str], settings: Settings
) -> dict[Node, tuple[int, bool]]:
    """Stretch number and whether it runs in an engine, for each call in execution order."""
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    stretches: list[tuple[bool, list[Node]]] = []
    for node in calls:
        here = node not in refused and not _is_number(node) and not _asserts_number(node)
        if target_name(node.target) == "_operator.getitem" and stretches:
            here = stretches[-1][0]  # stays with the call whose result it takes
        if not stretches or stretches[-1][0] != here:
            stretches.append((here, []))
        stretches[-1][1].append(node)
    merged: list[tuple[bool, list[Node]]] = []
    for here, nodes in stretches:
        here = here and len(nodes) >= settings.min_block_size
        if merged and merged[-1][0] == here:
            merged[-1][1].extend(nodes)
        else:
            merged.append((here, list(nodes)))
    return {node: (number, here) for number, (here, nodes) in enumerate(merged) for node in nodes}


# What is built already, by the nodes of the stretch: when a node is refused late, only the stretch that had it is made again.
Built = dict[tuple[Node, ...], Stretch]


def _stretch(
    part: GraphModule,
    arguments: Sequence[Node],
    given: dict[Node, Input],
    settings: Settings,
    members: tuple[Node, ...],
    built: Built,
) -> Stretch:
    """The engine of one stretch of the whole graph's nodes `members`, which is called with these nodes of the split graph."""
    if members not in built:
        calls = [node for node in part.graph.nodes if node.op == "call_function"]
        own = [node.name for node in calls]
        try:
            built[members] = _engine_of(part, arguments, given, settings)
            built[members].names = dict(zip(own, (member.name for member in members), strict=True))
        except TooSlowError as error:
            raise TooSlowError(
                {members[calls.index(node)]: reason for node, reason in error.nodes.items()}
            ) from error
        except (UnsupportedError, InternalError) as error:  # a part's nodes have names of their own
            if error.node in own:
                error.node = members[own.index(error.node)].name
            raise
    return built[members].fresh()


def _engine_of(
    part: GraphModule, arguments: Sequence[Node], given: dict[Node, Input], settings: Settings
) -> Stretch:
    placeholders = [node for node in part.graph.nodes if node.op == "placeholder"]
    inputs = [
        given[argument]
        if argument in given and given[argument].data is not None
        else Input(USER, placeholder.name)  # the name that the whole graph has for it
        for placeholder, argument in zip(placeholders, arguments, strict=True)
    ]
    capture = Capture(f"torch {torch.__version__}")
    capture.graph(part, inputs)
    slow = taken_slow(part, capture, settings)
    runner, engine = build_runner(capture, inputs, settings)
    times = measure(part, inputs, runner) if settings.check_speed else ()
    users = [position for position, what in enumerate(inputs) if what.kind == USER]
    returned = next(node for node in part.graph.nodes if node.op == "output").args[0]
    returns_one = not isinstance(returned, (tuple, list))
    results = [returned] if returns_one else returned
    orders = {k: storage_order(result.meta.get("val")) for k, result in enumerate(results)}
    orders = {k: order for k, order in orders.items() if order is not None}
    calls = [node for node in part.graph.nodes if node.op == "call_function"]
    positions = {calls.index(node): slowness for node, slowness in slow.items()}
    return Stretch(runner, engine, users, returns_one, orders, positions, times)
