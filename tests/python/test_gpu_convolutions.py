# SPDX-License-Identifier: Apache-2.0
"""Convolutions by cuDNN in engines: chosen by the tactic file, with other sizes and weights, in graphs, and on two streams."""

from __future__ import annotations

import copy
from pathlib import Path

import ingot
import pytest
import torch
from convolution_layers import CASES, Case
from gpu_tactics import built_with, can_open, kernels_of, loaded_without
from gpu_targets import DEVICE, HAS_GPU, needs_nvrtc, unaligned, wrong_turns
from torch import nn

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(
        not HAS_GPU or not can_open("INGOT_CUDNN", "libcudnn.so.9"), reason="there is no GPU, or no cuDNN"
    ),
]

_TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
_BY_NAME = {case.name: case for case in CASES}


class Layer(nn.Module):
    """Its weights are the model's own; a residual lies channels last, as between the layers of a network."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case
        weight, bias = case.parameters()
        self.weight = nn.Parameter(weight)
        self.bias = None if bias is None else nn.Parameter(bias)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        moved = None if residual is None else residual.movedim(-1, 1)
        return self.case.apply(x, self.weight, self.bias, moved)


class ChannelsLast(Layer):
    """Nothing is copied in front of the convolution: its operands are the caller's memory."""

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        return super().forward(x.movedim(-1, 1), residual).movedim(1, -1)


def _model(case: Case, dtype: torch.dtype, kind: type[Layer] = Layer) -> tuple[Layer, list[torch.Tensor]]:
    torch.manual_seed(5)
    model = kind(case).eval().requires_grad_(False)
    x = case.input()
    inputs = [x if kind is Layer else x.movedim(1, -1).contiguous()]
    if case.residual:
        y = model(*inputs)
        inputs.append(torch.randn(y.movedim(1, -1).shape if kind is Layer else y.shape))
    return model.to(dtype), [value.to(dtype) for value in inputs]


def _engine(folder: Path, model: nn.Module, inputs: list[torch.Tensor], choice: int = 0) -> ingot.Engine:
    """For any number of images, unless it is built with one."""
    sizes = {0: torch.export.Dim("images", min=1, max=64)} if len(inputs[0]) > 1 else {}
    program = torch.export.export(model, tuple(inputs), dynamic_shapes=tuple(sizes for _ in inputs))
    level = 4 if choice < 2 else 5
    return built_with(f"cuDNN, choice {choice}", program, folder, "convolution", level=level, numerics="fast")


def _exact(model: nn.Module, inputs: list[torch.Tensor]) -> torch.Tensor:
    return copy.deepcopy(model).double()(*[value.double() for value in inputs])


