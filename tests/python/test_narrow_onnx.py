# SPDX-License-Identifier: Apache-2.0
"""ONNX models with elements of 4 bits and float8: weights in blocks, whole rows and tensors, and activations."""

from __future__ import annotations

import os
from typing import Any

import ingot
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

DEPTH, COLUMNS = 64, 24
LIMITS = {TensorProto.INT4: (-8, 7), TensorProto.UINT4: (0, 15)}
FLOAT8 = {TensorProto.FLOAT8E4M3FN: torch.float8_e4m3fn, TensorProto.FLOAT8E5M2: torch.float8_e5m2}


def model(nodes: list[Any], initializers: list[Any], columns: int = COLUMNS) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "narrow",
        [value("x", TensorProto.FLOAT, ["n", DEPTH])],
        [value("y", TensorProto.FLOAT, ["n", columns])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def floats(name: str, array: np.ndarray) -> Any:
    return onnx.numpy_helper.from_array(array.astype(np.float32), name)


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, DEPTH)).astype(np.float32)


# Each value of each parameter twice; the long mode takes all of them together.
BLOCKS = [
    (dtype, transposed, raw)
    for dtype in LIMITS
    for transposed in (False, True)
    for raw in (False, True)
    if os.environ.get("INGOT_LONG") == "1" or raw == (transposed == (dtype == TensorProto.INT4))
]


