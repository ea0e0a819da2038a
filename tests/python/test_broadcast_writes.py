# SPDX-License-Identifier: Apache-2.0
"""`copy_` of tensors that it broadcasts: what reads the result, and the buffer itself, have the buffer's shape."""

from __future__ import annotations

import copy
from collections.abc import Callable

import ingot
import pytest
import torch


class _Writes(torch.nn.Module):
    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("source", torch.randn(shape))
        self.register_buffer("kept", torch.randn(17, 2))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.kept.copy_(self.source)
        first = torch.abs(self.kept)
        self.kept.copy_(x)
        return first, self.kept + 1


_WAYS: dict[str, Callable] = {
    "build": lambda model, x: ingot.build(torch.export.export(model, (x,))),
    "compile": lambda model, x: ingot.compile(model, inputs=[x]),
    "torch.compile": lambda model, x: torch.compile(model, backend="ingot"),
    "torchscript": lambda model, x: ingot.ts.compile(torch.jit.trace(model, (x,)), inputs=[x]),
}


@pytest.mark.parametrize("shape", [(), (2,), (17, 1), (17, 2)], ids=str)
@pytest.mark.parametrize("way", _WAYS)
def test_broadcast_writes(way: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = _Writes(shape).eval()
    compiled = _WAYS[way](copy.deepcopy(model), torch.zeros(shape))
    for _ in range(2):
        x = torch.randn(shape)
        torch.testing.assert_close(tuple(compiled(x)), model(x))
