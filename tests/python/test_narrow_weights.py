# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 and 8 bits with scales: products are right by the accuracy rule, and engines hold no wider copies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from accuracy import assert_accurate
from narrow_layers import COLUMNS, DEPTH, FORMATS, dequantized, exact, layer
from torch import nn
from torchao.utils import unwrap_tensor_subclass

ROWS = (1, 2, 16, 17, 64)
LAYERS = [(torch.float32, False), (torch.float32, True), (torch.bfloat16, True), (torch.float16, True)]
# Each format once, and each kind of layer with two of them; the long mode takes all pairs.
IS_LONG = os.environ.get("INGOT_LONG") == "1"
CASES = [
    (name, *kind) for i, name in enumerate(FORMATS) for j, kind in enumerate(LAYERS) if IS_LONG or i % 4 == j
]
STORED = [
    (name, rows) for i, name in enumerate(FORMATS) for rows in (1, 40) if IS_LONG or (i % 2) == (rows > 1)
]
WHOLE = ["int4_g32", "int4_g128_zeros", "e4m3"] if IS_LONG else ["int4_g128_zeros", "e4m3"]


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def inputs(rows: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(rows, DEPTH, generator=torch.Generator().manual_seed(rows)).to(dtype)


def compiled(model: nn.Module, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    x = ingot.Input(min_shape=(1, DEPTH), opt_shape=(1, DEPTH), max_shape=(64, DEPTH), dtype=dtype)
    return ingot.compile(model, inputs=[x], require_full_compilation=True, **options)


def exported(model: nn.Module, rows: int = 2) -> Any:
    return torch.export.export(unwrap_tensor_subclass(model), (inputs(rows),))


@pytest.mark.parametrize(("name", "dtype", "bias"), CASES, ids=str)
def test_products_of_all_numbers_of_rows(name: str, dtype: torch.dtype, bias: bool) -> None:
    model = layer(FORMATS[name], dtype, bias=bias)
    module = compiled(model, dtype)
    for rows in ROWS:
        x = inputs(rows, dtype)
        assert_accurate(module(x), model(x), exact(FORMATS[name], model, x))


@pytest.mark.parametrize(("name", "rows"), STORED)
def test_weights_stay_as_narrow_as_they_are(name: str, rows: int) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(512, 960, bias=False)).eval()
    FORMATS[name].quantize(model)
    engine = ingot.build(torch.export.export(unwrap_tensor_subclass(model), (torch.randn(rows, 512),)))
    stored = 512 * 960 * FORMATS[name].bits / 8
    assert len(engine.to_bytes()) < stored + 150_000  # code, and what else is in a file


@pytest.mark.parametrize("name", WHOLE)
def test_files_refits_and_stripped_engines(name: str, tmp_path: Path) -> None:
    old, new = (layer(FORMATS[name], torch.float32, bias=True, seed=seed) for seed in (1, 2))
    x, path = inputs(3), tmp_path / "engine.ingot"
    program = exported(old)
    engine, fresh = ingot.build(program), ingot.build(exported(new))
    path.write_bytes(engine.to_bytes())
    loaded = ingot.Engine.load(path)
    assert torch.equal(loaded(inputs(2)), engine(inputs(2)))
    other = exported(new).state_dict
    loaded.refit(other)
    assert torch.equal(loaded(inputs(2)), fresh(inputs(2)))
    assert_accurate(loaded(inputs(2)), new(inputs(2)), exact(FORMATS[name], new, inputs(2)))
    stripped = tmp_path / "stripped.ingot"
    module = compiled(old, strip_engine_weights=True)
    ingot.save(module, stripped, output_format="engine")
    assert stripped.stat().st_size < path.stat().st_size
    whole = ingot.Engine.load(stripped, weights=program.state_dict)
    assert_accurate(whole(x), old(x), exact(FORMATS[name], old, x))


def test_the_cache_knows_the_program_without_its_weights(tmp_path: Path) -> None:
    programs = [exported(layer(FORMATS["int4_g32"], torch.float32, bias=True, seed=seed)) for seed in (1, 2)]
    first, second = (ingot.build(each, engine_cache_dir=str(tmp_path)) for each in programs)
    assert not torch.equal(first(inputs(2)), second(inputs(2)))
    assert torch.equal(second(inputs(2)), ingot.build(programs[1])(inputs(2)))


def test_nan_and_infinite_elements_of_fp8() -> None:
    class Layer(nn.Module):
        def __init__(self, dtype: torch.dtype) -> None:
            super().__init__()
            codes = torch.arange(256).to(torch.uint8).view(dtype).repeat(16, 1)
            self.register_buffer("weight", torch.stack([codes[i].roll(i) for i in range(16)]))
            self.register_buffer("scale", torch.ones(16, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.linear(x, self.weight.float() * self.scale)

    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        model = Layer(dtype).eval()
        for rows in (1, 9):
            x = torch.eye(256)[40 : 40 + rows]
            x[:, 120:] = 0
            module = ingot.compile(model, inputs=[x], require_full_compilation=True)
            assert torch.equal(module(x).isnan(), model(x).isnan())
        finite = model.weight.float().isfinite().all(0)
        x = torch.where(finite, torch.eye(256), 0.0)
        model.weight = torch.where(finite, model.weight.float(), 0.0).to(dtype)
        module = ingot.compile(model, inputs=[x], require_full_compilation=True)
        assert torch.equal(module(x), model(x)), "each finite code is converted exactly, subnormal ones too"


@pytest.mark.parametrize("group", [32, 64, 256])
def test_groups_of_pt2e(group: int) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randint(-8, 8, (COLUMNS, DEPTH), dtype=torch.int8))
            self.register_buffer("scales", torch.rand(COLUMNS, DEPTH // group))
            self.register_buffer("zeros", torch.randint(-3, 4, (COLUMNS, DEPTH // group), dtype=torch.int32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = torch.ops.quantized_decomposed.dequantize_per_channel_group(
                self.weight, self.scales, self.zeros, -8, 7, torch.int8, group, torch.float32
            )
            return nn.functional.linear(x, weight)

    torch.manual_seed(group)
    model = Layer().eval()
    weight = dequantized(model.weight, model.scales, model.zeros)
    module = compiled(model)
    assert "scaled_linear" in str(ingot.profile(module, inputs(1)))
    for rows in (1, 17):
        x = inputs(rows)
        assert_accurate(module(x), model(x), x.double() @ weight.t())


def test_strict_numerics_dequantize_first() -> None:
    model = layer(FORMATS["int4_g32"], torch.float32, bias=True)
    module = compiled(model, numerics="strict")
    assert "scaled_linear" not in str(ingot.profile(module, inputs(1)))
    assert_accurate(module(inputs(3)), model(inputs(3)), exact(FORMATS["int4_g32"], model, inputs(3)))
