# SPDX-License-Identifier: Apache-2.0
"""Nodes that engines would run slower than torch run in torch if that pays, and are reported otherwise. Remedies are exact."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from torch import nn
from torch.nn import functional


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Dilated(nn.Module):
    """A transposed convolution that has no remedy (strides and dilation), between layers that are fast."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.before = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(channels, channels, 3, 2, dilation=2)
        self.after = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.up(self.before(x).relu()).relu())


def dilated(channels: int, size: int) -> tuple[nn.Module, torch.Tensor]:
    return Dilated(channels).eval(), torch.randn(1, channels, size, size)


def assert_right(compiled: nn.Module, model: nn.Module, *args: torch.Tensor) -> None:
    assert_accurate(compiled(*args), model(*args), golden(model, list(args)))


def compile_jit(model: nn.Module, x: torch.Tensor) -> nn.Module:
    compiled = ingot.compile(model, ir="torch_compile")
    compiled(x)
    return compiled


def test_a_large_slow_node_goes_to_torch_and_is_named() -> None:
    model, x = dilated(48, 28)
    for compiled in (ingot.compile(model, inputs=[x]), compile_jit(model, x)):
        report = ingot.report(compiled)
        assert [segment.backend for segment in report.segments] == ["cpu", "torch", "cpu"]
        assert [node.op.split(".")[1] for node in report.fallbacks] in (["convolution"], ["conv_transpose2d"])
        assert "slow in an engine" in report.fallbacks[0].reason
        assert "test_slow_paths.py" in report.fallbacks[0].source
        assert not report.slow
        assert_right(compiled, model, x)


def test_a_small_slow_node_stays_and_is_named() -> None:
    model, x = dilated(2, 3)
    compiled = ingot.compile(model, inputs=[x])
    assert len(compiled.report.segments) == 1
    assert [node.name for node in compiled.report.slow] == [
        node.name for node in compiled.report.slow if node.slow
    ]
    assert len(compiled.report.slow) == 1
    assert "1 of them slow" in str(compiled.report)
    assert "slow in an engine" in str(compiled.report)
    assert_right(compiled, model, x)


def test_engines_that_must_take_slow_nodes_say_so(caplog: pytest.LogCaptureFixture) -> None:
    model, x = dilated(48, 28)
    with caplog.at_level(logging.WARNING, "ingot"):
        compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    assert "slow in an engine" in caplog.text
    assert len(compiled.report.segments) == 1
    assert len(compiled.report.slow) == 1
    assert_right(compiled, model, x)


def test_several_slow_nodes_and_dynamic_sizes() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Dilated(32), Dilated(32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x) * 0.5)

    model = Twice().eval()
    batch = ingot.Input(min_shape=(1, 32, 9, 9), opt_shape=(2, 32, 9, 9), max_shape=(4, 32, 9, 9))
    compiled = ingot.compile(model, inputs=[batch])
    assert [segment.backend for segment in compiled.report.segments] == [
        "cpu",
        "torch",
        "cpu",
        "torch",
        "cpu",
    ]
    for count in (1, 3):
        assert_right(compiled, model, torch.randn(count, 32, 9, 9))


def test_a_model_of_slow_nodes_alone_runs_in_torch() -> None:
    model = nn.ConvTranspose2d(48, 48, 3, 2, dilation=2).eval()
    x = torch.randn(1, 48, 28, 28)
    compiled = ingot.compile(model, inputs=[x])
    assert [segment.backend for segment in compiled.report.segments] == ["torch"]
    assert torch.equal(compiled(x), model(x))


def test_measured_speed_is_reported() -> None:
    model, x = dilated(48, 28)
    for options in ({}, {"require_full_compilation": True}):
        report = ingot.compile(model, inputs=[x], check_speed=True, **options).report
        engines = [segment for segment in report.segments if segment.backend == "cpu"]
        assert all(segment.torch_ms > 0 and segment.engine_ms > 0 for segment in engines)
        assert "of torch's speed" in str(report)
    assert "of torch's speed" not in str(ingot.compile(model, inputs=[x]).report)
    with pytest.raises(ingot.UserError, match="check_speed"):
        ingot.compile(model, inputs=[x], check_speed="yes")


TRANSPOSED = [
    (nn.ConvTranspose2d, {"kernel_size": 3, "padding": 1}, (2, 12, 5, 6)),
    (
        nn.ConvTranspose2d,
        {"kernel_size": (2, 5), "padding": (0, 3), "dilation": (3, 2), "groups": 3},
        (2, 12, 5, 9),
    ),
    (nn.ConvTranspose1d, {"kernel_size": 4, "bias": False}, (1, 12, 7)),
    (nn.ConvTranspose2d, {"kernel_size": 4, "stride": 2, "padding": 1}, (2, 12, 5, 6)),
    (
        nn.ConvTranspose2d,
        {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "groups": 3},
        (2, 12, 5, 6),
    ),
    (nn.ConvTranspose2d, {"kernel_size": (1, 2), "stride": (3, 2), "output_padding": (2, 1)}, (1, 12, 5, 6)),
    (nn.ConvTranspose1d, {"kernel_size": 16, "stride": 8, "padding": 4}, (1, 12, 7)),
    (nn.ConvTranspose3d, {"kernel_size": (2, 3, 2), "stride": (2, 1, 3), "bias": False}, (1, 12, 3, 4, 2)),
]


