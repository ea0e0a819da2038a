# SPDX-License-Identifier: Apache-2.0
"""`ingot.compare`: each value of an engine beside the same value in f64."""

from __future__ import annotations

import copy

import ingot
import pytest
import torch
from small_models import Counter, InParts, mlp, tiny_bert
from torch import nn


class Convolutions(nn.Module):
    """Layouts change between its layers, and a batch norm becomes part of a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24)
        self.second, self.last = nn.Conv2d(24, 16, 3, stride=2), nn.Linear(16, 10)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = torch.nn.functional.max_pool2d(x, 2)
        return self.last(self.second(x).mean((2, 3))).softmax(-1)


def _convolutions() -> nn.Module:
    torch.manual_seed(0)
    return Convolutions().eval()


def _encoder() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()


_MODELS = [
    (mlp, [torch.randn(5, 8)]),
    (tiny_bert, [torch.arange(24).view(2, 12)]),
    (_convolutions, [torch.randn(2, 3, 16, 16)]),
    (_encoder, [torch.randn(2, 10, 64)]),
    (Counter, [torch.randn(3, 4)]),
    (InParts, [torch.randn(3, 4)]),
]


@pytest.mark.parametrize(("make", "inputs"), _MODELS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_values_in_f32_are_near_to_the_reference(make, inputs, level) -> None:
    """A value under the name of another node would be far away from it."""
    model = make()
    compiled = ingot.compile(model, inputs=inputs, optimization_level=level)
    found = ingot.compare(model, compiled, inputs)
    assert found.error < 1e-5
    assert all(node.error < 1e-5 and node.own_error <= 1e-5 for node in found.nodes), str(found)
    assert len(found.nodes) >= len(found.unmatched)
    assert all(node.source for node in found.nodes)


def test_a_call_that_is_observed_computes_the_same() -> None:
    model, x = Counter(), torch.randn(3, 4)
    observed, plain = (ingot.compile(model, inputs=[x]) for _ in range(2))
    ingot.compare(model, observed, [x])
    plain(x)
    assert torch.equal(observed(x), plain(x))


def test_the_wrong_step_is_the_worst() -> None:
    model, x = tiny_bert(), torch.arange(24).view(2, 12)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.encoder.layer[1].intermediate.dense.weight[3] += 0.05 * torch.randn(32)
    found = ingot.compare(model, ingot.compile(other, inputs=[x]), [x])
    wrong = found.nodes[0]
    assert "layer.1.intermediate" in wrong.source or any("linear" in name for name in wrong.nodes)
    assert wrong.own_error > 1e-3
    assert all(node.own_error < 1e-5 for node in found.nodes[1:])
    assert found.error > 1e-4


def test_keeping_what_is_suggested_brings_the_error_below_the_limit() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(6)]).eval()
    x = torch.randn(2, 64)
    narrow = ingot.compile(model, inputs=[x], enabled_precisions={torch.float16})
    before = ingot.compare(model, narrow, [x])
    assert 1e-5 < before.error < 1e-2
    limit = before.error / 2
    names = before.suggest(0.9 * limit)  # it is a prediction
    assert 0 < len(names) < 6
    kept = ingot.compile(model, inputs=[x], enabled_precisions={torch.float16}, keep_precision=list(names))
    assert ingot.compare(model, kept, [x]).error <= limit
    assert before.suggest(1.0) == ()


def test_half_models_are_compared_with_their_original() -> None:
    model, x = tiny_bert(), torch.arange(24).view(2, 12)
    half = ingot.compile(copy.deepcopy(model).half(), inputs=[x])
    found = ingot.compare(model, half, [x])
    assert 1e-4 < found.error < 1e-2
    assert len(found.nodes) > 10


def test_quantized_models_are_compared_with_their_original() -> None:
    model, batches = _convolutions(), [torch.randn(4, 3, 16, 16) for _ in range(4)]
    program = ingot.quantize(model, batches)
    found = ingot.compare(model, ingot.compile(program, inputs=[batches[0]]), [batches[0]])
    names = {name for node in found.nodes for name in node.nodes}
    assert {"conv2d", "conv2d_1", "linear"} <= names
    assert {"relu", "max_pool2d"} <= {node.name for node in found.nodes}  # stored as integers
    assert 1e-4 < found.error < 0.1
    assert all(node.own_error < 0.1 for node in found.nodes), str(found)


def test_tables_have_the_worst_first() -> None:
    model, x = _encoder(), torch.randn(2, 10, 64)
    compiled = ingot.compile(model, inputs=[x], enabled_precisions={torch.float16})
    found = ingot.compare(model, compiled, [x])
    errors = [node.own_error for node in found.nodes]
    assert errors == sorted(errors, reverse=True)
    lines = str(found).splitlines()
    assert "output_0" in lines[1]
    assert found.nodes[0].name in lines[2]
    assert len(found.table(top=1).splitlines()) == 4


def test_what_cannot_be_compared() -> None:
    model, x = mlp(), torch.randn(5, 8)
    compiled = ingot.compile(model, inputs=[x])
    with pytest.raises(ingot.UserError, match="INGOT-U007") as error:
        ingot.compare(model, model, [x])
    assert "ir=" in error.value.advice
    with pytest.raises(ingot.UserError, match="INGOT-U029"):
        ingot.compare(nn.Sequential(nn.ReLU()), compiled, [x])


def test_an_exception_of_an_observer_is_raised_by_the_run() -> None:
    x = torch.randn(5, 8)
    engine = ingot.compile(mlp(), inputs=[x]).engine

    def fail(step: int, name: str, value: torch.Tensor) -> None:
        raise ValueError(name)

    engine._core.set_observer(fail)
    with pytest.raises(ValueError, match="gelu"):
        engine(x)
    engine._core.set_observer(None)
    engine(x)


class Spectrum(nn.Module):
    def __init__(self, share: float = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.share, self.linear = share, nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = torch.fft.fft(self.linear(x)) * 2j + torch.relu(x)
        return torch.complex(z.real, z.imag * self.share).exp(), z.abs()


@pytest.mark.parametrize("level", [0, 2, 3])
def test_complex_values_have_both_parts(level) -> None:
    """Steps inside of an engine have one part each, and are not the values of nodes."""
    inputs = [torch.randn(4, 8)]
    compiled = ingot.compile(Spectrum(), inputs=inputs, optimization_level=level)
    found = ingot.compare(Spectrum(), compiled, inputs)
    assert found.error < 1e-5
    assert all(node.error < 1e-5 and node.own_error <= 1e-5 for node in found.nodes), str(found)
    assert {"linear", "abs_1"} <= {node.name for node in found.nodes}
    assert ingot.compare(Spectrum(share=1.5), compiled, inputs).outputs[0].error > 0.01


class Powers(nn.Module):
    """What is left of sums that nearly cancel, in which each rounding counts."""

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return (z * z.conj()).sum(0) - 8192


def test_complex_values_are_compared_in_f64() -> None:
    z = torch.randn(4096, 2, dtype=torch.complex128).to(torch.complex64)
    compiled = ingot.compile(Powers(), inputs=[z])
    right = Powers()(z.to(torch.complex128))
    error = (compiled(z) - right).norm() / right.norm()
    assert ingot.compare(Powers(), compiled, [z]).outputs[0].error == pytest.approx(error.item(), rel=1e-6)
