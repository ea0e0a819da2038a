# SPDX-License-Identifier: Apache-2.0
"""`ingot.build`. Compiles a .pt2 file into an engine without torch."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot import _core, session
from ingot.engine import Engine
from ingot.errors import UserError
from ingot.notices import warn_of_entries_without_node
from ingot.settings import Settings
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
    """Builds one engine of a whole program, or of a .pt2 file (read without torch).

    inputs as in `ingot.compile`; of a .pt2 file: `ingot.Input`s with the names of its inputs, or none: the option `shapes` says
    the same without torch.
    Raises UnsupportedError that names the first node that an engine cannot run.
    """
    if isinstance(exported_program, (str, os.PathLike)):
        settings = Settings.parse(options)
        if inputs or arg_inputs or kwarg_inputs:
            settings.add_profiles(_profiles(inputs if inputs is not None else arg_inputs, kwarg_inputs))
        return _build_file(exported_program, settings)
    from ingot import dynamo

    return dynamo.build(
        exported_program, inputs=inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options
    )


def _build_file(path: str | os.PathLike[str], settings: Settings) -> Engine:
    if settings.torch_executed_ops:
        raise UserError(
            'option "torch_executed_ops" is for programs that torch runs in part: a .pt2 file always becomes one engine',
            code="INGOT-U002",
        )
    engine, report = _core.build_pt2(
        os.fspath(path),
        settings.compiler,
        settings.progress,
        settings.metadata,
        session.current(),
        settings.custom_engine_cache,
    )
    parsed = json.loads(report)
    warn_of_entries_without_node([parsed["disabled_without_node"]])
    for row in parsed["slow"]:
        slowness = Slowness(row["reason"], row["own_ns"], row["peer_ns"])
        _log.warning("%s (%s) is %s", row["op"], row["node"], slowness)
    return Engine(engine)


def _profiles(inputs: Sequence[Any] | None, kwarg_inputs: Mapping[str, Any] | None) -> list[str]:
    """The sizes that `ingot.Input`s, which need torch, specify for the inputs of a file."""
    from ingot.fitting import given_inputs
    from ingot.inputs import Input

    positional, keywords = given_inputs(inputs, kwarg_inputs)
    given = {name: value for name, value in keywords.items() if isinstance(value, Input)}
    for value in positional:
        if not isinstance(value, Input) or not value.name:
            raise UserError("inputs of a .pt2 file must be ingot.Inputs with names", code="INGOT-U006")
        given[value.name] = value
    return [value.profile(name) for name, value in given.items()]
