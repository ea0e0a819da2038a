# SPDX-License-Identifier: Apache-2.0
"""Ahead-of-time compilation of exported programs: `ingot.dynamo.compile(exported_program, ...)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule

from ingot import compat, composites, one_program
from ingot.capture import Capture, Input, Output, decompositions, is_known
from ingot.carried_sizes import trust_guards
from ingot.dtypes import refuse_dtypes, refuse_mixed_dtypes
from ingot.effects import without_tokens
from ingot.engine import Engine
from ingot.errors import UnsupportedError, UserError, kind_of, require
from ingot.fastest import compile_graph
from ingot.fitting import check_fits, given_inputs
from ingot.guards import guard_texts
from ingot.inputs import Input as InputSizes
from ingot.inputs import matched
from ingot.kinds import InputRole, OutputRole
from ingot.module import CompiledModule
from ingot.peer_names import missing
from ingot.peer_options import without_peer_options
from ingot.program_signature import argument_names
from ingot.pytrees import text_of
from ingot.refitting import refit_module_weights as refit_module_weights
from ingot.rewriting import rewritten, with_expanded_sources, with_selects
from ingot.settings import Settings, refuse_for_engines
from ingot.training import warn_of_training
from ingot.weight_names import place_of, tied_names, with_other_names

_CROSS_COMPILING = {
    "cross_compile_for_windows": "cross_compile_program_for_windows",
    "save_cross_compiled_exported_program": "save_cross_compiled_exported_program",
    "load_cross_compiled_exported_program": "load_cross_compiled_exported_program",
}
_INPUT_KINDS = {
    InputKind.USER_INPUT: InputRole.USER,
    InputKind.PARAMETER: InputRole.PARAMETER,
    InputKind.BUFFER: InputRole.BUFFER,
    InputKind.CONSTANT_TENSOR: InputRole.CONSTANT,
}
_OUTPUT_KINDS = {
    OutputKind.USER_OUTPUT: OutputRole.USER,
    OutputKind.BUFFER_MUTATION: OutputRole.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION: OutputRole.BUFFER_MUTATION,
    OutputKind.USER_INPUT_MUTATION: OutputRole.INPUT_MUTATION,
}


def compile(
    exported_program: ExportedProgram,
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> CompiledModule:
    """Compiles a program of torch.export ahead of time.

    inputs (or arg_inputs) and kwarg_inputs: tensors or `ingot.Input`s that narrow the program's dynamic dims and say what to
    optimize for; may be left out. Options as in `ingot.compile`.
    Returns a module that is called like the model. Nodes that Ingot lacks run in torch (see `ingot.report`).
    Raises UnsupportedError with require_full_compilation, UserError on bad options or inputs.
    """
    require(exported_program, ExportedProgram, "compile takes a program of torch.export")
    with one_program.building(exported_program.graph_module, one_program.is_wanted(options)):
        return _compile_program(exported_program, Settings.parse(options), inputs, arg_inputs, kwarg_inputs)


def _compile_program(
    exported_program: ExportedProgram,
    settings: Settings,
    inputs: Sequence[Any] | None,
    arg_inputs: Sequence[Any] | None,
    kwarg_inputs: Mapping[str, Any] | None,
) -> CompiledModule:
    positional, keywords = given_inputs(inputs if inputs is not None else arg_inputs, kwarg_inputs)
    if settings.one_program:
        positional, keywords = one_program.agree_on_ranges(exported_program, positional, keywords)
    names = [str(name) for name in exported_program.graph_signature.user_inputs]
    in_spec = exported_program.call_spec.in_spec
    given = matched(in_spec, argument_names(exported_program), names, positional, keywords)
    check_fits(exported_program, given)
    settings.add_profiles([value.profile(name) for name, value in given if isinstance(value, InputSizes)])
    warn_of_training(exported_program)
    program, graph = importable(exported_program)
    return _compile(program, graph, settings, None if program is exported_program else exported_program)


def _compile(
    program: ExportedProgram, graph: GraphModule, settings: Settings, original: ExportedProgram | None = None
) -> CompiledModule:
    """`graph` replaces the program's own. `original`: the program whose functional form `program` is, and whose guards apply to it."""
    described, outputs = describe(program)
    users = {str(name) for name in program.graph_signature.user_inputs}
    guards = [text for guarded in (program, original) if guarded is not None for text in guard_texts(guarded)]
    if settings.one_program:
        guards = one_program.guards_of_all(graph, guards)
    if not settings.one_engine:  # which takes integers itself
        trust_guards(graph, guards, one_program.read_by_any(graph) if settings.one_program else ())

    def prepare(capture: Capture) -> None:
        spec = program.call_spec
        capture.builder.signature(
            text_of(spec.in_spec),
            text_of(spec.out_spec),
            argument_names(program),
        )
        add_other_names(capture, program, described)
        if settings.one_engine:
            capture.builder.pass_numbers()
        for guard in guards:
            capture.builder.guard(guard)

    try:
        compiled = compile_graph(graph, described, outputs, settings, prepare)
    except UnsupportedError as error:
        refuse_dtypes(graph.graph, users, {error.node})
        raise
    refuse_dtypes(graph.graph, users, {node.name for node in compiled.report.fallbacks})
    is_decomposed = original is not None  # as a whole, what Ingot knows too
    refuse_mixed_dtypes(
        (original or program).graph, users, lambda target: is_decomposed or not is_known(target)
    )
    if compiled.guards is not None:
        compiled.guards.begin(argument_names(program), program.example_inputs)
    return CompiledModule(program, compiled, described, original or program)


