# SPDX-License-Identifier: Apache-2.0
"""Threads that compile at once: torch traces with state of the whole process, so one at a time may.

Functions of torch.compile are not among them: torch refuses to call them while another thread exports.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ingot
import pytest
import torch
from test_fork import in_child
from torch import nn

THREADS = 6


class Decomposed(nn.Module):
    """With an operator that torch decomposes, and one that is written in place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(8, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.logit(self.linear(x).sigmoid(), eps=0.1)
        y.add_(1)
        return y


def ahead_of_time(model: nn.Module, x: torch.Tensor) -> Any:
    return ingot.compile(model, inputs=[x])


def saved(model: nn.Module, x: torch.Tensor) -> Any:
    module = ingot.compile(model, inputs=[x], torch_executed_ops={"aten.sigmoid.default"})
    path = f"{threading.get_ident()}.pt2"
    ingot.save(module, path)
    return ingot.load(path)


@pytest.mark.parametrize("ways", [(ahead_of_time,), (saved,), (ahead_of_time, saved)])
def test_threads_compile_at_once(
    ways: tuple[Callable[..., Any], ...], tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    x = torch.randn(4, 8)
    models = [Decomposed(8 + i).eval() for i in range(THREADS)]
    expected = [model(x) for model in models]

    def compile_one(i: int) -> torch.Tensor:
        return ways[i % len(ways)](models[i], x)(x)

    with ThreadPoolExecutor(THREADS) as threads:
        results = list(threads.map(compile_one, range(THREADS)))
    torch.testing.assert_close(results, expected)


def test_a_child_compiles_though_a_thread_of_its_parent_was_tracing() -> None:
    x = torch.randn(4, 8)
    ahead_of_time(Decomposed(8).eval(), x)
    inside, go_on = threading.Event(), threading.Event()

    class Waits(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inside.set()
            go_on.wait(60)
            return x + 1

    model = Decomposed(9).eval()
    expected = model(x)

    def compiles() -> bool:
        return torch.allclose(ahead_of_time(model, x)(x), expected, atol=1e-5)

    tracing = threading.Thread(target=ahead_of_time, args=(Waits(), x))
    tracing.start()
    assert inside.wait(60)
    try:
        assert in_child(compiles) == 0
    finally:
        go_on.set()
        tracing.join()