@pytest.mark.parametrize(("dtype", "transposed", "raw"), BLOCKS)
def test_weights_of_four_bits_in_blocks(dtype: int, transposed: bool, raw: bool) -> None:
    random, block = np.random.default_rng(dtype), 32
    low, high = LIMITS[dtype]
    numbers = random.integers(low, high + 1, (DEPTH, COLUMNS))
    zeros = random.integers(low, high + 1, (DEPTH // block, COLUMNS))
    scales = random.random((DEPTH // block, COLUMNS)) + 0.1
    weight = (numbers - zeros.repeat(block, 0)) * scales.repeat(block, 0)
    if transposed:
        numbers, zeros, scales = numbers.T, zeros.T, scales.T
    tensors = [four_bits("w", dtype, numbers, raw), four_bits("z", dtype, zeros, raw), floats("s", scales)]
    dequantize = helper.make_node(
        "DequantizeLinear", ["w", "s", "z"], ["d"], axis=int(transposed), block_size=block
    )
    product = helper.make_node("Gemm", ["x", "d"], ["y"], transB=int(transposed))
    engine = ingot.onnx.compile(model([dequantize, product], tensors))
    for count in (1, 9):
        x = rows(count)
        np.testing.assert_allclose(np.asarray(engine(x)), x @ weight, rtol=1e-4, atol=1e-3)
    assert "scaled_linear" in str(ingot.profile(engine, rows(1)))


def four_bits(name: str, dtype: int, array: np.ndarray, raw: bool) -> Any:
    tensor = helper.make_tensor(name, dtype, array.shape, array.reshape(-1).tolist())
    if raw:
        tensor.raw_data = bytes(tensor.int32_data)
        del tensor.int32_data[:]
    return tensor


def test_odd_rows_of_four_bits() -> None:
    numbers = np.arange(DEPTH * 3).reshape(DEPTH, 3) % 16 - 8
    tensors = [four_bits("w", TensorProto.INT4, numbers, True), floats("s", np.array(0.5))]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    engine, x = ingot.onnx.compile(model(nodes, tensors, 3)), rows(4)
    np.testing.assert_allclose(np.asarray(engine(x)), x @ (numbers * 0.5), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", LIMITS)
def test_activations_of_four_bits(dtype: int) -> None:
    low, high = LIMITS[dtype]
    tensors = [floats("s", np.array(0.25)), four_bits("z", dtype, np.array(1), True)]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    engine, x = ingot.onnx.compile(model(nodes, tensors, DEPTH)), rows(5)
    wanted = (np.clip(np.rint(x / np.float32(0.25)) + 1, low, high) - 1) * 0.25
    np.testing.assert_array_equal(np.asarray(engine(x)), wanted.astype(np.float32))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8(dtype: int) -> None:
    """Weights with a scale per column, and activations that are rounded to float8."""
    random = np.random.default_rng(dtype)
    weight = helper.make_tensor("w", dtype, (DEPTH, COLUMNS), random.standard_normal(DEPTH * COLUMNS))
    codes = torch.from_numpy(onnx.numpy_helper.to_array(weight).astype(np.uint8))
    numbers = codes.view(FLOAT8[dtype]).float().numpy()
    scales = random.random(COLUMNS) + 0.1
    tensors = [
        weight,
        floats("s", scales),
        floats("xs", np.array(0.5)),
        helper.make_tensor("xz", dtype, (), [0.0]),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["dw"], axis=1),
        helper.make_node("MatMul", ["dx", "dw"], ["y"]),
    ]
    engine, x = ingot.onnx.compile(model(nodes, tensors)), rows(6)
    rounded = (torch.from_numpy(x) / 0.5).to(FLOAT8[dtype]).float().numpy()
    wanted = (rounded * 0.5) @ (numbers * scales)
    np.testing.assert_allclose(np.asarray(engine(x)), wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("scale_shape", [(), (1,)], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (DEPTH,)], ids=str)
def test_dequantized_tensors_of_few_dims_need_no_axis(
    shape: tuple[int, ...], scale_shape: tuple[int, ...]
) -> None:
    """As the biases of quantized models are: i32, with one scale."""
    bias = np.asarray(np.random.default_rng(len(shape)).integers(-1000, 1000, shape), np.int32)
    tensors = [onnx.numpy_helper.from_array(bias, "b"), floats("s", np.full(scale_shape, 0.25))]
    nodes = [
        helper.make_node("DequantizeLinear", ["b", "s"], ["d"]),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    engine, x = ingot.onnx.compile(model(nodes, tensors, DEPTH)), rows(3)
    np.testing.assert_allclose(np.asarray(engine(x)), x + bias * np.float32(0.25), rtol=1e-6)


def test_blocks_beyond_all_numbers_are_refused() -> None:
    tensors = [
        four_bits("w", TensorProto.INT4, np.zeros((DEPTH, COLUMNS), int), True),
        floats("s", np.ones((4, COLUMNS))),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=2**62 + 16),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    with pytest.raises(ingot.UserError):  # 4 blocks of it are 64 modulo 2**64, the depth
        ingot.onnx.compile(model(nodes, tensors))


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("operator", ["Cast", "CastLike", "QuantizeLinear"])
def test_conversions_to_float8_saturate(operator: str, dtype: int) -> None:
    largest = torch.finfo(FLOAT8[dtype]).max
    tensors = [floats("s", np.array(1.0)), helper.make_tensor("like", dtype, (), [0.0])]
    narrow = {
        "Cast": helper.make_node("Cast", ["x"], ["q"], to=dtype),
        "CastLike": helper.make_node("CastLike", ["x", "like"], ["q"]),
        "QuantizeLinear": helper.make_node("QuantizeLinear", ["x", "s", "like"], ["q"]),
    }
    nodes = [narrow[operator], helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)]
    engine, x = ingot.onnx.compile(model(nodes, tensors, DEPTH)), rows(1)
    x[0, :7] = [largest, largest * 1.3, -largest * 1.3, 1e30, -1e30, np.inf, -np.inf]
    x[0, 7] = np.nan
    wanted = torch.from_numpy(x).clamp(-largest, largest).to(FLOAT8[dtype]).float().numpy()
    np.testing.assert_array_equal(np.asarray(engine(x)), wanted)


@pytest.mark.parametrize("operator", ["Cast", "CastLike", "QuantizeLinear"])
def test_conversions_that_do_not_saturate_are_refused(operator: str) -> None:
    dtype = TensorProto.FLOAT8E5M2
    tensors = [floats("s", np.array(1.0)), helper.make_tensor("like", dtype, (), [0.0])]
    inputs = {"Cast": ["x"], "CastLike": ["x", "like"], "QuantizeLinear": ["x", "s", "like"]}[operator]
    attributes = {"to": dtype} if operator == "Cast" else {}
    nodes = [
        helper.make_node(operator, inputs, ["q"], saturate=0, **attributes),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    ]
    with pytest.raises(ingot.UnsupportedError, match="do not saturate"):
        ingot.onnx.compile(model(nodes, tensors, DEPTH))


@pytest.mark.parametrize("is_renamed", [False, True])
def test_zero_points_of_four_bits_are_what_the_model_says(is_renamed: bool) -> None:
    tensors = [floats("s", np.array(0.1)), four_bits("z", TensorProto.INT4, np.array(1), False)]
    zero = "i" if is_renamed else "z"
    nodes = [
        *([helper.make_node("Identity", ["z"], ["i"])] if is_renamed else []),
        helper.make_node("QuantizeLinear", ["x", "s", zero], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", zero], ["y"]),
    ]
    engine, x = ingot.onnx.compile(model(nodes, tensors, DEPTH)), rows(2)
    wanted = (np.clip(np.rint(x / np.float32(0.1)) + 1, -8, 7) - 1) * np.float32(0.1)
    np.testing.assert_allclose(np.asarray(engine(x)), wanted, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.uint8, 0, 15), (np.int8, -8, 7)])
def test_zero_points_of_bytes_that_the_model_clips_stay_bytes(dtype: Any, low: int, high: int) -> None:
    limits = [onnx.numpy_helper.from_array(np.array(v, dtype), n) for n, v in (("l", low), ("h", high))]
    tensors = [floats("s", np.array(0.1)), onnx.numpy_helper.from_array(np.array(3, dtype), "b"), *limits]
    nodes = [
        helper.make_node("Clip", ["b", "l", "h"], ["z"]),
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    engine, x = ingot.onnx.compile(model(nodes, tensors, DEPTH)), rows(2) * 4
    ends = np.iinfo(dtype)
    wanted = (np.clip(np.rint(x / np.float32(0.1)) + 3, ends.min, ends.max) - 3) * np.float32(0.1)
    np.testing.assert_allclose(np.asarray(engine(x)), wanted, rtol=1e-6)


def test_damaged_and_unsupported_elements() -> None:
    short = four_bits("w", TensorProto.INT4, np.zeros((DEPTH, 3), int), True)
    short.raw_data = short.raw_data[:-1]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    with pytest.raises(ingot.UserError, match="its shape needs 96 bytes, not 95"):
        ingot.onnx.compile(model(nodes, [short, floats("s", np.array(0.5))], 3))
    back = helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)
    like = four_bits("like", TensorProto.INT4, np.array(0), False)
    cast = helper.make_node("Cast", ["x"], ["c"], to=TensorProto.INT4)
    cast_like = helper.make_node("CastLike", ["x", "like"], ["c"])
    for node, tensors in ((cast, []), (cast_like, [like])):
        with pytest.raises(ingot.UnsupportedError, match="casts to elements of four bits"):
            ingot.onnx.compile(model([node, back], tensors, DEPTH))
