# SPDX-License-Identifier: Apache-2.0
"""`ingot.build`. Compiles a .pt2 or .onnx file into an engine without torch."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot import _core, session
from ingot.engine import Engine
from ingot.errors import UserError
from ingot.notices import require_used_choices, warn_of_entries_without_node
from ingot.paths import path_text
from ingot.settings import Settings, refuse_for_engines
from ingot.slowness import Slowness

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_log = logging.getLogger("ingot")


def build(
    exported_program: ExportedProgram | str | os.PathLike[str],
    *,
    inputs: Sequence[Any] | None = None,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Engine:
    """Builds one engine of a whole program, or of a .pt2 or .onnx file (read without torch).

    inputs as in `ingot.compile`; of a file: `ingot.Input`s with the names of its inputs, or none: the option `shapes` says
    the same without torch.
    Raises UnsupportedError that names the first node that an engine cannot run.
    """
    if isinstance(exported_program, (str, os.PathLike)):
        given = inputs if inputs is not None else arg_inputs
        return build_file(exported_program, given, kwarg_inputs, options)
    from ingot import dynamo

    return dynamo.build(
        exported_program, inputs=inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options
    )


def build_file(
    path: str | os.PathLike[str],
    inputs: Sequence[Any] | None,
    kwarg_inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Engine:
    """One engine of a model file of any kind."""
    return _build(lambda *rest: _core.build_model(path_text(path), *rest), inputs, kwarg_inputs, options)


def build_onnx(
    model: bytes,
    folder: str | os.PathLike[str] | None,
    inputs: Sequence[Any] | None,
    kwarg_inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Engine:
    """One engine of a serialized ModelProto."""
    place = None if folder is None else path_text(folder, "folder")
    return _build(lambda *rest: _core.build_onnx(model, place, *rest), inputs, kwarg_inputs, options)


def _build(
    build: Callable[..., tuple[_core.Engine, str]],
    inputs: Sequence[Any] | None,
    kwarg_inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Engine:
    settings = Settings.parse(dict(options))
    if inputs or kwarg_inputs:
        settings.add_profiles(_profiles(inputs, kwarg_inputs))
    if settings.torch_executed_ops:
        raise UserError(
            'option "torch_executed_ops" is for programs that torch runs in part: a file always becomes one engine',
            code="INGOT-U002",
        )
    refuse_for_engines(settings)
    if settings.one_program:
        raise UserError(
            'option "rank" is "all" for programs that the ranks trace now: a file is the trace of one rank',
            code="INGOT-U002",
            advice='use rank="any" if the program does not depend on the rank, or the number of its rank',
        )
    engine, report = build(
        settings.compiler,
        settings.progress,
        settings.metadata,
        session.current(),
        settings.custom_engine_cache,
    )
    parsed = json.loads(report)
    warn_of_entries_without_node([parsed["disabled_without_node"]])
    require_used_choices([parsed])
    for row in parsed["slow"]:
        slowness = Slowness(row["reason"], row["own_ns"], row["peer_ns"])
        _log.warning("%s (%s) is %s", row["op"], row["node"], slowness)
    return Engine(settings.apply_to(engine))


def _profiles(inputs: Sequence[Any] | None, kwarg_inputs: Mapping[str, Any] | None) -> list[str]:
    """The sizes that `ingot.Input`s, which need torch, specify for the inputs of a file."""
    from ingot.fitting import given_inputs
    from ingot.inputs import Input

    positional, keywords = given_inputs(inputs, kwarg_inputs)
    given = {name: value for name, value in keywords.items() if isinstance(value, Input)}
    for value in positional:
        if not isinstance(value, Input) or not value.name:
            raise UserError("inputs of a file must be ingot.Inputs with names", code="INGOT-U006")
        given[value.name] = value
    return [value.profile(name) for name, value in given.items()]
