# SPDX-License-Identifier: Apache-2.0
"""Compiling for Windows, by the names of Torch-TensorRT. What comes out also runs here, if this processor has what it needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from torch.export import ExportedProgram

from ingot import dynamo
from ingot.errors import UserError
from ingot.front import compile
from ingot.module import CompiledModule
from ingot.paths import path_text
from ingot.saving import load, save

_TARGET = "windows-x86-64"


def cross_compile_for_windows(
    module: Any,
    file_path: str | os.PathLike[str],
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Compiles a model for Windows and writes it, as `save_cross_compiled_exported_program` does.

    Arguments as for `ingot.compile`. The processor is an x86-64-v3, unless the option `cpu` names another.
    """
    options = _for_windows(options)
    compiled = compile(module, inputs=inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **options)
    save_cross_compiled_exported_program(compiled, file_path)


def cross_compile_program_for_windows(
    exported_program: ExportedProgram,
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> CompiledModule:
    """Compiles a program of torch.export for Windows. Arguments as for `ingot.dynamo.compile`."""
    return dynamo.compile(
        exported_program, inputs, arg_inputs=arg_inputs, kwarg_inputs=kwarg_inputs, **_for_windows(options)
    )


def save_cross_compiled_exported_program(module: CompiledModule, file_path: str | os.PathLike[str]) -> None:
    """Writes a compiled module: a path that ends with .ingot gets an engine, which Windows runs without Python (whole programs
    only), any other a .pt2."""
    is_engine = path_text(file_path).endswith(".ingot")
    save(module, file_path, output_format="engine" if is_engine else "exported_program")


def load_cross_compiled_exported_program(file_path: str | os.PathLike[str]) -> Any:
    """Opens what was compiled for Windows: on Windows, or here. UserError INGOT-U220 if this processor lacks what it needs."""
    return load(file_path)


def _for_windows(options: Mapping[str, Any]) -> dict[str, Any]:
    target = options.get("target", _TARGET)
    if target != _TARGET:
        raise UserError(
            f'cross_compile_for_windows compiles for "{_TARGET}", not for {target!r}',
            code="INGOT-U002",
            advice="leave out target, or use ingot.compile",
        )
    return {**options, "target": _TARGET}
