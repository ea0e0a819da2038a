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
    assert ingot.report(compiled).precisions["f32 with weights of bf16"] == 4


@pytest.mark.parametrize("value", [{torch.float64}, {torch.int8}, "f8", {3}])
def test_other_dtypes_are_refused(value: object) -> None:
    with pytest.raises(ingot.UserError, match="enabled_precisions"):
        ingot.compile(nn.Linear(2, 2), inputs=[torch.randn(1, 2)], enabled_precisions=value)
