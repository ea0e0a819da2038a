# SPDX-License-Identifier: Apache-2.0
"""`ingot.compile`, `ingot.report`."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from ingot import compat, composites, dynamo, one_program
from ingot.dtypes import refusal_by_dtypes
from ingot.durations import seconds
from ingot.dynamo_settings import compiled_whole
from ingot.errors import Error, UserError
from ingot.fitting import bind, check_annotated, given_inputs, has_tensor, no_tensor
from ingot.fronts import FRONTS
from ingot.inputs import dynamic_shapes, examples, narrowed, place
from ingot.known_buffers import exported
from ingot.module import CompiledModule
from ingot.mutable import MutableModule, compiled_form
from ingot.peer_options import without_peer_options
from ingot.pytrees import register_caches
from ingot.reporting import Report, short_path
from ingot.settings import Settings
from ingot.torch_backend import REPORTS, backend

_NOT_EXPORTED = (
    "ingot: the model was exported by torch.export, which failed here. "
    'torch.compile(model, backend="ingot"), or ir="torch_compile", takes it as it is: what cannot be traced runs in Python'
)


def compile(
    model: Any,
    ir: str = "default",
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Compiles a model.

    model: a torch.nn.Module or an ExportedProgram; a TorchScript module or function, or the path of a file of torch.jit.save; a
    GraphModule of torch.fx.
    ir: "dynamo" exports the model and compiles it ahead of time; "ts" ("torchscript") does so with a TorchScript model, to which
    it scripts other modules; "fx" with an FX graph, to which it traces other modules; "default" chooses among these by what the
    model is. "torch_compile" returns torch.compile(model, backend="ingot"), traced with the settings of Dynamo that avoid graph breaks.
    inputs (or arg_inputs), kwarg_inputs: tensors, `ingot.Input`s, numbers, None, and tuples, lists and dicts of these, as forward
    takes them; not needed for "torch_compile" or for an ExportedProgram.
    options: `require_full_compilation`, `torch_executed_ops`, `min_block_size`, `metadata`, `progress`, and all of `ingot build --help`;
    those of Torch-TensorRT that have nothing to do here are accepted with a notice.
    Raises UserError on bad options or inputs, UnsupportedError if full compilation is required and impossible.
    """
    options = without_peer_options(options)  # so that one notice names them
    if isinstance(ir, str) and ir == "torch_compile":
        with one_program.calling(model, options, one_program.JUST_IN_TIME):
            Settings.parse(options, compile)
        return compiled_whole(model, backend, options)
    with one_program.calling(model, options):
        return _ahead_of_time(model, ir, inputs if inputs is not None else arg_inputs, kwarg_inputs, options)


