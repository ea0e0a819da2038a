# SPDX-License-Identifier: Apache-2.0
"""Two linear layers of the same few rows, joined element by element, are one kernel on GPUs: its results against f64.

Without a GPU engines are built.
"""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import DEVICE, HAS_GPU, kernels_of, largest_error, needs_nvrtc, require_right
from torch import nn
from torch.nn import functional

pytestmark = needs_nvrtc

_DTYPES = [torch.float16, torch.bfloat16, torch.float32]


class Twins(nn.Module):
    """`join` of gate and up, of x as `before` leaves it."""

    def __init__(
        self, width: int, inner: int, biases: tuple[bool, bool], norm: nn.Module, is_computed: bool
    ) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(width, inner, bias=bias) for bias in biases)
        self.norm = norm
        self.is_computed = is_computed

    def join(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return functional.silu(gate) * up

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        if self.is_computed:
            x = torch.tanh(x) * scale
        x = self.norm(x)
        return self.join(self.gate(x), self.up(x))


class Geglu(Twins):
    """The second layer goes through the function, and something follows."""

    def join(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return gate * functional.gelu(up, approximate="tanh") + 0.25


def _norm(kind: str, width: int) -> nn.Module:
    norms = {
        "none": nn.Identity,
        "layer": lambda: nn.LayerNorm(width),
        "rms": lambda: nn.RMSNorm(width, eps=1e-5),
    }
    norm = norms[kind]()
    for weight in norm.parameters():
        nn.init.uniform_(weight, 0.5, 1.5)
    return norm


# Class, width, inner width, biases, norm, whether x is computed.
_CASES = {
    "swiglu": (Twins, 2048, 1000, (False, False), "rms", False),
    "swiglu_of_many": (Twins, 256, 5000, (False, False), "none", False),
    "geglu": (Geglu, 1048, 37, (True, True), "layer", False),
    "one_bias": (Twins, 40, 75, (False, True), "none", False),
    "other_bias": (Geglu, 776, 130, (True, False), "rms", False),
    "deep": (Twins, 3000, 50, (True, True), "layer", False),
    "computed": (Twins, 520, 333, (True, True), "none", True),
}


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("rows", [(1,), (2, 1), (3,), (1, 2, 2)], ids=str)
@pytest.mark.parametrize("case", _CASES)
def test_twins_are_one_kernel(case: str, rows: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    kind, width, inner, biases, norm, is_computed = _CASES[case]
    model = kind(width, inner, biases, _norm(norm, width), is_computed).eval().requires_grad_(False).to(dtype)
    args = (torch.randn(*rows, width).to(dtype), torch.randn(width).to(dtype))
    engine = ingot.build(torch.export.export(model, args), device=DEVICE)
    kernels = kernels_of(engine)
    assert len(kernels) == 1, kernels
    assert "of both" in kernels[0]["kernel"]
    if HAS_GPU:
        require_right(engine, model, args)


def test_a_mean_far_from_zero() -> None:
    torch.manual_seed(2)
    model = Geglu(512, 64, (True, True), _norm("layer", 512), False).eval().requires_grad_(False)
    args = (torch.randn(2, 512) + torch.tensor([[1e4], [0.0]]), torch.ones(512))
    engine = ingot.build(torch.export.export(model, args), device=DEVICE)
    if HAS_GPU:
        given = tuple(value.cuda() for value in args)
        exact = model.double().cuda()(*(value.double() for value in given))
        assert largest_error(engine(*given), exact) < 1e-3  # that of the rounded input


def test_many_rows_are_two_kernels() -> None:
    model = Twins(64, 64, (False, False), nn.Identity(), False).eval().half()
    args = (torch.randn(9, 64).half(), torch.ones(64).half())
    engine = ingot.build(torch.export.export(model, args), device=DEVICE)
    assert len(kernels_of(engine)) == 2


def test_weights_of_twins_are_refitted() -> None:
    torch.manual_seed(3)
    models = [
        Twins(64, 40, (True, False), _norm("rms", 64), False).eval().requires_grad_(False).half()
        for _ in range(2)
    ]
    args = (torch.randn(1, 64).half(), torch.ones(64).half())
    engine = ingot.build(torch.export.export(models[0], args), device=DEVICE)
    if HAS_GPU:
        engine.refit(dict(models[1].state_dict()))
        given = tuple(value.cuda() for value in args)
        exact = models[1].double().cuda()(*(value.double() for value in given))
        assert largest_error(engine(*given), exact) < 2e-3
