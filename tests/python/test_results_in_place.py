# SPDX-License-Identifier: Apache-2.0
"""Results of engines belong to torch: what callers do with their memory works as with eager's."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from torch import nn

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def enlarge(y: torch.Tensor) -> None:
    y.resize_(8, 4)


def shrink(y: torch.Tensor) -> None:
    y.resize_(1, 4)


def write_more(y: torch.Tensor) -> None:
    torch.add(torch.ones(5, 4), 1, out=y)


def free(y: torch.Tensor) -> None:
    y.untyped_storage().resize_(0)


WAYS: dict[str, Callable[[nn.Module, torch.Tensor], Callable[..., torch.Tensor]]] = {
    "torch.compile": lambda model, x: torch.compile(model, backend="ingot"),
    "module": lambda model, x: ingot.compile(model, inputs=[x]),
    "engine": lambda model, x: ingot.compile(model, inputs=[x]).engine,
    "in parts": lambda model, x: ingot.compile(model, inputs=[x], torch_executed_ops=["aten.relu"]),
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("change", [enlarge, shrink, write_more, free])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_results_are_resized_in_place(way: str, change: Callable[[torch.Tensor], None]) -> None:
    model = nn.Sequential(nn.ReLU(), nn.Linear(4, 4)).eval()
    x = torch.randn(2, 4)
    with torch.no_grad():
        compiled, expected = WAYS[way](model, x), model(x)
        for _ in range(3):
            y = compiled(x)
            kept = min(y.numel(), 4)
            torch.testing.assert_close(y, expected)
            before = y.flatten()[:kept].clone()
            change(y)
            if change in (enlarge, shrink):
                assert torch.equal(y.flatten()[:kept], before)
            if change is write_more:
                assert torch.equal(y, torch.full((5, 4), 2.0))


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (3,), (2, 0, 5)])
def test_results_of_all_dtypes(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape).to(dtype)
    engine = ingot.compile(Twice(), inputs=[x], require_full_compilation=True).engine
    for guard in (torch.no_grad(), torch.inference_mode()):
        with guard:
            y, eager = engine(x), Twice()(x)
            assert (y.dtype, y.shape, y.stride()) == (eager.dtype, eager.shape, eager.stride())
            assert y.is_inference() == eager.is_inference()
            assert y.untyped_storage().resizable()
            assert torch.equal(y.view(torch.uint8), eager.view(torch.uint8)) or dtype.is_complex
    assert torch.equal(torch.view_as_real(y), torch.view_as_real(eager)) if dtype.is_complex else True


def test_results_are_on_the_host_whatever_torch_allocates() -> None:
    x = torch.randn(2, 4)
    engine = ingot.compile(nn.ReLU(), inputs=[x]).engine
    with torch.device("meta"):
        y = engine(x)
    assert y.device == torch.device("cpu")
    assert torch.equal(y, x.relu())
