# SPDX-License-Identifier: Apache-2.0
"""Tensors of the Open Inference Protocol, as model servers pass them to engines."""

from __future__ import annotations

import json
from typing import Any

import ingot
import numpy as np
import pytest
from ingot.serving.protocol import http_status, parse_request, response_of, tensor_of, timeout_of
from ingot.serving.published import Publisher, Sample


def row(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2, 3, 4], **changes}


def test_json_and_binary_tensors_are_read_and_written() -> None:
    tensor = np.arange(4, dtype=np.float32).reshape(2, 2)
    asked = json.dumps({"id": "7", "inputs": [row(data=[[0, 1], [2, 3]])]}).encode()
    header, inputs = parse_request(asked)
    np.testing.assert_array_equal(inputs["x"], tensor)
    body, length = response_of("m", header, {"y": tensor})
    assert length is None
    answer = json.loads(body)
    assert (answer["id"], answer["outputs"][0]["data"], answer["outputs"][0]["shape"]) == (
        "7",
        [0, 1, 2, 3],
        [2, 2],
    )
    head = {
        "inputs": [{**row(), "parameters": {"binary_data_size": 16}}],
        "parameters": {"binary_data_output": True},
    }
    del head["inputs"][0]["data"]
    text = json.dumps(head).encode()
    header, inputs = parse_request(text + tensor.tobytes(), len(text))
    np.testing.assert_array_equal(inputs["x"], tensor)
    body, length = response_of("m", header, {"y": tensor})
    assert body[length:] == tensor.tobytes()


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be an object"),
        (b'{"inputs": [1]}', "must be an object"),
        ({"inputs": [row(shape=[2, 3])]}, "has 4 elements"),
        ({"inputs": [row(shape=[2, -2])]}, "must be a list of sizes"),
        ({"inputs": [row(shape="2,2")]}, "must be a list of sizes"),
        ({"inputs": [row(shape=[2**62, 2**62])]}, "has 4 elements"),
        ({"inputs": [row(datatype="FLOAT")]}, "has datatype 'FLOAT'"),
        ({"inputs": [row(datatype="UINT8", data=[1, 2, 3, 256])]}, "out of its range"),
        ({"inputs": [row(datatype="INT32", data=[1, 2, 3, 4.5])]}, "is not INT32"),
        ({"inputs": [row(datatype="INT64", data=[1, 2, 3, 2**80])]}, "is not INT64"),
        ({"inputs": [row(data=["1", "2", "3", "4"])]}, "is not FP32"),
        ({"inputs": [row(data=[[1], [2, 3]])]}, "is not FP32"),
        ({"inputs": [row(data=[1.5, "2", 3.5, 4.5])]}, "is not FP32"),
        ({"inputs": [row(data=[1.5, [2], 3.5, 4.5])]}, "is not FP32"),
        ({"inputs": [row(data=[1.5, None, 3.5, 4.5])]}, "is not FP32"),
        ({"inputs": [row(data=[1.5, 2.5])]}, "has 2 elements"),
        ({"inputs": [row(), row()]}, "passed twice"),
        ({"inputs": [row(parameters={"binary_data_size": 16})]}, "bytes are left"),
    ],
)
def test_bad_requests(body: Any, what: str) -> None:
    with pytest.raises(ingot.UserError, match=what) as raised:
        parse_request(body if isinstance(body, bytes) else json.dumps(body).encode())
    assert raised.value.code == "INGOT-U370"


@pytest.mark.parametrize(
    ("datatype", "dtype"), [("FP32", np.float32), ("FP64", np.float64), ("FP16", np.float16)]
)
def test_lists_of_floats(datatype: str, dtype: type) -> None:
    values = [1.5, -0.0, float("inf"), 2, 1e-3, 3.0]
    for content in (values, [values[:3], values[3:]]):
        tensor = tensor_of("x", [2, 3], datatype, content)
        np.testing.assert_array_equal(tensor, np.array(values, dtype).reshape(2, 3))
        assert tensor.dtype == dtype


def test_sizes_of_binary_tensors() -> None:
    with pytest.raises(ingot.UserError, match="has 12 bytes, but FP32 of shape"):
        tensor_of("x", [2, 2], "FP32", bytes(12))
    with pytest.raises(ingot.UserError, match="belong to no input"):
        parse_request(b'{"inputs": []}x', 14)


@pytest.mark.parametrize("timeout", [-1, 1.5, "5", True])
def test_wrong_deadlines(timeout: Any) -> None:
    with pytest.raises(ingot.UserError, match="microseconds"):
        timeout_of({"parameters": {"timeout": timeout}})
    assert timeout_of({"parameters": {"timeout": 2_000_000}}) == 2
    assert timeout_of({}) is None


def test_statuses() -> None:
    errors = [ingot.UserError("", code="INGOT-U302"), ingot.UserError("", code="INGOT-U317")]
    errors += [ingot.DeviceError("", code="INGOT-D360"), ingot.DeviceError("", code="INGOT-D403")]
    assert [http_status(error) for error in errors] == [400, 504, 503, 500]
    assert http_status(ValueError()) == 500


def test_counters_are_passed_on_as_differences() -> None:
    """Names of engines may have any characters; each sample goes to the metric of its name."""
    seen: dict[tuple, float] = {}

    class Kept:
        def __init__(self, sample: Sample) -> None:
            self.name = sample.name
            assert sample.help

        def add(self, value: float, labels: dict[str, str]) -> None:
            key = (self.name, labels.get("engine", ""))
            seen[key] = seen.get(key, 0) + value

        def set(self, value: float, labels: dict[str, str]) -> None:
            seen[(self.name, labels.get("engine", ""))] = value

    publisher = Publisher(Kept)
    name = 'a"b\\c\nd={} e'
    label = name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    for calls, memory in ((3, 10), (3, 20), (8, 5)):
        publisher.publish(
            "# HELP calls_total Calls made.\n# TYPE calls_total counter\n"
            f'calls_total{{engine="{label}"}} {calls}\n'
            "# HELP memory Bytes.\n# TYPE memory gauge\n"
            f'memory{{engine="{label}"}} {memory}\n'
        )
    assert seen == {("calls_total", name): 8, ("memory", name): 5}
    publisher.publish(ingot.metrics())
    assert ("ingot_info", "") in seen
