# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models of a few nodes, built by hand."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Dims = list[int | str | None]


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Dims],
    outputs: list[str],
    initializers: dict[str, np.ndarray] | None = None,
    opset: int = 18,
    dtype: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, dtype, dims) for name, dims in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def mlp() -> onnx.ModelProto:
    """Two layers, with a dynamic batch."""
    nodes = [
        helper.make_node("Gemm", ["x", "first.weight", "first.bias"], ["hidden"], name="first", transB=1),
        helper.make_node("Relu", ["hidden"], ["active"], name="relu"),
        helper.make_node("MatMul", ["active", "second.weight"], ["product"], name="second"),
        helper.make_node("Add", ["product", "second.bias"], ["y"], name="bias"),
    ]
    weights = {"first.weight": random(16, 8, seed=1), "first.bias": random(16, seed=2),
               "second.weight": random(16, 4, seed=3), "second.bias": random(4, seed=4)}  # fmt: skip
    return model(nodes, {"x": ["batch", 8]}, ["y"], weights)


def mlp_result(x: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    hidden = np.maximum(x @ weights["first.weight"].T + weights["first.bias"], 0)
    return hidden @ weights["second.weight"] + weights["second.bias"]


def weights_of(made: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {each.name: numpy_helper.to_array(each) for each in made.graph.initializer}
