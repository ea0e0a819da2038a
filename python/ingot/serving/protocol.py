# SPDX-License-Identifier: Apache-2.0
"""Tensors of the Open Inference Protocol (version 2): JSON, and the extension that puts their bytes behind it."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from ingot.engine import Port
from ingot.errors import UnsupportedError, UserError

DATATYPES = {
    "bool": "BOOL", "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "i8": "INT8", "i16": "INT16", "i32": "INT32",
    "i64": "INT64", "f16": "FP16", "bf16": "BF16", "f32": "FP32", "f64": "FP64",
}  # fmt: skip
_NUMPY = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8", "INT16": "int16",
    "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
}  # fmt: skip
_NAMES = {name: datatype for datatype, name in _NUMPY.items()}
_FLOATS = {"float32": "f", "float64": "d"}  # of module array
HEADER_LENGTH = "inference-header-content-length"


def datatype_of(tensor: np.ndarray) -> str:
    name = tensor.dtype.name
    if name not in _NAMES and name != "bfloat16":
        raise UnsupportedError(
            f"the protocol has no datatype for {name}",
            code="INGOT-N370",
            advice="convert the tensor to another dtype inside of the model (torch.view_as_real of complex ones)",
        )
    return _NAMES.get(name, "BF16")


def tensor_metadata(port: Port) -> dict[str, Any]:
    """Sizes that differ from call to call are -1; the engine's own range of each stands beside them."""
    shape = [dim if isinstance(dim, int) else -1 for dim in port.shape]
    datatype = DATATYPES.get(port.dtype, port.dtype)
    return {
        "name": port.name,
        "datatype": datatype,
        "shape": shape,
        "parameters": {
            "dims": ",".join(map(str, port.shape)),
            "ranges": ",".join(f"{a}..{b}" for a, b in port.ranges),
        },
    }


def bad_request(message: str) -> UserError:
    return UserError(
        message,
        code="INGOT-U370",
        advice="the server's metadata of the model lists the inputs with their datatypes and shapes",
    )


def numpy_dtype(datatype: Any, name: str) -> np.dtype:
    if datatype == "BF16":
        try:
            import ml_dtypes
        except ImportError:
            raise bad_request(f"input '{name}' is BF16, which needs the package ml_dtypes here") from None
        return np.dtype(ml_dtypes.bfloat16)
    if datatype not in _NUMPY:
        raise bad_request(
            f"input '{name}' has datatype {datatype!r}, which is not one of {', '.join(_NUMPY)}"
        )
    return np.dtype(_NUMPY[datatype])


def tensor_of(name: str, shape: Any, datatype: Any, content: Any) -> np.ndarray:
    """content: raw bytes, or numbers as nested or flat lists."""
    dtype = numpy_dtype(datatype, name)
    is_shape = isinstance(shape, list | tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not is_shape:
        raise bad_request(f"the shape of input '{name}' must be a list of sizes, not {shape!r}")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if isinstance(content, bytes | bytearray | memoryview):
        found = len(content) / dtype.itemsize
        if found != count:
            raise bad_request(
                f"input '{name}' has {len(content)} bytes, but {datatype} of shape {list(shape)} has "
                f"{count * dtype.itemsize}"
            )
        return np.frombuffer(content, dtype).reshape(shape)
    values = _values_of(name, datatype, dtype, content)
    if values.size != count:
        raise bad_request(
            f"input '{name}' has {values.size} elements, but its shape {list(shape)} has {count}"
        )
    return values.reshape(shape)


def _floats_of(dtype: np.dtype, content: Any) -> np.ndarray | None:
    """Of a flat list that begins with a float, in half the time; None for others, also those that have other elements."""
    code = _FLOATS.get(dtype.name)
    if code is None or not isinstance(content, list) or not content or type(content[0]) is not float:
        return None
    try:
        return np.frombuffer(array(code, content), dtype)
    except (TypeError, OverflowError):
        return None


def _values_of(name: str, datatype: str, dtype: np.dtype, content: Any) -> np.ndarray:
    """Of lists; a value that the datatype cannot hold is an error, and is not converted."""
    floats = _floats_of(dtype, content)
    if floats is not None:
        return floats
    try:
        values = np.asarray(content)
        allowed = {"b": "b", "i": "iu", "u": "iu"}.get(dtype.kind, "iuf")
        if values.size and values.dtype.kind not in allowed:
            raise ValueError(f"values of numpy's kind {values.dtype}")
        converted = values.astype(dtype)
        if dtype.kind in "iu" and not np.array_equal(converted, values):
            raise ValueError("values out of its range")
    except (ValueError, OverflowError, TypeError) as error:
        raise bad_request(f"the data of input '{name}' is not {datatype}: {error}") from None
    return converted


def parse_request(
    body: bytes, json_length: int | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The request's JSON, and its inputs by name."""
    length = len(body) if json_length is None else min(json_length, len(body))
    try:
        request = json.loads(body[:length])
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {error}") from None
    rows = request.get("inputs") if isinstance(request, dict) else None
    if isinstance(rows, list):
        rows = (
            rows
            if all(
                isinstance(part.get("parameters") or {}, dict)
                for part in (request, *rows)
                if isinstance(part, dict)
            )
            else None
        )
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("name"), str) for row in rows
    ):
        raise bad_request(
            'the body must be an object with "inputs", a list of objects with "name", "shape", "datatype" and "data"'
        )
    inputs: dict[str, np.ndarray] = {}
    position = length
    for row in rows:
        name, content = row["name"], row.get("data", [])
        size = (row.get("parameters") or {}).get("binary_data_size")
        if size is not None:
            if type(size) is not int or not 0 <= size <= len(body) - position:
                raise bad_request(
                    f"input '{name}' has binary_data_size {size!r}, but {len(body) - position} bytes are left of the body"
                )
            content = body[position : position + size]
            position += size
        if name in inputs:
            raise bad_request(f"input '{name}' is passed twice")
        inputs[name] = tensor_of(name, row.get("shape"), row.get("datatype"), content)
    if position != len(body):
        raise bad_request(f"{len(body) - position} bytes of the body belong to no input")
    return request, inputs


def header_length(text: str | None) -> int | None:
    """Of the header that says how long the JSON is, where bytes of tensors follow it."""
    if text is not None and not (text.isascii() and text.isdigit()):
        raise bad_request(f"the header {HEADER_LENGTH} must be a number of bytes, not {text!r}")
    return None if text is None else int(text)


def timeout_of(request: Mapping[str, Any]) -> float | None:
    """Seconds: the request's parameter "timeout", in microseconds."""
    timeout = (request.get("parameters") or {}).get("timeout")
    if timeout is None:
        return None
    if type(timeout) is not int or timeout < 0:
        raise bad_request(f'the parameter "timeout" must be microseconds, an integer, not {timeout!r}')
    return timeout / 1e6


def response_of(
    name: str, request: Mapping[str, Any], outputs: Mapping[str, np.ndarray]
) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON if bytes of tensors follow, which the request asks for (`binary_data_output`)."""
    is_binary = (request.get("parameters") or {}).get("binary_data_output") is True
    rows, contents = [], []
    for key, value in outputs.items():
        row: dict[str, Any] = {
            "name": key,
            "shape": list(value.shape),
            "datatype": datatype_of(value),
        }
        if is_binary:
            contents.append(np.ascontiguousarray(value).tobytes())
            row["parameters"] = {"binary_data_size": len(contents[-1])}
        else:
            row["data"] = (
                value.ravel().astype(np.float64 if value.dtype.name == "bfloat16" else value.dtype).tolist()
            )
        rows.append(row)
    head = json.dumps({"model_name": name, "id": str(request.get("id", "")), "outputs": rows}).encode()
    return b"".join([head, *contents]), len(head) if is_binary else None


def http_status(error: BaseException) -> int:
    """Of an error of the engine or the queue: whose fault it is."""
    code = getattr(error, "code", "")
    if code == "INGOT-U317":
        return 504
    if code == "INGOT-D360":
        return 503
    return 400 if isinstance(error, UserError) else 500
