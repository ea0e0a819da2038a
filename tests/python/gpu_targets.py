# SPDX-License-Identifier: Apache-2.0
"""What tests of engines for GPUs run on: this machine's GPU, or none; then engines are built for an H100, and not run."""

from __future__ import annotations

import os
import threading

import ingot
import pytest
import torch
from ingot.devices import architecture

HAS_GPU = torch.cuda.is_available()
DEVICE = f"cuda:{architecture()}" if HAS_GPU else "cuda:sm_90a"
HAS_WARP_GROUPS = DEVICE == "cuda:sm_90a"  # kernels by wgmma, the only ones that keep moments of their rows

needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
needs_nvrtc = pytest.mark.skipif(not os.environ.get("INGOT_NVRTC"), reason="there is no NVRTC")


def unaligned(value: torch.Tensor) -> torch.Tensor:
    """A copy on the GPU that begins in the middle of 16 bytes."""
    memory = torch.empty(value.numel() + 1, dtype=value.dtype, device="cuda")
    return memory[1:].view(value.shape).copy_(value)


def kernels_of(engine: ingot.Engine) -> list[dict]:
    """The steps of the engine that are kernels."""
    return [step for step in engine.inspect()["main"]["steps"] if step["kind"] == "kernel"]


def largest_error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference, relative to the largest element."""
    return float((result.double() - exact).abs().max() / exact.abs().max())


def require_right(engine: ingot.Engine, model: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> None:
    """Of a product, with operands that are aligned and that are not. The model is of f64 afterwards."""
    given = tuple(value.cuda() for value in args)
    exact = model.double().cuda()(*(value.double() for value in given))
    dtype = args[0].dtype
    limit = 1e-5 if dtype == torch.float32 else 2 * torch.finfo(dtype).eps
    assert largest_error(engine(*given), exact) < limit
    assert largest_error(engine(*map(unaligned, given)), exact) < limit


def wrong_turns(engine: ingot.Engine, inputs: list[torch.Tensor], turns: int) -> list[int]:
    """Four threads call the engine on streams of their own: the turns whose bits were not those of a call alone."""
    expected = [engine(x) for x in inputs]
    torch.cuda.synchronize()
    wrong: list[int] = []

    def work() -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for turn in range(turns):
                position = turn % len(inputs)
                result = engine(inputs[position])
                stream.synchronize()
                if not torch.equal(result, expected[position]):
                    wrong.append(turn)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong
