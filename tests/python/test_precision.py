# SPDX-License-Identifier: Apache-2.0
"""enabled_precisions: products of f32 in narrower dtypes, and what the report says of them."""

from __future__ import annotations

from pathlib import Path

import ingot
import pytest
import torch
from torch import nn

PAIRS = "x86-64-v4+bf16"  # multiplies pairs of bf16 faster than f32


class Block(nn.Module):
    """A transformer's layer, norms first."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.second_norm(x))))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 16, 3, groups=2)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.head(x.mean(dim=(2, 3)))


MODELS = {
    "decode": (Block, (1, 1, 64)),
    "few rows": (Block, (2, 7, 64)),
    "many rows": (Block, (2, 40, 64)),
    "images": (Net, (2, 4, 9, 9)),
}


def errors(model: nn.Module, x: torch.Tensor, dtype: torch.dtype, **options: object) -> tuple[float, float]:
    """The largest errors to f64 of an engine with the dtype enabled, and of eager under autocast."""
    compiled = ingot.compile(
        model, inputs=[x], require_full_compilation=True, enabled_precisions={dtype}, **options
    )
    with torch.no_grad():
        exact = model.double()(x.double())
        model.float()
        with torch.autocast("cpu", dtype=dtype):
            eager = model(x).float()
    return float((compiled(x) - exact).abs().max()), float((eager - exact).abs().max())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_errors_are_those_of_autocast(name: str, dtype: torch.dtype) -> None:
    make, shape = MODELS[name]
    torch.manual_seed(3)
    model, x = make().eval(), torch.randn(*shape)
    ours, eagers = errors(model, x, dtype)
    assert ours <= 2 * eagers + 1e-5


@pytest.mark.parametrize("name", MODELS)
def test_errors_of_pairs_are_those_of_autocast(name: str) -> None:
    if "avx512_bf16" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor does not multiply bf16")
    make, shape = MODELS[name]
    torch.manual_seed(3)
    model, x = make().eval(), torch.randn(*shape)
    ours, eagers = errors(model, x, torch.bfloat16, cpu=PAIRS)
    assert 1e-5 < ours <= 2 * eagers  # it did round


def test_report_says_what_each_product_is_computed_in() -> None:
    model, x = Block().eval(), torch.randn(1, 1, 64)
    compiled = ingot.compile(
        model, inputs=[x], enabled_precisions=[torch.float32, torch.float16], keep_precision="linear_1"
    )
    report = ingot.report(compiled)
    nodes = {node.name: node.precision for node in report.segments[0].nodes if node.precision}
    assert nodes["linear"] == nodes["linear_2"] == "f32 with weights of f16"
    assert nodes["linear_1"] == "f32: keep_precision names it"
    assert report.precisions["f32 with weights of f16"] == 3
    assert "precision: 3 in f32 with weights of f16" in str(report)


def test_nothing_changes_unless_it_is_enabled() -> None:
    model, x = Block().eval(), torch.randn(1, 1, 64)
    plain = ingot.compile(model, inputs=[x])
    for enabled in ({torch.float32}, [], "f32"):
        other = ingot.compile(model, inputs=[x], enabled_precisions=enabled)
        assert torch.equal(plain(x), other(x))
        assert not ingot.report(other).precisions


def test_half_precision_weights_take_half_the_memory() -> None:
    model, x = nn.Linear(1024, 1024).eval(), torch.randn(1, 1024)
    program = torch.export.export(model, (x,))
    sizes = {
        dtype: len(ingot.build(program, enabled_precisions={dtype}).to_bytes())
        for dtype in (torch.float32, torch.float16)
    }
    assert sizes[torch.float16] < 0.55 * sizes[torch.float32]


def test_torch_compile_takes_the_option() -> None:
    model, x = Block().eval(), torch.randn(1, 1, 64)
    compiled = torch.compile(model, backend="ingot", options={"enabled_precisions": {torch.bfloat16}})
    with torch.no_grad():
        exact = model(x)
        assert 0 < (compiled(x) - exact).abs().max() < 0.1
    precisions = ingot.report(compiled).precisions  # by processor: of weights alone, or of all operands
    assert precisions.get("f32 with weights of bf16", 0) + precisions.get("bf16", 0) == 4


@pytest.mark.parametrize("value", [{torch.float64}, {torch.int8}, "f8", {3}])
def test_other_dtypes_are_refused(value: object) -> None:
    with pytest.raises(ingot.UserError, match="enabled_precisions"):
        ingot.compile(nn.Linear(2, 2), inputs=[torch.randn(1, 2)], enabled_precisions=value)


class IntegerProduct(nn.Module):
    """What quantization libraries make of a linear layer: integers, then scales."""

    def __init__(self, width: int, columns: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.low = dtype, 0 if dtype is torch.uint8 else -128
        weight = torch.randint(-128, 128, (columns, width), dtype=torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", torch.rand(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.clamp(torch.round(x * 20), self.low, self.low + 255).to(self.dtype)
        return torch._int_mm(rows, self.weight.t()).float() * self.scale


@pytest.mark.parametrize("width", [64, 72, 30], ids=str)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
def test_products_of_integers_are_exact(dtype: torch.dtype, width: int) -> None:
    torch.manual_seed(5)
    model, x = IntegerProduct(width, 40, dtype).eval(), 6 * torch.randn(33, width)
    compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    rows = torch.clamp(torch.round(x * 20), model.low, model.low + 255).to(torch.float64)
    exact = (rows @ model.weight.double().t()).float() * model.scale
    assert torch.equal(compiled(x), exact)


@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_weights_that_are_widened_stay_narrow(dtype: torch.dtype, rows: int) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            values = torch.randint(-128, 128, (1024, 512)) if dtype is torch.int8 else torch.randn(1024, 512)
            self.register_buffer("weight", values.to(dtype))
            self.register_buffer("scale", torch.rand(1024) / 100)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.mm(x, self.weight.t().to(x.dtype)) * self.scale

    torch.manual_seed(6)
    model, x = Layer().eval(), torch.randn(rows, 512)
    engine = ingot.build(torch.export.export(model, (x,)))
    stored = 1024 * 512 * torch.empty(0, dtype=dtype).element_size()
    assert len(engine.to_bytes()) < stored + 300_000
    torch.testing.assert_close(engine(x), model(x), rtol=1e-4, atol=1e-4)
    other = {"weight": model.weight.flip(0), "scale": model.scale}
    engine.refit(other)
    torch.testing.assert_close(
        engine(x), torch.func.functional_call(model, other, (x,)), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("config", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"])
@pytest.mark.parametrize("rows", [1, 20])
def test_models_that_torchao_quantized(config: str, rows: int) -> None:
    from torchao import quantization

    torch.manual_seed(7)
    model, x = Block().eval(), torch.randn(1, rows, 64)
    quantization.quantize_(model, getattr(quantization, config)())
    with torch.no_grad():
        expected = model(x)
    for compiled in (ingot.compile(model, inputs=[x]), torch.compile(model, backend="ingot")):
        with torch.no_grad():
            result = compiled(x)
        report = ingot.report(compiled)
        assert not report.fallbacks, report
        # A sum in another order may round an activation to the neighbouring integer.
        assert (result - expected).abs().max() <= 0.02 * expected.abs().max()