def _ahead_of_time(
    model: Any,
    ir: Any,
    inputs: Sequence[Any] | None,
    kwarg_inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> CompiledModule:
    Settings.parse(options, compile)  # before the export, which may take minutes
    if not isinstance(ir, str) or ir not in FRONTS:
        names = ", ".join(f'"{name}"' for name in FRONTS)
        raise UserError(f'ir is one of {names} and "torch_compile", not {ir!r}', code="INGOT-U002")
    model = FRONTS[ir](model)
    positional, keywords = given_inputs(inputs, kwarg_inputs)
    if isinstance(model, torch.export.ExportedProgram):
        return dynamo.compile(model, positional, kwarg_inputs=keywords, **options)
    args, kwargs = place(list(inspect.signature(model.forward).parameters), positional, keywords)
    program = export(model, args, kwargs)
    args, kwargs = narrowed(program, args, kwargs)
    return dynamo.compile(program, args, kwarg_inputs=kwargs, **options)


def export(
    model: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic: Any = None
) -> torch.export.ExportedProgram:
    """The exported program of a model, which may be TorchScript, in inference mode for these inputs: trees of tensors, Inputs and
    plain values.

    dynamic: torch.export's `dynamic_shapes`, instead of the ranges of Inputs.
    """
    model = FRONTS["default"](model)
    signature = inspect.signature(model.forward)
    if not args and not kwargs and signature.parameters:
        raise UserError(
            "ahead-of-time compilation needs inputs",
            code="INGOT-U008",
            advice="pass inputs=[ingot.Input(...)]",
        )
    register_caches()
    bound = bind(signature, args, kwargs)
    device = next((parameter.device for parameter in model.parameters()), None)
    example_args, example_kwargs = examples((tuple(args), dict(kwargs)), device)
    check_annotated(signature, bound)
    shapes = dynamic_shapes(bound) if dynamic is None else dynamic
    is_dynamic = any(shape is not None for shape in _pytree.tree_leaves(shapes))
    try:
        with compat.tracing(), composites.traced_least_squares(), torch.no_grad():
            program = exported(model, example_args, example_kwargs, shapes if is_dynamic else None)
    except Exception as error:
        is_ours = isinstance(error, Error)
        if not is_ours and (refusal := refusal_by_dtypes(model, example_args, example_kwargs)):
            raise refusal from error
        if not bound or has_tensor(bound):
            error.add_note(_NOT_EXPORTED)
            raise
        raise no_tensor(*next(iter(bound.items()))) from error
    if bound and not has_tensor(bound) and not _returns_tensor(program):
        raise no_tensor(*next(iter(bound.items())))
    return program


def trace(
    model: torch.nn.Module,
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> torch.export.ExportedProgram:
    """What `ingot.compile(ir="dynamo")` compiles: the model's program of torch.export.

    inputs (or arg_inputs), kwarg_inputs: as `ingot.compile` takes them; caches of transformers are trees of tensors.
    dynamic_shapes: torch.export's, for dims that `ingot.Input` cannot describe, such as those of caches.
    """
    positional, keywords = given_inputs(inputs if inputs is not None else arg_inputs, kwarg_inputs)
    args, kwargs = place(list(inspect.signature(model.forward).parameters), positional, keywords)
    return export(model, args, kwargs, dynamic_shapes)


def _returns_tensor(program: torch.export.ExportedProgram) -> bool:
    return any(
        isinstance(spec.arg, torch.export.graph_signature.TensorArgument)
        for spec in program.graph_signature.output_specs
    )


def report(compiled: Any) -> Report:
    """What ran where, for a result of `ingot.compile` or torch.compile(..., backend="ingot"); for the latter after its
    first call, with the segments of all graphs compiled so far. UserError if there is none.
    """
    if isinstance(compiled, CompiledModule):
        return compiled.report
    if isinstance(compiled, MutableModule):
        compiled = compiled_form(compiled)
    call = compat.compile_call_of(compiled)
    reports = getattr(call, REPORTS, None)
    if not reports and getattr(call, "compiler_fn", None) is backend:
        raise _nothing_reached_ingot(compiled)
    if reports is None:
        raise UserError(
            f"there is no report for this {type(compiled).__name__}",
            code="INGOT-U007",
            advice='pass what ingot.compile returned, or torch.compile(..., backend="ingot") after its first call',
        )
    segments = [segment for each in reports for segment in each.segments]
    sources = [node.source for segment in segments for node in segment.nodes]
    breaks = [
        _break_text(*row) for row in compat.graph_breaks() if any(each.startswith(row[1]) for each in sources)
    ]
    merged = Report(segments, breaks=breaks)
    for name in ("engines", "builds", "stages", "staged", "trials"):
        setattr(merged, name, [row for each in reports for row in getattr(each, name)])
    return merged


def wait_until_tuned(compiled: Any, timeout: float | None = None) -> bool:
    """Waits until no stage of a staged build is left, of what `ingot.compile` or torch.compile returned; of the latter after its
    first call. False after `timeout` seconds. `ingot.report(compiled).stages` says how they ended.
    """
    end = None if timeout is None else time.monotonic() + seconds(timeout)
    staged = report(compiled).staged
    return all(each.wait(None if end is None else max(0.0, end - time.monotonic())) for each in staged)


def stop_tuning(compiled: Any) -> None:
    """Ends a staged build: the engines that run now stay."""
    for each in report(compiled).staged:
        each.stop()


def _break_text(reason: str, file: str, line: int, function: str) -> str:
    return f"{reason} -- {short_path(file)}:{line} in {function}"


def _nothing_reached_ingot(compiled: Any) -> UserError:
    """For a model that was not called yet, or that torch ran without a graph: Dynamo does not tell which, but keeps its reasons."""
    reasons = [_break_text(*row) for row in compat.graph_breaks()] or compat.untraced()
    kept = "".join(f"\n  not traced in this process: {each}" for each in reasons[-_MOST_REASONS:])
    return UserError(
        f"there is no report for this {type(compiled).__name__}: nothing of it has reached Ingot so far{kept}",
        code="INGOT-U007",
        advice="ask after its first call; if it was called, torch ran it without a graph (TORCH_LOGS=graph_breaks shows why), "
        "or with the graph of another module of its class: ask for that one's report",
    )


_MOST_REASONS = 3
