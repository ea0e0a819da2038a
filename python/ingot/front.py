# SPDX-License-Identifier: Apache-2.0
"""`ingot.compile`, `ingot.build`, `ingot.report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ingot import dynamo
from ingot.errors import UserError
from ingot.inputs import Input, as_input
from ingot.reporting import Report
from ingot.torch_backend import backend

build = dynamo.build


def compile(
    model: torch.nn.Module | torch.export.ExportedProgram,
    ir: str = "dynamo",
    inputs: Sequence[Input | torch.Tensor] | None = None,
    *,
    arg_inputs: Sequence[Input | torch.Tensor] | None = None,
    kwarg_inputs: Mapping[str, Input | torch.Tensor] | None = None,
    **options: Any,
) -> Any:
    """Compiles a model.

    ir: "dynamo" exports the model and compiles it ahead of time; "torch_compile" returns torch.compile(model, backend="ingot").
    inputs (or arg_inputs), kwarg_inputs: tensors or `ingot.Input`s, as forward takes them; not needed for
    "torch_compile" or for an ExportedProgram.
    options: `require_full_compilation`, `torch_executed_ops`, `min_block_size`, `progress`, and all of `ingot build --help`.
    Raises UserError on bad options or inputs, UnsupportedError if full compilation is required and impossible.
    """
    if ir == "torch_compile":
        return _just_in_time(model, options)
    if ir != "dynamo":
        raise UserError(f'ir is "dynamo" or "torch_compile", not "{ir}"', code="INGOT-U002")
    if isinstance(model, torch.export.ExportedProgram):
        return dynamo.compile(model, inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options)
    positional = [as_input(value) for value in (inputs if inputs is not None else arg_inputs) or []]
    keywords = {name: as_input(value) for name, value in (kwarg_inputs or {}).items()}
    program = export(model, positional, keywords)
    return dynamo.compile(program, positional, kwarg_inputs=keywords, **options)


def export(
    model: torch.nn.Module,
    positional: Sequence[Input | torch.Tensor],
    keywords: Mapping[str, Input | torch.Tensor],
) -> torch.export.ExportedProgram:
    """The exported program of a model in inference mode for these inputs."""
    if not positional and not keywords:
        raise UserError(
            "ahead-of-time compilation needs inputs",
            code="INGOT-U008",
            advice="pass inputs=[ingot.Input(...)]",
        )
    args = tuple(_example(value) for value in positional)
    kwargs = {name: _example(value) for name, value in keywords.items()}
    shapes = (
        [_dynamic(value) for value in positional],
        {name: _dynamic(value) for name, value in keywords.items()},
    )
    dynamic = _by_argument(model, shapes) if any(shapes[0]) or any(shapes[1].values()) else None
    with torch.no_grad():
        return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic)


def _example(value: Input | torch.Tensor) -> torch.Tensor:
    return value.example() if isinstance(value, Input) else value


def _dynamic(value: Input | torch.Tensor) -> dict[int, Any]:
    return value.dynamic_dims() if isinstance(value, Input) else {}


def _by_argument(model: torch.nn.Module, shapes: tuple[list, dict]) -> dict[str, Any]:
    import inspect

    bound = inspect.signature(model.forward).bind(*shapes[0], **shapes[1])
    return dict(bound.arguments)


def _just_in_time(model: Any, options: dict[str, Any]) -> Any:
    reports: list[Report] = []

    def named_backend(module: Any, example_inputs: Any, **kwargs: Any) -> Any:
        return backend(module, example_inputs, options=options, reports=reports, **kwargs)

    named_backend.compiler_name = "ingot"
    compiled = torch.compile(model, backend=named_backend)
    compiled.ingot_reports = reports
    return compiled


def report(compiled: Any) -> Report:
    """What ran where: of what `ingot.compile` returned; just-in-time modules after their first call."""
    found = getattr(compiled, "report", None)
    if isinstance(found, Report):
        return found
    reports = getattr(compiled, "ingot_reports", None)
    if reports is None:
        raise UserError(f"there is no report on a {type(compiled).__name__}", code="INGOT-U007",
                        advice="pass what ingot.compile returned")  # fmt: skip
    return Report([segment for each in reports for segment in each.segments])