def _check(engine: ingot.Engine, model: nn.Module, inputs: list[torch.Tensor]) -> None:
    """Enqueued, captured and replayed, with the same bits."""
    given = [value.cuda() for value in inputs]
    results = [engine(*given).cpu() for _ in range(4)]
    assert all(torch.equal(results[0], other) for other in results[1:])
    tolerance = _TOLERANCES[inputs[0].dtype]
    torch.testing.assert_close(results[0].double(), _exact(model, inputs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_is_as_torch_says(tmp_path: Path, case: Case, dtype: torch.dtype) -> None:
    model, inputs = _model(case, dtype)
    engine = _engine(tmp_path, model, inputs)
    assert kernels_of(engine, "cuDNN") == ["convolution: cuDNN, choice 0"]
    _check(engine, model, inputs)


@pytest.mark.parametrize("choice", [1, 4, 7])
@pytest.mark.parametrize("name", ["residual", "groups", "volume"])
def test_other_choices_are_right(tmp_path: Path, name: str, choice: int) -> None:
    """Level 4 knows the first two."""
    model, inputs = _model(_BY_NAME[name], torch.float16)
    engine = _engine(tmp_path, model, inputs, choice)
    assert kernels_of(engine, "cuDNN") == [f"convolution: cuDNN, choice {choice}"]
    _check(engine, model, inputs)


@pytest.mark.parametrize(
    "name", ["residual", "residual_alone", "bounded", "groups", "volume", "line", "silu"]
)
def test_other_batches_and_addresses_that_are_not_aligned(tmp_path: Path, name: str) -> None:
    model, inputs = _model(_BY_NAME[name], torch.float16)
    engine = _engine(tmp_path, model, inputs)
    for images in (1, 32, 3, 1):
        given = [torch.randn(images, *value.shape[1:]).half() for value in inputs]
        _check(engine, model, given)
        result = engine(*map(unaligned, given)).cpu().double()
        torch.testing.assert_close(result, _exact(model, given), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("name", ["residual", "residual_alone", "bounded", "groups", "volume"])
def test_memory_of_the_caller_that_is_not_aligned(tmp_path: Path, name: str) -> None:
    model, inputs = _model(_BY_NAME[name], torch.float16, ChannelsLast)
    engine = _engine(tmp_path, model, inputs)
    assert kernels_of(engine, "cuDNN") == ["convolution: cuDNN, choice 0"]
    _check(engine, model, inputs)
    result = engine(*map(unaligned, inputs)).cpu().double()
    torch.testing.assert_close(result, _exact(model, inputs), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("activation", ["", "relu", "relu6"])
def test_what_is_not_a_number_stays_so(tmp_path: Path, activation: str) -> None:
    """The library may lose it, and is not asked without `fast`."""
    model, inputs = _model(Case(activation, 16, 24, (9, 7), (3, 3), padding=1, activation=activation), torch.float16)  # fmt: skip
    program = torch.export.export(model, tuple(inputs))
    engine = ingot.build(program, device=DEVICE, optimization_level=4, engine_cache_dir="off")
    assert kernels_of(engine, "cuDNN") == []
    inputs[0][1, 3, 4, 5] = torch.nan
    result = engine(*[value.cuda() for value in inputs]).cpu()
    assert torch.equal(result.isnan(), model(*inputs).isnan())


def test_a_refit_reaches_the_library(tmp_path: Path) -> None:
    model, inputs = _model(_BY_NAME["residual"], torch.float16)
    engine = _engine(tmp_path, model, inputs)
    _check(engine, model, inputs)
    torch.manual_seed(6)
    other = Layer(_BY_NAME["residual"]).eval().requires_grad_(False).half()
    engine.refit(other)
    _check(engine, other, inputs)


def test_graphs_of_callers_and_streams(tmp_path: Path) -> None:
    model, inputs = _model(_BY_NAME["groups"], torch.float16)
    engine = _engine(tmp_path, model, inputs)
    x = inputs[0].cuda()
    expected = engine(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = engine(x)
    x.copy_(torch.zeros_like(x))
    graph.replay()
    torch.testing.assert_close(captured, engine(x), rtol=0, atol=0)
    x.copy_(inputs[0])
    graph.replay()
    torch.testing.assert_close(captured, expected, rtol=0, atol=0)
    batches = [torch.randn(images, *inputs[0].shape[1:], device="cuda").half() for images in (1, 2, 7, 32)]
    assert wrong_turns(engine, batches, 100) == []


def test_a_first_call_may_be_captured(tmp_path: Path) -> None:
    """The plan is made while torch captures."""
    model, inputs = _model(_BY_NAME["bias"], torch.float16)
    _engine(tmp_path, model, inputs).save(str(tmp_path / "model.ingot"))
    engine = ingot.Engine.load(str(tmp_path / "model.ingot"))
    x = torch.randn(5, *inputs[0].shape[1:], device="cuda").half()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = engine(x)
    graph.replay()
    torch.testing.assert_close(captured.cpu().double(), _exact(model, [x.cpu()]), rtol=4e-3, atol=4e-3)


def test_an_engine_says_that_the_library_is_missing(tmp_path: Path) -> None:
    model, inputs = _model(_BY_NAME["bias"], torch.float16)
    run = loaded_without("INGOT_CUDNN", _engine(tmp_path, model, inputs), tmp_path)
    assert run.returncode != 0
    assert "INGOT-D405" in run.stderr
    assert "cuDNN" in run.stderr
