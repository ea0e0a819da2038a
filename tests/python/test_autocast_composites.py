# SPDX-License-Identifier: Apache-2.0
"""Composites under torch.autocast, which chooses dtypes for the calls that they consist of: results have eager's dtypes."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from ingot.torch_backend import backend
from small_models import Function
from torch import nn

F = nn.functional
CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "einsum, products": lambda x: torch.einsum("abij,abjk->abik", x, x),
    "einsum, sums": lambda x: torch.einsum("abij,abij->ab", x, x),
    "einsum, permutation": lambda x: torch.einsum("abij->abji", x),
    "reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replication": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "zeros": lambda x: F.pad(x, (1, 1)),
    "linear": lambda x: F.linear(x, x[0, 0]),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "layer norm": lambda x: F.layer_norm(x, (8,)),
    "group norm": lambda x: F.group_norm(x, 3),
    "rms norm": lambda x: F.rms_norm(x, (8,)),
    "softmax": lambda x: x.softmax(-1),
    "bilinear": lambda x: F.bilinear(x[0, 0], x[0, 1], torch.ones(4, 8, 8, dtype=x.dtype)),
    "interpolation": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "nearest of 1 dim": lambda x: F.interpolate(x[0], scale_factor=2.0),
    "nearest of 2 dims": lambda x: F.interpolate(x, scale_factor=2.0),
    "nearest of 3 dims": lambda x: F.interpolate(x[None], size=(6, 9, 4)),
    "nearest, exact": lambda x: F.interpolate(x, size=(5, 12), mode="nearest-exact"),
    "cubic interpolation": lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"),
    "convolution": lambda x: F.conv2d(x, x, padding="same"),
    "matmul": lambda x: torch.linalg.matmul(x, x),
    "outer": lambda x: torch.outer(x[0, 0, 0], x[0, 0, 1]),
    "standard deviation": lambda x: x.std(-1),
}


class Inside(nn.Module):
    """The region is a part of the model."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.function(x)
        return y * 2


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize(
    ("dtype", "way"),
    [
        (torch.float32, "around"),
        (torch.bfloat16, "around"),
        (torch.float32, "inference"),
        (torch.float32, "inside"),
    ],
)
def test_dtypes_are_those_of_eager(name: str, dtype: torch.dtype, way: str) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8).to(dtype)
    function = Inside(CASES[name]) if way == "inside" else CASES[name]
    guard = torch.inference_mode() if way == "inference" else torch.no_grad()
    with guard, torch.autocast("cpu", torch.bfloat16, enabled=way != "inside"):
        expected = function(x)
        found = torch.compile(function, backend="ingot")(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2)


def _compare_whole(compiled: Callable[..., torch.Tensor], x: torch.Tensor, expected: torch.Tensor) -> None:
    assert ingot.report(compiled).fallbacks == []
    _compare(compiled, x, expected)


def _compare(compiled: Callable[..., torch.Tensor], x: torch.Tensor, expected: torch.Tensor) -> None:
    found = compiled(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("way", ["inside", "around", "outside"])
def test_exported_programs(name: str, dtype: torch.dtype, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Region in the model, around all, or around torch.export alone: a program does not say so, and means what torch does with it."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8).to(dtype)
    model = Inside(CASES[name]) if way == "inside" else Function(CASES[name])
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16, enabled=way != "inside"):
            expected = model(x)
            program = torch.export.export(model, (x,))
        with torch.autocast("cpu", torch.bfloat16, enabled=way == "around"):
            compiled = ingot.compile(program)
        differs = expected.dtype != model(x).dtype
        _compare_whole(compiled, x, model(x) if way == "outside" else expected)
    warns = any("exported inside of torch.autocast" in record.message for record in caplog.records)
    assert warns == (way == "outside" and differs)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("is_decomposed", [False, True], ids=["exported", "decomposed"])
def test_programs_exported_before_a_region(name: str, is_decomposed: bool) -> None:
    """What is compiled in a region has the dtypes with which torch runs the program there."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8)
    program = torch.export.export(Function(CASES[name]), (x,))
    program = program.run_decompositions() if is_decomposed else program
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        _compare(
            ingot.compile(program), x, program.module()(x)
        )  # torch decomposes some to what it runs itself


@pytest.mark.parametrize("form", ["model", "program", "torch.compile"])
def test_quantized_models_in_a_region(form: str) -> None:
    layers = [nn.Conv2d(3, 4, 3), nn.ReLU(), nn.ConvTranspose2d(4, 4, 2, 2), nn.Flatten(), nn.Linear(576, 5)]
    x = torch.randn(2, 3, 8, 8)
    model = ingot.quantize(nn.Sequential(*layers).eval(), [x])
    program = torch.export.export(model, (x,))
    torch.compiler.reset()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        compiled = {
            "model": lambda: ingot.compile(model, inputs=[x]),
            "program": lambda: ingot.compile(program),
            "torch.compile": lambda: torch.compile(model, backend="ingot"),
        }[form]()
        expected = model(x)
        assert expected.dtype == torch.bfloat16
        _compare(compiled, x, expected)


def test_models_compiled_in_a_region() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)
    ).eval()
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        _compare_whole(ingot.compile(model, inputs=[x]), x, model(x))


WHOLE: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "einsum": ("aten.einsum.default", CASES["einsum, products"]),
    "group norm": ("aten.group_norm.default", CASES["group norm"]),
    "interpolation": ("aten.upsample_bilinear2d.vec", CASES["interpolation"]),
    "reflection": ("aten.pad.default", CASES["reflection"]),
    "condition": ("aten.where.ScalarOther", lambda x: torch.where(x > 0, x, 2.0)),
}


@pytest.mark.parametrize("name", list(WHOLE))
@pytest.mark.parametrize("dynamic", [None, True])
def test_composites_stay_whole_without_autocast(name: str, dynamic: bool | None) -> None:
    """Also where torch finds their sizes with tensors on the device "meta"."""
    torch.compiler.reset()
    operator, function = WHOLE[name]
    compiled = torch.compile(function, backend="ingot", dynamic=dynamic)
    with torch.no_grad():
        compiled(torch.randn(2, 3, 8, 8))
    assert ingot.report(compiled).fallbacks == []
    names = [node.op for segment in ingot.report(compiled).segments for node in segment.nodes]
    assert operator in names


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 8, 8)])
def test_references_that_torch_runs_on_meta_tensors_have_composites(shape: tuple[int, ...]) -> None:
    """Of relu, torch finds the sizes by its reference in Python, which calls `where` of a scalar on the device "meta"."""
    x = torch.randn(shape)
    with torch.no_grad():
        graph = torch.fx.symbolic_trace(lambda x: (x.relu(),))
        compiled = backend(graph, [x], options={"require_full_compilation": True})
        assert torch.equal(compiled(x)[0], x.relu())
