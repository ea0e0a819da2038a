# SPDX-License-Identifier: Apache-2.0
"""Norms between products of halves on GPUs: the product before keeps the moments of rows, those behind make the norm of them.

Without a GPU engines are built, and their steps looked at.
"""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import DEVICE, HAS_GPU, HAS_WARP_GROUPS, needs_gpu, needs_nvrtc
from torch import nn

pytestmark = needs_nvrtc


class PreNorm(nn.Module):
    """Two feed-forward blocks, each behind a norm of its own, and a norm at the end."""

    def __init__(self, width: int, inner: int, norm: type[nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.start = nn.Linear(width, width)
        self.norms = nn.ModuleList(norm(width, eps=1e-5) for _ in range(3))
        self.up = nn.ModuleList(nn.Linear(width, inner) for _ in range(2))
        self.down = nn.ModuleList(nn.Linear(inner, width, bias=k > 0) for k in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.start(x)
        for norm, up, down in zip(self.norms, self.up, self.down, strict=False):
            x = x + down(nn.functional.gelu(up(norm(x))))
        return self.norms[2](x)


class PostNorm(PreNorm):
    """The same with the norms behind the sums, so that residuals are norms too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[2](x + self.start(x))
        for norm, up, down in zip(self.norms, self.up, self.down, strict=False):
            x = norm(down(nn.functional.gelu(up(x))) + x)
        return x


def _seeded(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(7)
    for name, weight in model.named_parameters():
        far = 1.0 if "norms" in name and name.endswith("weight") else 0.0
        nn.init.normal_(weight, mean=far, std=0.3 if weight.dim() == 1 else weight.shape[1] ** -0.5)
    return model.eval().to(dtype)


def _build(model: nn.Module, x: torch.Tensor, **options: object) -> ingot.Engine:
    return ingot.build(torch.export.export(model, (x,)), device=DEVICE, **options)


def _steps(engine: ingot.Engine, operator: str) -> int:
    names = [step["name"] for step in engine.inspect()["main"]["steps"]]
    return sum(operator in name for name in names)


def _require_split(engine: ingot.Engine, **steps: int) -> None:
    """So many steps of each operator, where kernels split norms."""
    if HAS_WARP_GROUPS:
        assert {name: _steps(engine, name) for name in steps} == steps


def _error(model: nn.Module, x: torch.Tensor, result: torch.Tensor) -> float:
    return _units_from(model.double()(x.double()), result)


def _units_from(exact: torch.Tensor, result: torch.Tensor) -> float:
    """The largest difference, in units in the last place of the largest element."""
    step = torch.finfo(result.dtype).eps * exact.abs().max()
    return float(((result.cpu().double() - exact).abs().max() / step).detach())


_CASES = {
    "few_rows": (PreNorm, (2, 30, 96), 192, torch.float16, {}),
    "last_tile_is_part": (PostNorm, (1, 128, 160), 320, torch.float16, {}),
    "residuals": (PostNorm, (1, 128, 384), 1536, torch.float16, {}),
    "long_residuals": (PostNorm, (1, 128, 768), 3072, torch.float16, {}),
    "long_residuals_tuned": (PostNorm, (1, 77, 1024), 512, torch.bfloat16, {"optimization_level": 5}),
    "vision": (PreNorm, (1, 197, 768), 3072, torch.bfloat16, {}),
    "several_tiles_a_block": (PostNorm, (7, 145, 384), 1536, torch.bfloat16, {}),
    "tuned": (PostNorm, (1, 77, 384), 1536, torch.float16, {"optimization_level": 5}),
}


@pytest.mark.parametrize("case", _CASES)
def test_norms_are_parts_of_products(case: str) -> None:
    kind, shape, inner, dtype, options = _CASES[case]
    if options and not HAS_GPU:
        pytest.skip("kernels are timed on a GPU")
    model = _seeded(kind(shape[-1], inner), dtype)
    x = torch.randn(shape, dtype=torch.float32).to(dtype)
    engine = _build(model, x, **options)
    whole = _build(model, x, disable_passes=["split_norms"])
    assert (_steps(whole, "layer_norm"), _steps(whole, "row_moments")) == (3, 0)
    _require_split(
        engine, layer_norm=1, row_moments=2, row_mean=2
    )  # residuals read what products have stored
    if HAS_GPU:
        results = [run(x.cuda()) for run in (engine, whole)]
        split, together = (_error(model, x, result) for result in results)
        assert split <= 1.5 * together + 1


def test_many_rows_keep_their_norms() -> None:
    engine = _build(_seeded(PreNorm(96, 192), torch.float16), torch.randn(8, 128, 96).half())
    assert (_steps(engine, "layer_norm"), _steps(engine, "row_moments")) == (3, 0)


class Beside(PreNorm):
    """A residual that is a norm, of a product that does not wait for the one behind the norm."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.norms[0](x + self.start(x))
        return self.down[1](nn.functional.gelu(self.up[0](x))) + h, self.up[1](h)


@pytest.mark.parametrize("width", [256, 768])
def test_residuals_beside_products_make_their_own_statistics(width: int) -> None:
    model = _seeded(Beside(width, 384), torch.float16)
    x = torch.randn(1, 100, width).half()
    engine, whole = _build(model, x), _build(model, x, disable_passes=["split_norms"])
    _require_split(engine, layer_norm=0, row_mean=2)
    if HAS_GPU:
        results = [run(x.cuda()) for run in (engine, whole)]
        exact = model.double()(x.double())
        for i in range(2):
            split, together = (_units_from(exact[i], result[i]) for result in results)
            assert split <= 1.5 * together + 1


def test_a_root_mean_square_has_no_mean() -> None:
    model = _seeded(PreNorm(256, 512, nn.RMSNorm), torch.float16)
    x = torch.randn(3, 40, 256).half()
    engine = _build(model, x)
    _require_split(engine, rms_norm=1, row_mean=0)
    if HAS_GPU:
        assert _error(model, x, engine(x.cuda())) < 8


@needs_gpu
@pytest.mark.parametrize("rows", [40, 700])
@pytest.mark.parametrize("bias", ["far from zero", "equal"])
def test_means_of_many_deviations(rows: int, bias: str) -> None:
    """What a difference of large sums would lose."""
    model = _seeded(PreNorm(256, 512), torch.float16)
    with torch.no_grad():
        model.start.weight.zero_()
        model.start.bias.fill_(900.0)
        if bias == "far from zero":
            model.start.bias[:3] += 1
    x = torch.zeros(rows, 256).half()
    engine, whole = _build(model, x), _build(model, x, disable_passes=["split_norms"])
    results = [run(x.cuda()) for run in (engine, whole)]
    split, together = (_error(model, x, result) for result in results)
    assert split <= 1.5 * together + 1


@needs_gpu
def test_any_number_of_rows_and_any_address() -> None:
    model = _seeded(PostNorm(192, 384), torch.float16)
    rows = torch.export.Dim("rows", min=1, max=3000)
    program = torch.export.export(model, (torch.zeros(50, 192).half(),), dynamic_shapes=({0: rows},))
    engine = ingot.build(program, device=DEVICE)
    _require_split(engine, row_moments=2)
    for count in (1, 17, 64, 65, 300, 2999):
        memory = torch.randn(count * 192 + 1, device="cuda").half()
        for start in (0, 1):
            x = memory[start : start + count * 192].view(count, 192)
            assert _error(model.half(), x.cpu(), engine(x)) < 8, (count, start)


def test_operators_that_are_not_fused_run_by_themselves() -> None:
    model = _seeded(PostNorm(96, 192), torch.float16)
    x = torch.randn(32, 96).half()
    apart = _build(model, x, disable_passes=["fuse"])
    _require_split(apart, row_moments=2)
    if HAS_GPU:
        assert _error(model, x, apart(x.cuda())) < 8
