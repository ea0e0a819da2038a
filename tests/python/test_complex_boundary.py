# SPDX-License-Identifier: Apache-2.0
"""Complex inputs and results of programs whose engines have pairs of reals, against eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
from whole_functions import in_engine


def _at_the_boundary(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    turned = z * torch.polar(x.abs(), x)
    return turned, turned.abs() + x, torch.fft.fft(x), turned.mT, z


_GIVEN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "dense": lambda z: z,
    "conjugated": lambda z: z.conj(),
    "transposed": lambda z: z.mT.contiguous().mT,
    "strided": lambda z: torch.stack([z, -z], -1)[..., 1],
    "wide": lambda z: z.to(torch.complex128),
}


@pytest.mark.parametrize("given", sorted(_GIVEN))
@pytest.mark.parametrize("dynamic", [False, True])
def test_complex_inputs_and_outputs(given: str, dynamic: bool) -> None:
    z, x = _GIVEN[given](torch.randn(3, 4, dtype=torch.complex64)), torch.randn(3, 4)
    x = x.to(z.real.dtype)
    with torch.no_grad():
        actual = in_engine(_at_the_boundary, [z, x], dynamic)
    for ours, eager in zip(actual, _at_the_boundary(z, x), strict=True):
        torch.testing.assert_close(ours, eager, check_stride=True)


def test_complex_inputs_that_are_changed() -> None:
    def function(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        z.mul_(2).add_(x)
        return z.abs()

    z, x = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4)
    ours, eager = z.clone(), z.clone()
    with torch.no_grad():
        torch.testing.assert_close(in_engine(function, [ours, x]), function(eager, x))
    torch.testing.assert_close(ours, eager)


class _Boundary(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return _at_the_boundary(z, x)[:3]


def test_complex_inputs_and_outputs_ahead_of_time(tmp_path: Path) -> None:
    def example(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(rows, 4, dtype=torch.complex64), torch.randn(rows, 4)

    model, rows = _Boundary().eval(), torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, example(3), dynamic_shapes=({0: rows}, {0: rows}))
    compiled = ingot.dynamo.compile(program, require_full_compilation=True)
    assert not ingot.report(compiled).fallbacks
    ingot.save(compiled, str(tmp_path / "boundary.ingot"))
    for module in (compiled, ingot.load(str(tmp_path / "boundary.ingot"))):
        z, x = example(7)
        torch.testing.assert_close(module(z.conj(), x), model(z.conj(), x))
    with pytest.raises(ingot.UnsupportedError, match="complex"):
        _ = compiled.engine


def test_torch_runs_complex_operators_at_the_boundary() -> None:
    def function(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (z * x).tan(), z.tan() * z, (z * z).abs()

    torch._dynamo.reset()
    z, x = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4)
    compiled = torch.compile(function, backend="ingot")
    for actual, eager in zip(compiled(z, x), function(z, x), strict=True):
        torch.testing.assert_close(actual, eager)