@pytest.mark.parametrize(("layer", "options", "shape"), TRANSPOSED)
def test_transposed_convolutions(layer: type[nn.Module], options: dict, shape: tuple[int, ...]) -> None:
    model, x = layer(12, 18, **options).eval(), torch.randn(shape)
    x[(0,) * len(shape)] = torch.inf  # reaches what its window reaches, and nothing else
    compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    assert not compiled.report.slow
    assert_right(compiled, model, x)


class Samples(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return functional.grid_sample(x.relu(), grid, align_corners=False).relu()


def sample_arguments(channels: int) -> list[torch.Tensor]:
    return [torch.randn(2, channels, 112, 112), torch.rand(2, 224, 224, 2) * 2 - 1]


def test_samples_that_torch_takes_faster() -> None:
    args = sample_arguments(15)
    compiled = ingot.compile(Samples(), inputs=args)
    assert [segment.backend for segment in compiled.report.segments] == ["cpu", "torch", "cpu"]
    assert "gathered by itself" in compiled.report.fallbacks[0].reason
    torch.testing.assert_close(compiled(*args), Samples()(*args))
    whole = ingot.compile(Samples(), inputs=args, require_full_compilation=True)
    assert len(whole.report.slow) == 1
    assert not ingot.compile(Samples(), inputs=sample_arguments(16)).report.fallbacks


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_composites_that_torch_computes_without_vectors(dtype: torch.dtype) -> None:
    class LogNormal(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.log_ndtr(x)

    x = torch.randn(200_000, dtype=dtype) * 4
    for compiled in (ingot.compile(LogNormal(), inputs=[x]), compile_jit(LogNormal(), x)):
        assert not ingot.report(compiled).fallbacks  # log and erfc by themselves would be slow at this size
        assert_right(compiled, LogNormal(), x)


def test_the_command_line_names_slow_nodes(tmp_path: Path) -> None:
    program = torch.export.export(Samples(), tuple(sample_arguments(15)))
    torch.export.save(program, tmp_path / "samples.pt2")
    ingot_program = Path(sys.executable).with_name("ingot")
    command = [ingot_program, "build", str(tmp_path / "samples.pt2")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"slow: grid_sample \(grid_sampler\w*\): .*gathered by itself", done.stdout), done.stdout


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_contractions(dtype: torch.dtype) -> None:
    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.up = nn.Conv2d(3, 16, 3, 2, 1), nn.ConvTranspose2d(16, 8, 3, padding=1)
            self.line = nn.Linear(8, 24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.up(self.conv(x).relu()).flatten(2).transpose(1, 2)
            query = self.line(x)
            x = functional.scaled_dot_product_attention(query, query * 0.5, query)
            return x @ x.transpose(1, 2)

    model, x = Halves().to(dtype).eval(), torch.randn(2, 3, 12, 12).to(dtype)
    compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    assert not compiled.report.slow
    assert_right(compiled, model, x)


def test_sums_of_half_precision_are_not_rounded_on_the_way() -> None:
    line = nn.Linear(4096, 8, bias=False).to(torch.bfloat16)
    line.weight.fill_(1)
    compiled = ingot.compile(line.eval(), inputs=[torch.ones(2, 4096, dtype=torch.bfloat16)])
    assert torch.equal(
        compiled(torch.ones(2, 4096, dtype=torch.bfloat16)), torch.full((2, 8), 4096, dtype=torch.bfloat16)
    )


def test_index_add_and_scatters_by_rows() -> None:
    class Scatters(nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, ...]:
            along = torch.index_add(x.t(), 1, i, s.t(), alpha=2)
            return (
                torch.index_add(x, 0, i, s),
                along,
                torch.scatter_add(x, 0, i[:, None].expand(-1, 40), s),
                torch.index_reduce(x, 0, i, s, "amax"),
                torch.scatter_reduce(x, 0, i[:, None].expand(-1, 40), s, "mean", include_self=False),
            )

    args = torch.randn(30, 40), torch.randint(0, 30, (500,)), torch.randn(500, 40)
    args[0][3, 5], args[2][7, 7] = torch.nan, -torch.inf
    compiled = ingot.compile(Scatters(), inputs=list(args), require_full_compilation=True)
    for got, expected in zip(compiled(*args), Scatters()(*args), strict=True):
        torch.testing.assert_close(got, expected, equal_nan=True)


def test_interpolation_along_channels_is_fast_and_else_named() -> None:
    class Larger(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)

    for dtype, slow in ((torch.float32, 0), (torch.float64, 1)):
        x = torch.randn(1, 16, 9, 7, dtype=dtype)
        compiled = ingot.compile(Larger(), inputs=[x], require_full_compilation=True)
        assert len(compiled.report.slow) == slow
        assert_right(compiled, Larger(), x)
