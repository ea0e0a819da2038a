# SPDX-License-Identifier: Apache-2.0
"""Programs that torch decomposes as a whole (control flow), with calls that fail on values: torch orders these by tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
from torch import nn
from torch.export import Dim


def asserted(x: torch.Tensor) -> torch.Tensor:
    torch._assert_async((x.abs() < 1e6).all(), "too large")
    return x + 1


CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "inv": torch.linalg.inv,
    "cholesky": torch.linalg.cholesky,
    "solve": lambda x: torch.linalg.solve(x, x[..., :1]),
    "eigvalsh": torch.linalg.eigvalsh,
    "two": lambda x: torch.linalg.cholesky(torch.linalg.inv(x)),
    "assertion": asserted,
}


class AfterBranch(nn.Module):
    def __init__(self, call: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.call = call
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        x = torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: -x, (x,))
        return self.call(x @ x.mT + torch.eye(4, dtype=x.dtype) * 3) * self.count


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("dynamic", [False, True])
def test_calls_that_may_fail_after_a_branch(name: str, dynamic: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4, 4)
    model = AfterBranch(CALLS[name]).eval()
    with torch.no_grad():
        shapes = ({0: Dim("batch", min=2, max=16)},) if dynamic else None
        compiled = ingot.compile(torch.export.export(model, (x,), dynamic_shapes=shapes))
        ingot.save(compiled, tmp_path / "model.pt2")
        loaded = ingot.load(tmp_path / "model.pt2")
        model.count.zero_()
        for given in (x, -x, torch.randn(5 if dynamic else 3, 4, 4)):
            expected = model(given)
            torch.testing.assert_close(compiled(given), expected, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(loaded(given), expected, rtol=1e-4, atol=1e-4)
    assert ingot.report(compiled).fallbacks == []


class Inverted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,)))


def test_they_fail_as_without_a_branch() -> None:
    compiled = ingot.compile(torch.export.export(Inverted(), (torch.eye(4),)))
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*singular"):
        compiled(torch.ones(4, 4))
    torch.testing.assert_close(compiled(torch.eye(4)), torch.eye(4) / 2)
