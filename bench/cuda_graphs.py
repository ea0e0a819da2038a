# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of what torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

Result = TypeVar("Result")


def graph_of(call: Callable[[], Result]) -> Callable[[], Result]:
    """Replays what the call does on the GPU, into the same result."""
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay() -> Result:
        graph.replay()
        return result

    return replay
