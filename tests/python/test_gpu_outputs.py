# SPDX-License-Identifier: Apache-2.0
"""Results on a GPU, some of which are allocated before the call that returns them. Skipped where there is no GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable

import ingot
import pytest
import torch
from gpu_targets import needs_gpu
from ingot.devices import architecture

pytestmark = needs_gpu


class Sums(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, (x * 2).sum(-1)


def _rows(number: int) -> torch.Tensor:
    return torch.full((number % 5 + 1, 32), float(number), device="cuda")


@pytest.fixture(scope="module", params=["engine", "module", "torch.compile"])
def call(request: pytest.FixtureRequest) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    if request.param == "torch.compile":
        return torch.compile(Sums(), backend="ingot", dynamic=True)
    build = ingot.build if request.param == "engine" else ingot.compile
    rows = torch.export.Dim("rows", min=1, max=1 << 20)
    program = torch.export.export(Sums(), (torch.zeros(4, 32),), dynamic_shapes=({0: rows},))
    return build(program, device=f"cuda:{architecture()}")


def _is_right(outputs: tuple[torch.Tensor, torch.Tensor], x: torch.Tensor) -> bool:
    return all(torch.equal(a, b) for a, b in zip(outputs, Sums()(x), strict=True))


@pytest.mark.parametrize("is_same", [True, False], ids=["one size", "many sizes"])
def test_results_that_are_kept_do_not_change(call: Callable, is_same: bool) -> None:
    inputs = [_rows(5 * number if is_same else number // 3) + number for number in range(40)]
    kept = [call(x) for x in inputs]
    assert all(_is_right(outputs, x) for outputs, x in zip(kept, inputs, strict=True))
    addresses = {tensor.data_ptr() for outputs in kept for tensor in outputs}
    assert len(addresses) == 2 * len(kept)


def test_results_that_are_dropped_are_right(call: Callable) -> None:
    for number in range(40):
        x = _rows(number // 7) + number
        assert _is_right(call(x), x)


def test_results_belong_to_the_mode_of_their_call(call: Callable) -> None:
    """Tensors made in inference mode cannot be used by autograd, nor be written outside of it."""
    x = _rows(1)
    for _ in range(3):
        for is_inference in (False, True):
            with torch.inference_mode(is_inference):
                for _ in range(4):
                    assert [output.is_inference() for output in call(x)] == [is_inference] * 2


def test_results_on_several_streams_are_right(call: Callable) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    wrong = []
    for number in range(60):
        with torch.cuda.stream(streams[number // 2 % 3]):
            x = _rows(5 * number) + number
            if not _is_right(call(x), x):
                wrong.append(number)
    torch.cuda.synchronize()
    assert wrong == []


def test_results_of_threads_are_right(call: Callable) -> None:
    wrong: list[int] = []

    def run(first: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for number in range(first, first + 200):
                x = _rows(5 * number) + number
                if not _is_right(call(x), x):
                    wrong.append(number)

    call(_rows(0))  # torch.compile compiles on one thread
    threads = [threading.Thread(target=run, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_captured_results_are_the_graphs_own(call: Callable) -> None:
    """Memory that was allocated before a capture is not the graph's: torch would give it away again while the graph writes it."""
    x = _rows(0) + 1
    for _ in range(4):
        call(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = call(x)
    addresses = {output.data_ptr() for output in captured}
    others = [call(x) for _ in range(4)]
    assert not addresses & {output.data_ptr() for outputs in others for output in outputs}
    del captured
    fresh = [torch.zeros(1, 32, device="cuda") for _ in range(50)]
    x += 5
    graph.replay()
    torch.cuda.synchronize()
    assert not any(tensor.any() for tensor in fresh)


def test_large_results_take_no_memory_between_calls(call: Callable) -> None:
    x = torch.zeros(200_000, 32, device="cuda")
    for _ in range(3):
        call(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        call(x)
    assert torch.cuda.memory_allocated() == before
    x = x[:64].clone()
    for _ in range(4):
        call(x)
    torch.cuda.synchronize()
    small = torch.cuda.memory_allocated()
    for _ in range(20):
        call(x)
    assert torch.cuda.memory_allocated() == small
