# SPDX-License-Identifier: Apache-2.0
"""`ingot.export_onnx`: ONNX models that show engines and models in viewers such as Netron."""

from __future__ import annotations

import os
from typing import Any

from ingot import _core
from ingot.engine import Engine
from ingot.errors import UnsupportedError, UserError, kind_of, require
from ingot.paths import path_text
from ingot.settings import Settings


def export_onnx(
    source: Any, path: str | os.PathLike[str], *, engine: int | None = None, stage: str = "", **options: Any
) -> None:
    """Writes an ONNX model for viewers, atomically. Its operators are Ingot's, so no runtime of ONNX runs it.

    source: an `Engine`, a result of `ingot.compile` or torch.compile(..., backend="ingot") after its first call, or the path of
    an engine, a .pt2 or an .onnx file.
    engine: which one, of a model with several between which torch runs parts: their numbers count the engines in the order of
    `ingot.report(source)`.
    stage: of a model file "imported" or "optimized" (by default), its graph before or after the passes of a build with these
    options; of everything else "steps" (by default), what the engine runs, or "imported", the graph that it was built from, without
    the names of nodes and weights.
    Raises UserError for other stages, and for options of what is built already.
    """
    require(stage, str, "stage must be a str")
    export = _file if isinstance(source, (str, os.PathLike)) else _built
    content = export(source, stage, engine, options)
    file = _core.FileWriter(path_text(path))
    file.write(content)
    file.finish()


def _file(source: str | os.PathLike[str], stage: str, engine: int | None, options: dict[str, Any]) -> bytes:
    if engine is not None:
        raise UserError(
            "a file has one engine: leave out the argument engine",
            code="INGOT-U002",
        )
    compiler = Settings.parse(options).compiler if options else {}
    return _core.export_file(path_text(source), stage, compiler)


def _built(source: Any, stage: str, engine: int | None, options: dict[str, Any]) -> bytes:
    engines = _engines_of(source)
    if options:
        raise UserError(
            f'the option "{next(iter(options))}" is for model files: this {type(source).__name__} is built already',
            code="INGOT-U002",
            advice="leave it out, or pass the path of the model",
        )
    return _core.export_engine(_chosen(engines, engine), stage)


def _engines_of(source: Any) -> list[Any]:
    if isinstance(source, Engine):
        return [source._core]
    if type(source).__name__ == "ExportedProgram":
        raise UserError(
            "an ExportedProgram is exported from its file",
            code="INGOT-U006",
            advice="save it with torch.export.save(program, path) and pass the path, or pass ingot.compile(program)",
        )
    if not callable(source):
        raise UserError(
            f"export_onnx takes an Engine, a compiled model or the path of a file, not {kind_of(source)}",
            code="INGOT-U006",
        )
    from ingot import front

    return list(front.report(source).engines)


def _chosen(engines: list[Any], number: int | None) -> Any:
    if not engines:
        raise UnsupportedError(
            "there is no engine to export: torch runs the whole model",
            code="INGOT-N002",
            advice="print ingot.report(compiled)",
        )
    if number is None and len(engines) == 1:
        return engines[0]
    if number is None or type(number) is not int or not 0 <= number < len(engines):
        asked = "" if number is None else f", not {number!r}"
        raise UserError(
            f"the model has {len(engines)} engine{'s' if len(engines) > 1 else ''}: "
            f"engine= is a number from 0 to {len(engines) - 1}{asked}",
            code="INGOT-U002",
            advice="export each to a file of its own; print ingot.report(compiled) for what they run",
        )
    return engines[number]
