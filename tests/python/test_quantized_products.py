# SPDX-License-Identifier: Apache-2.0
"""Products of two quantized values, as in attention: exact sums of integers, on all processors, for sizes in fours and others."""

from __future__ import annotations

from typing import Any

import ingot
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # defines the operators
from onnx import TensorProto, helper
from torch import nn

OPS = torch.ops.quantized_decomposed


def rounded(x: torch.Tensor, scale: float, zero: int, dtype: torch.dtype) -> torch.Tensor:
    limits = torch.iinfo(dtype)
    how = (scale, zero, limits.min, limits.max, dtype)
    return OPS.dequantize_per_tensor.default(OPS.quantize_per_tensor.default(x, *how), *how)


class Attention(nn.Module):
    """Both products have quantized operands; `dtype` is that of queries, keys and values."""

    def __init__(self, dtype: torch.dtype, zero: int) -> None:
        super().__init__()
        self.dtype, self.zero = dtype, zero

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        query, key, value = (rounded(each, 0.02, self.zero, self.dtype) for each in (query, key, value))
        powers = torch.softmax(query @ key.transpose(-1, -2) * 0.2, -1)
        return rounded(powers, 1 / 255, 0, torch.uint8) @ value


def heads(length: int, seed: int) -> torch.Tensor:
    return torch.randn(2, 3, length, 16, generator=torch.Generator().manual_seed(seed))


def inputs(length: int) -> list[torch.Tensor]:
    return [heads(length, seed) for seed in range(3)]


def agree(found: torch.Tensor, expected: torch.Tensor) -> None:
    """One exponential may be rounded to the next integer: 1/255 of a value."""
    assert (found - expected).abs().max() < 2.6 * 1.5 / 255
    assert (found - expected).abs().mean() < 2e-4


@pytest.mark.parametrize(
    ("dtype", "zero"), [(torch.uint8, 120), (torch.uint8, 128), (torch.int8, 0), (torch.int8, 5)]
)
@pytest.mark.parametrize("length", [20, 33])
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
def test_attention_multiplies_integers(dtype: torch.dtype, zero: int, length: int, cpu: str) -> None:
    model, given = Attention(dtype, zero), inputs(length)
    compiled = ingot.compile(model, inputs=given, cpu=cpu, require_full_compilation=True)
    agree(compiled(*given), model(*given))
    assert str(ingot.profile(compiled, *given)).count("integer_matmul") == 2
    assert ingot.report(compiled).precisions == {"u8 with weights of i8": 2}


def test_lengths_may_vary() -> None:
    model = Attention(torch.uint8, 120)
    shape = ingot.Input(min_shape=(2, 3, 1, 16), opt_shape=(2, 3, 32, 16), max_shape=(2, 3, 64, 16))
    length = torch.export.Dim("length", min=2, max=64)
    program = torch.export.export(model, tuple(inputs(8)), dynamic_shapes=({2: length},) * 3)
    compiled = ingot.compile(program, inputs=[shape] * 3, require_full_compilation=True)
    for size in (2, 7, 32, 63):
        given = inputs(size)
        agree(compiled(*given), model(*given))
    assert str(ingot.profile(compiled, *inputs(32))).count("integer_matmul") == 2


def test_strict_numerics_multiply_floats() -> None:
    model, given = Attention(torch.uint8, 120), inputs(20)
    compiled = ingot.compile(model, inputs=given, numerics="strict", require_full_compilation=True)
    agree(compiled(*given), model(*given))
    assert "integer_matmul" not in str(ingot.profile(compiled, *given))


def test_sums_are_exact() -> None:
    """The largest numbers, for a depth whose sums f32 would round."""

    class Product(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return rounded(a, 1.0, 3, torch.uint8) @ rounded(b, 1.0, 250, torch.uint8)

    generator = torch.Generator().manual_seed(1)
    a = torch.randint(230, 253, (5, 1024), generator=generator).float()
    b = torch.randint(-250, 6, (1024, 7), generator=generator).float()
    compiled = ingot.compile(Product(), inputs=[a, b], require_full_compilation=True)
    exact = (a.double() @ b.double()).float()
    assert torch.equal(compiled(a, b), exact)


def onnx_attention() -> Any:
    """As tools for ONNX write it: QuantizeLinear and DequantizeLinear around each MatMul."""
    nodes, constants = [], []

    def constant(name: str, dtype: int, value: float) -> str:
        constants.append(helper.make_tensor(name, dtype, [], [value]))
        return name

    def quantized(name: str, scale: float, zero: int) -> str:
        how = [
            constant(f"{name}_scale", TensorProto.FLOAT, scale),
            constant(f"{name}_zero", TensorProto.UINT8, zero),
        ]
        nodes.append(helper.make_node("QuantizeLinear", [name, *how], [f"{name}_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *how], [f"{name}_d"]))
        return f"{name}_d"

    query, key, value = (quantized(name, 0.02, 120) for name in ("query", "key", "value"))
    nodes.append(helper.make_node("Transpose", [key], ["turned"], perm=[0, 1, 3, 2]))
    nodes.append(helper.make_node("MatMul", [query, "turned"], ["products"]))
    nodes.append(
        helper.make_node("Mul", ["products", constant("factor", TensorProto.FLOAT, 0.2)], ["scores"])
    )
    nodes.append(helper.make_node("Softmax", ["scores"], ["powers"], axis=-1))
    nodes.append(helper.make_node("MatMul", [quantized("powers", 1 / 255, 0), value], ["result"]))
    ports = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3, 20, 16])
        for name in ("query", "key", "value", "result")
    }
    graph = helper.make_graph(
        nodes, "attention", [ports[name] for name in ("query", "key", "value")], [ports["result"]], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_onnx_models() -> None:
    engine, given = ingot.onnx.compile(onnx_attention()), inputs(20)
    agree(engine(*given), Attention(torch.uint8, 120)(*given))
    assert str(ingot.profile(engine, *given)).count("integer_matmul") == 2
