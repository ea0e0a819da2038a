# SPDX-License-Identifier: Apache-2.0
"""ONNX models, compiled ahead of time: `ingot.onnx.compile("model.onnx")`. Needs neither torch nor the package onnx."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ingot import _core, building
from ingot.engine import Engine
from ingot.errors import UserError, kind_of


def compile(
    model: str | os.PathLike[str] | bytes | Any,
    inputs: Sequence[Any] | None = None,
    *,
    arg_inputs: Sequence[Any] | None = None,
    kwarg_inputs: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Engine:
    """Builds one engine of an ONNX model of opset 13 to 23.

    model: a file, an onnx.ModelProto (or what else has SerializeToString), or the bytes of one.
    inputs: `ingot.Input`s with the names of the model's inputs, for the ranges of its dynamic dims; the option `shapes` says the
    same without torch.
    folder: where a model in memory has the files of its external data; by default such data is an error.
    options: as for `ingot.build`.
    Returns an engine that takes the model's inputs in order or by name, and returns its outputs in order.
    Raises UnsupportedError that names the first node that an engine cannot run, and its operator.
    """
    given = inputs if inputs is not None else arg_inputs
    if isinstance(model, (str, os.PathLike)):
        if folder is not None:
            raise UserError("folder is for models in memory: a file has one", code="INGOT-U002")
        return building.build_file(model, given, kwarg_inputs, options)
    return building.build_onnx(_bytes_of(model), folder, given, kwarg_inputs, options)


def has_operator(name: str) -> bool:
    """Whether Ingot has that operator of ONNX, such as "Gemm". A node may still ask for what is not supported."""
    return _core.imports_onnx_operator(name)


def _bytes_of(model: Any) -> bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    serialize = getattr(model, "SerializeToString", None)
    if serialize is None:
        raise UserError(
            f"an ONNX model is a path, an onnx.ModelProto or its bytes, not {kind_of(model)}",
            code="INGOT-U006",
        )
    try:
        return serialize()
    except ValueError as error:  # more than protobuf can write
        raise UserError(
            f"the model cannot be serialized: {error}",
            code="INGOT-U006",
            advice="save it with onnx.save(model, path, save_as_external_data=True), and pass the path",
        ) from error