def add_other_names(capture: Capture, program: ExportedProgram, inputs: Sequence[Input]) -> None:
    """The entries of the state dict that are not inputs: tied to one, or not read."""
    tensors = {place_of(given.data): given.name for given in inputs if given.data is not None}
    names = {given.name for given in inputs}
    for name, value in program.state_dict.items():
        if name not in names:
            capture.builder.other_name(name, tensors.get(place_of(value), ""))


def build(
    exported_program: ExportedProgram,
    *,
    inputs: Sequence[Any] | None = None,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Engine:
    """One engine of a whole program; inputs as in `compile`. UnsupportedError names the first node that an engine cannot run."""
    if not isinstance(exported_program, ExportedProgram):
        raise UserError(
            f"build takes an ExportedProgram or the path of a .pt2 file, not {kind_of(exported_program)}",
            code="INGOT-U006",
            advice="export a module first: torch.export.export(model, args)",
        )
    with one_program.building(exported_program.graph_module, one_program.is_wanted(options)):
        options = without_peer_options(options)
        refuse_for_engines(Settings.parse(options))
        settings = Settings.parse({**options, "require_full_compilation": True})
        settings.one_engine = True
        return _compile_program(exported_program, settings, inputs, arg_inputs, kwarg_inputs).engine


def __getattr__(name: str) -> Any:
    """Functions whose module imports this one."""
    if name == "trace":
        from ingot import front

        return front.trace
    if name not in _CROSS_COMPILING:
        raise missing("ingot.dynamo", name)
    from ingot import cross_compiling

    return getattr(cross_compiling, _CROSS_COMPILING[name])


def importable(program: ExportedProgram) -> tuple[ExportedProgram, GraphModule]:
    """The graph to import of a program, and the program whose inputs and outputs it has: another one if all of it was decomposed."""
    with compat.tracing():
        graph = rewritten(program)
        if graph is not None:
            return program, graph
        decomposed = functional(program)
        return decomposed, decomposed.graph_module


def functional(program: ExportedProgram) -> ExportedProgram:
    """The program in the functional dialect, keeping what Ingot imports whole; the program itself if torch cannot convert it."""
    if getattr(program, "dialect", "") == "ATEN" and not compat.is_in_autocast():
        return program
    try:
        with (
            compat.without_own_deprecations(),
            composites.without_copying_references(),
            composites.writes_as_copies(),
            composites.traced_least_squares(),
            composites.narrowed_as_in_eager(),
        ):
            traced = with_expanded_sources(with_selects(program))
            return without_tokens(traced.run_decompositions(decompositions())) or program
    except Exception:  # torch 2.13: mutated constants that alias buffers, writes into tensors sized by data
        return program  # the importer reads the training dialect; what it lacks runs in torch


def describe(program: ExportedProgram) -> tuple[list[Input], list[Output]]:
    """The roles of the placeholders and outputs of a program."""
    signature = program.graph_signature
    inputs = []
    for spec in signature.input_specs:
        kind = _INPUT_KINDS.get(spec.kind)
        if kind is None:
            raise UnsupportedError(
                f"the program has an input of kind {spec.kind.name}, which Ingot does not support",
                code="INGOT-N003",
            )
        name = getattr(spec.arg, "name", "") if kind == InputRole.USER else str(spec.target)
        is_saved = spec.kind is not InputKind.BUFFER or spec.persistent is not False
        inputs.append(
            Input(kind, name, _weight(program, spec, kind), getattr(spec.arg, "value", None), is_saved)
        )
    outputs = []
    for spec in signature.output_specs:
        if spec.kind not in _OUTPUT_KINDS:
            raise UnsupportedError(
                f"the program has an output of kind {spec.kind.name}, which Ingot does not support",
                code="INGOT-N003",
            )
        outputs.append(Output(_OUTPUT_KINDS[spec.kind], spec.target))
    return with_other_names(inputs, tied_names(program.state_dict)), outputs


def _weight(program: ExportedProgram, spec: Any, kind: InputRole) -> torch.Tensor | None:
    if kind == InputRole.USER:
        return None
    value = program.state_dict.get(spec.target)
    value = program.constants.get(spec.target) if value is None else value
    if not isinstance(value, torch.Tensor):
        raise UserError(f"the program has no value for {spec.target}", code="INGOT-U009")
    return value.detach()
