# SPDX-License-Identifier: Apache-2.0
"""What each value of `ir` takes, and what of it torch.export traces (docs/design/019-front-ends.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from ingot import compat
from ingot.errors import UserError, first_line, kind_of
from ingot.file_kinds import FileKind, file_kind
from ingot.paths import path_text, shown
from ingot.torchscript.holder import ScriptedFunction, ScriptModel

Traceable = torch.nn.Module | torch.export.ExportedProgram
_SCRIPTS = (torch.jit.ScriptModule, torch.jit.ScriptFunction)


def _by_kind(model: Any) -> Traceable:
    is_script = isinstance(model, (*_SCRIPTS, str, os.PathLike))
    return _torchscript(model) if is_script else _module(model)


def _module(model: Any) -> Traceable:
    if isinstance(model, _SCRIPTS):
        raise UserError(
            f'ir="dynamo" exports a module of Python, and {kind_of(model)} has none of its code',
            code="INGOT-U006",
            advice='compile it with ir="ts", or pass the module that it was made of',
        )
    if isinstance(model, (torch.nn.Module, torch.export.ExportedProgram)):
        return model
    raise UserError(
        f"ahead of time, a model is a torch.nn.Module, an ExportedProgram, or TorchScript, not {kind_of(model)}",
        code="INGOT-U006",
        advice='put the function into the forward of a module, or compile it with ir="torch_compile"',
    )


def _torchscript(model: Any) -> torch.nn.Module:
    if isinstance(model, (str, os.PathLike)):
        model = _opened(path_text(model))
    elif isinstance(model, torch.nn.Module) and not isinstance(model, torch.jit.ScriptModule):
        with compat.without_own_deprecations():
            model = torch.jit.script(model)
    if isinstance(model, torch.jit.ScriptFunction):
        return ScriptedFunction(model)
    if not isinstance(model, torch.jit.ScriptModule):
        raise UserError(
            f"TorchScript is a scripted or traced module or function, or the path of a file, not {kind_of(model)}",
            code="INGOT-U006",
            advice="pass torch.jit.script(model), torch.jit.trace(model, inputs) or a file of torch.jit.save",
        )
    if not model._c._has_method("forward"):
        raise UserError("the TorchScript module has no forward", code="INGOT-U006")
    return ScriptModel(model)


def _opened(path: str) -> torch.jit.ScriptModule:
    try:
        with compat.without_own_deprecations(), open(path, "rb") as file:
            return torch.jit.load(file, map_location="cpu")
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"cannot open '{shown(path)}': {cause}",
            code="INGOT-U120",
            advice="check the path and its permissions",
        ) from None
    except RuntimeError as error:
        kind = file_kind(path)
        cause = f"it is {kind.title}" if kind is not FileKind.SCRIPT else first_line(error)
        raise UserError(
            f"'{shown(path)}' is not a file that torch.jit.load can read: {cause}",
            code="INGOT-U006",
            advice=kind.advice,
        ) from error


def _fx(model: Any) -> torch.nn.Module:
    if isinstance(model, torch.fx.GraphModule):
        return model
    if isinstance(model, torch.nn.Module) and not isinstance(model, torch.jit.ScriptModule):
        tracer = torch.fx.Tracer()
        tracer.record_stack_traces = True
        try:
            return torch.fx.GraphModule(model, tracer.trace(model))
        except (torch.fx.proxy.TraceError, TypeError) as error:
            raise UserError(
                f"torch.fx cannot trace the model: {first_line(error)}",
                code="INGOT-U006",
                advice='ir="dynamo" traces it with its inputs, and so knows what its branches choose',
            ) from error
    raise UserError(
        f'ir="fx" takes a torch.fx.GraphModule, not {kind_of(model)}',
        code="INGOT-U006",
        advice="pass torch.fx.symbolic_trace(model), or the model",
    )


FRONTS: dict[str, Callable[[Any], Traceable]] = {
    "default": _by_kind,
    "dynamo": _module,
    "ts": _torchscript,
    "torchscript": _torchscript,
    "fx": _fx,
}
