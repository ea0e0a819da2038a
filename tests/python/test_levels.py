# SPDX-License-Identifier: Apache-2.0
"""Each optimization level does more than the previous one; each, and each numerics setting, is correct."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from torch import nn


class Mixed(nn.Module):
    """Convolution and batch norm, attention, layer norm and linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = x + nn.functional.scaled_dot_product_attention(self.query(x), self.key(x), x)
        scores = torch.softmax(self.norm(x) @ x.transpose(1, 2) * 0.25, -1)
        return self.head(scores @ x)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    model = Mixed()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return model.eval()


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def compile_mixed(model: nn.Module, **options: Any) -> ingot.Engine:
    images = ingot.Input(min_shape=(1, 3, 12, 12), opt_shape=(2, 3, 12, 12), max_shape=(4, 3, 12, 12))
    return ingot.compile(model, inputs=[images], require_full_compilation=True, **options).engine


def assert_right(engine: ingot.Engine, model: nn.Module) -> None:
    for batch in (1, 3):
        image = torch.randn(batch, 3, 12, 12)
        assert_accurate(engine(image), model(image), golden(model, [image]))


def steps(engine: ingot.Engine) -> list[str]:
    return [step["name"] for step in engine.inspect()["main"]["steps"]]


def test_levels_differ_and_are_right(model: nn.Module) -> None:
    engines = [compile_mixed(model, optimization_level=level) for level in range(4)]
    for engine in engines:
        assert_right(engine, model)
    plain, simplified, fused, packed = map(steps, engines)
    assert not any("fused" in name for name in plain + simplified)
    assert len(plain) > len(simplified) > len(fused)
    assert any("fused" in name for name in fused)
    # Layouts: panels that the templates of contractions read, whose epilogues then are fused.
    assert not any("%" in weight["type"] for engine in engines[:3] for weight in engine.inspect()["weights"])
    assert any("%" in weight["type"] for weight in engines[3].inspect()["weights"])
    assert any(name.startswith("fused[linear") for name in packed)
    assert not any(name.startswith("fused[linear") for name in fused)


@pytest.mark.parametrize("numerics", ["strict", "default", "fast"])
def test_numerics_are_right(model: nn.Module, numerics: str) -> None:
    engine = compile_mixed(model, numerics=numerics)
    assert_right(engine, model)
    # The batch norm is folded into the convolution's weights, or stays behind it.
    assert ("fused[convolution, relu]" in steps(engine)) == (numerics != "strict")


@pytest.mark.parametrize("batch", [1, 3])
def test_convolutions_with_fewer_products(batch: int) -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(33, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 48, 3, padding=(0, 2)))
    x = torch.randn(batch, 33, 15, 17)
    program = torch.export.export(layers.eval(), (x,))
    default, strict = ingot.build(program), ingot.build(program, numerics="strict")
    assert any("winograd" in name for name in steps(default))
    assert not any("winograd" in name for name in steps(strict))
    for engine in (default, strict):
        assert_accurate(engine(x), layers(x), golden(layers, [x]))


@pytest.mark.parametrize("level", [4, 5])
def test_timed_levels_are_right_and_remember(model: nn.Module, level: int, tmp_path: Path) -> None:
    tactics = tmp_path / "tactics.txt"
    options = {"optimization_level": level, "timing_cache_path": str(tactics), "engine_cache_dir": "off"}
    assert_right(compile_mixed(model, **options), model)
    found = tactics.read_text()
    assert "fused[linear, gelu]" in found
    assert_right(compile_mixed(model, **options), model)
    assert tactics.read_text() == found


class Masked(nn.Module):
    """Whole numbers that hide all values if they are 0, as in a mask of padded tokens; the model says that some are to be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(256, 512)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, flags: torch.Tensor) -> torch.Tensor:
        torch._assert_async(mask.all(), "nothing is seen")
        torch._assert_async(flags.all(), "nothing is seen")
        return torch.softmax(self.linear(x), -1) * mask[:, None]


class OneRow(nn.Module):
    """Whole numbers of which only 0 is allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(1, 256), nn.Linear(256, 512)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x + self.table(index)), -1)


@pytest.mark.parametrize("level", [4, 5])
def test_tactics_are_timed_on_whole_numbers_that_the_model_takes(level: int) -> None:
    x = torch.randn(16, 256)
    seen, row = torch.ones(16, dtype=torch.int64), torch.zeros(16, dtype=torch.int64)
    cases = [(Masked(), (x, seen, seen.bool())), (OneRow(), (x, row))]
    for model, args in cases:
        engine = ingot.build(torch.export.export(model.eval(), args), optimization_level=level)
        assert_accurate(engine(*args), model(*args), golden(model, args))
