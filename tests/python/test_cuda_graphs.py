# SPDX-License-Identifier: Apache-2.0
"""`ingot.runtime.enable_cudagraphs`: replays are right; calls that cannot be captured run, and say why."""

from __future__ import annotations

import copy
from pathlib import Path

import ingot
import pytest
import torch
from gpu_targets import needs_gpu
from ingot.devices import architecture
from lacking import negated


class Counts(torch.nn.Module):
    """An operator between two engines that no engine runs, and a buffer that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(32, 32)
        self.second = torch.nn.Linear(32, 32)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls += 1
        between = negated(torch.relu(self.first(x)))
        return self.second(between), self.calls + 0


def test_calls_with_host_tensors_run_and_say_why() -> None:
    graphs = ingot.runtime.enable_cudagraphs(lambda x: x + 1)
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(graphs(x), x + 1)
    assert graphs.captured == 0
    assert graphs.reasons == {"float32[3]": "tensor 0 of its arguments is on cpu"}
    graphs.reset()
    assert graphs.reasons == {}


def test_errors_of_the_module_reach_the_caller() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ingot.runtime.enable_cudagraphs(fails)(torch.ones(2))


@needs_gpu
@pytest.mark.parametrize("pre_allocated", [False, True])
def test_replays_compute_what_calls_do(pre_allocated: bool) -> None:
    model = Counts().eval().cuda()
    sized = ingot.Input(min_shape=(1, 32), opt_shape=(8, 32), max_shape=(64, 32))
    compiled = ingot.compile(copy.deepcopy(model), inputs=[sized])
    with (
        torch.no_grad(),
        ingot.runtime.enable_cudagraphs(compiled, pre_allocated_outputs=pre_allocated) as graphs,
    ):
        for rows in (8, 8, 8, 3, 64, 3, 64, 8, 64, 3):
            x = torch.randn(rows, 32, device="cuda")
            for actual, expected in zip(graphs(x), model(x), strict=True):
                torch.testing.assert_close(actual, expected)
        assert graphs.captured == 3
        assert graphs.reasons == {}
    assert graphs.captured == 0


@needs_gpu
def test_arguments_that_a_call_changes_are_changed() -> None:
    def adds(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.add_(x)
        return y * 2

    with ingot.runtime.enable_cudagraphs(adds) as graphs:
        x, y = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
        for call in range(1, 6):
            assert torch.equal(graphs(x, y).cpu(), torch.full((4,), 2.0 * call))
            assert torch.equal(y.cpu(), torch.full((4,), float(call)))
        assert graphs.captured == 1


@needs_gpu
def test_what_cannot_be_captured_runs() -> None:
    def waits(x: torch.Tensor) -> torch.Tensor:
        return x * x.sum().item()

    graphs = ingot.runtime.enable_cudagraphs(waits)
    x = torch.ones(4, device="cuda")
    for _ in range(3):
        assert torch.equal(graphs(x).cpu(), torch.full((4,), 4.0))
    assert graphs.captured == 0
    assert "the capture failed" in graphs.reasons["float32[4]"]


@needs_gpu
def test_captured_engines_keep_the_memory_that_they_use() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64))
    model = layers.eval().cuda()
    sized = ingot.Input(min_shape=(1, 64), opt_shape=(8, 64), max_shape=(4096, 64))
    compiled = ingot.compile(model, inputs=[sized])
    with torch.no_grad(), ingot.runtime.enable_cudagraphs(compiled) as graphs:
        for rows in (8, 8, 8, 4096, 4096, 8, 1000, 1000, 8, 4096):
            x = torch.randn(rows, 64, device="cuda")
            torch.testing.assert_close(graphs(x), model(x), rtol=1e-4, atol=1e-4)


@needs_gpu
@pytest.mark.parametrize("loaded", [False, True], ids=["built", "loaded"])
def test_first_calls_may_be_captured(tmp_path: Path, loaded: bool) -> None:
    """Contexts, memory and weights come while torch captures; larger inputs need more memory later."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Softmax(1), torch.nn.Linear(64, 8)).eval()
    sizes = {0: torch.export.Dim("rows", min=1, max=512)}
    program = torch.export.export(model, (torch.randn(4, 32),), dynamic_shapes=(sizes,))
    engine = ingot.build(program, device=f"cuda:{architecture()}", engine_cache_dir="off")
    if loaded:
        engine.save(str(tmp_path / "model.ingot"))
        engine = ingot.Engine.load(str(tmp_path / "model.ingot"))
    graphs, results = [], []
    inputs = [torch.randn(rows, 32, device="cuda") for rows in (3, 500)]
    for x in inputs:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            results.append(engine(x))
    for graph in graphs:
        graph.replay()
    for x, result in zip(inputs, results, strict=True):
        torch.testing.assert_close(result.cpu(), model(x.cpu()), rtol=2e-5, atol=2e-5)


@needs_gpu
def test_engines_with_steps_on_the_host_run_without_a_graph() -> None:
    class Asserts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._assert_async((x > -100).all())
            return x * 2

    program = torch.export.export(Asserts(), (torch.ones(4),))
    engine = ingot.build(program, device=f"cuda:{architecture()}")
    x = torch.ones(4, device="cuda")
    graphs = ingot.runtime.enable_cudagraphs(engine)
    for _ in range(3):
        assert torch.equal(graphs(x), x * 2)
    assert graphs.captured == 0
    assert "some of its steps run on the host" in graphs.reasons["float32[4]"]
