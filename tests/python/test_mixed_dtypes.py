# SPDX-License-Identifier: Apache-2.0
"""Functions of two tensors of different dtypes: results, and what they are computed from, have the dtype that torch promotes both to."""

from __future__ import annotations

from pathlib import Path

import ingot
import pytest
import torch

_FUNCTIONS = {
    function.__name__: function
    for function in (
        torch.add,
        torch.atan2,
        torch.copysign,
        torch.div,
        torch.float_power,
        torch.fmod,
        torch.heaviside,
        torch.hypot,
        torch.logaddexp,
        torch.logaddexp2,
        torch.pow,
        torch.remainder,
        torch.special.gammainc,
        torch.special.xlog1py,
        torch.special.zeta,
        torch.xlogy,
    )
}
_PAIRS = [
    (torch.float64, torch.float32),
    (torch.float64, torch.float16),
    (torch.float32, torch.bfloat16),
    (torch.float64, torch.int32),
    (torch.float32, torch.bool),
]
_ERRORS = {torch.float64: 2e-14, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


class _All(torch.nn.Module):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [_FUNCTIONS[name](x, y) for name in self.names]


def _takes(name: str, x: torch.Tensor, y: torch.Tensor) -> bool:
    try:
        _FUNCTIONS[name](x, y)
    except (RuntimeError, NotImplementedError):  # eager has no kernel for these dtypes
        return False
    return True


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((3, 4), ()), ((), (3, 4))], ids=str)
@pytest.mark.parametrize("pair", _PAIRS, ids=str)
def test_mixed_dtypes(pair: tuple, shapes: tuple, turned: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    first, second = reversed(pair) if turned else pair
    x, y = (torch.rand(shapes[0]) * 3 + 1.1).to(first), (torch.rand(shapes[1]) * 2 + 1.2).to(second)
    names = [name for name in _FUNCTIONS if _takes(name, x, y)]
    assert len(names) > 10
    model = _All(names)
    torch.export.save(torch.export.export(model, (x, y)), tmp_path / "all.pt2")
    results = ingot.build(str(tmp_path / "all.pt2"))(x, y)
    for name, result, eager in zip(names, results, model(x, y), strict=True):
        error = _ERRORS.get(eager.dtype, 0)
        torch.testing.assert_close(
            result,
            eager,
            rtol=error,
            atol=error,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )
