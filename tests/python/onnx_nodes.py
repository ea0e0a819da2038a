# SPDX-License-Identifier: Apache-2.0
"""The node tests of the package onnx: one model of a few nodes each, with inputs and outputs. Version 1.18, the last one whose cases are
of opset 23 at most, has them as files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import onnx
import onnx.backend.test
import torch

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "node"
# Version 1.18 computed these wrongly: it took heads for positions in inputs of three dims, repeated the heads of keys in another order
# than it says, and confused two modes of an output. Later versions corrected them.
CORRECTED = ("test_attention_3d", "test_attention_4d_gqa", "qk_matmul_bias", "qk_matmul_softcap")
SLICE = 6  # each run of the tests takes every sixth case; the long mode takes all


@dataclass
class Case:
    name: str
    model: onnx.ModelProto
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float = 1e-3  # of the package's own runner
    atol: float = 1e-7


@dataclass
class Outcome:
    name: str
    operator: str
    status: str  # right, right with constants, unsupported, rejected (a case that Ingot calls invalid), wrong
    detail: str = ""


def names() -> list[str]:
    found = sorted(each.name for each in FOLDER.iterdir() if (each / "model.onnx").is_file())
    return [name for name in found if not any(part in name for part in CORRECTED)]


def cases(chosen: list[str]) -> Iterator[Case]:
    for name in chosen:
        model = onnx.load(FOLDER / name / "model.onnx")
        sets = sorted((FOLDER / name).glob("test_data_set_*"))
        yield Case(
            name,
            model,
            [
                (_values(each, "input", model.graph.input), _values(each, "output", model.graph.output))
                for each in sets
            ],
        )


def _values(folder: Path, kind: str, declared: Any) -> list[Any]:
    """The tensors of a data set; None for sequences and optional values, which no engine takes."""
    values = []
    for position, each in enumerate(declared):
        path = folder / f"{kind}_{position}.pb"
        if not each.type.HasField("tensor_type") or not path.is_file():
            values.append(None)
            continue
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        if each.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16:
            tensor.data_type = onnx.TensorProto.BFLOAT16  # some files call its bits uint16
        values.append(tensor)
    return values


def _tensor(proto: onnx.TensorProto) -> torch.Tensor:
    array = onnx.numpy_helper.to_array(proto)
    if proto.data_type == onnx.TensorProto.BFLOAT16:  # which numpy lacks
        bits = (
            array.view(np.uint16)
            if array.dtype.itemsize == 2
            else array.astype(np.float32).view(np.uint32) >> 16
        )
        return torch.from_numpy(bits.astype(np.uint16).view(np.int16).copy()).view(torch.bfloat16)
    if proto.data_type in _FLOAT8:
        return torch.from_numpy(array.astype(np.uint8)).view(_FLOAT8[proto.data_type])
    return torch.from_numpy(np.array(array))


_FLOAT8 = {  # codes, to numpy
    onnx.TensorProto.FLOAT8E4M3FN: torch.float8_e4m3fn,
    onnx.TensorProto.FLOAT8E5M2: torch.float8_e5m2,
}


def outcome(case: Case) -> Outcome:
    """What becomes of one case, by the tolerance that it names. Where an operator needs values that the case passes as inputs (axes,
    shapes, scales), they are made initializers: first all inputs but one, then all."""
    operator = case.name.removeprefix("test_")
    if case.model.graph.node:
        operator = case.model.graph.node[-1].op_type
    result = Outcome(case.name, operator, "unsupported")
    for fixed, status in ((0, "right"), (1, "right with constants"), (2, "right with constants")):
        for inputs, expected in case.data_sets:
            try:
                result = Outcome(case.name, operator, status, _compare(case, inputs, expected, fixed))
            except ingot.UnsupportedError as error:
                result = Outcome(case.name, operator, "unsupported", first_line(error))
            except ingot.UserError as error:
                result = Outcome(case.name, operator, "rejected", first_line(error))
            except (AssertionError, ValueError, TypeError, RuntimeError, OSError) as error:
                result = Outcome(case.name, operator, "wrong", str(error).strip()[:400])
            if result.status != status:
                break
        needs_values = "values of a run" in result.detail or "is not a constant" in result.detail
        if result.status != "unsupported" or not needs_values:
            return result
    return result


def _compare(case: Case, inputs: list[Any], expected: list[Any], fixed: int) -> str:
    model, given = case.model, list(inputs)
    if fixed and None not in inputs:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        kept = 1 if fixed == 1 else 0
        for declared, value in list(zip(model.graph.input, inputs, strict=True))[kept:]:
            model.graph.initializer.add().CopyFrom(value)
            model.graph.initializer[-1].name = declared.name
        given = given[:kept]
    results = ingot.onnx.compile(model)(*[_tensor(value) for value in given])
    results = results if isinstance(results, (list, tuple)) else [results]
    for result, wanted in zip(results, expected, strict=True):
        check(torch.as_tensor(result), _tensor(wanted), case)
    return ""


HALF_TOLERANCE = 2e-2  # of the accuracy rule; the package's is below the precision of halves


def check(result: torch.Tensor, wanted: torch.Tensor, case: Case) -> None:
    assert result.shape == wanted.shape, f"shape {tuple(result.shape)}, not {tuple(wanted.shape)}"
    assert result.dtype == wanted.dtype, f"dtype {result.dtype}, not {wanted.dtype}"
    if wanted.dtype in _FLOAT8.values():
        result, wanted = result.float(), wanted.float()
    if not wanted.is_floating_point():
        assert torch.equal(result, wanted), f"{result.ravel()[:8]}, not {wanted.ravel()[:8]}"
        return
    is_half = wanted.dtype in (torch.float16, torch.bfloat16)
    rtol, atol = (HALF_TOLERANCE, 1e-3) if is_half else (case.rtol, case.atol)
    torch.testing.assert_close(result.double(), wanted.double(), rtol=rtol, atol=atol, equal_nan=True)


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
