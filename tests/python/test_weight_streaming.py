# SPDX-License-Identifier: Apache-2.0
"""Weights that do not all stay on the GPU: on the host, on a driver that computes nothing, and on a GPU."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from errors.inputs import INGOT
from gpu_targets import needs_gpu, needs_nvrtc

_BUDGETS = ("100%", "75%", "50%", "25%", 0)


class Layers(torch.nn.Module):
    """Twelve weights of the same size, of which the first is read again at the end, and a table of which few rows are read."""

    def __init__(self, width: int = 256, layers: int = 12) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(512, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids)
        for layer in self.layers:
            x = self.norm(x + torch.relu(layer(x)))
        return self.layers[0](x)


def _program(dtype: torch.dtype = torch.float16) -> torch.export.ExportedProgram:
    torch.manual_seed(1)
    return torch.export.export(Layers().eval().to(dtype), (torch.arange(6).reshape(2, 3),))


def test_on_the_host_it_has_nothing_to_do(caplog: pytest.LogCaptureFixture) -> None:
    model = Layers().eval()
    ids = torch.arange(6).reshape(2, 3)
    compiled = ingot.compile(model, inputs=[ids], enable_weight_streaming=True)
    with torch.no_grad(), ingot.runtime.weight_streaming(compiled) as weights:
        assert weights.total_device_budget == weights.device_budget == 0
        weights.device_budget = int(weights.total_device_budget * 0.5)
        weights.device_budget = "25%"
        assert weights.get_automatic_weight_streaming_budget() == 0
        torch.testing.assert_close(compiled(ids), model(ids), rtol=1e-4, atol=1e-5)
    assert "no weights of the module are on a GPU" in caplog.text


@pytest.mark.parametrize("budget", ["half", "-5", "120%", -1, 0.5, True, None])
def test_what_is_no_budget_is_refused(budget: object) -> None:
    compiled = ingot.compile(torch.nn.Linear(4, 4).eval(), inputs=[torch.zeros(2, 4)])
    with ingot.runtime.weight_streaming(compiled) as weights, pytest.raises(ingot.UserError) as caught:
        weights.device_budget = budget
    assert caught.value.code == "INGOT-U336"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streaming") / "layers.ingot"
    ingot.build(_program(), device="cuda:sm_90a").save(path)
    return path


@needs_nvrtc
class TestOnADriverThatComputesNothing:
    def _bench(self, engine: Path, driver: Path, *options: str) -> subprocess.CompletedProcess[str]:
        command = [INGOT, "bench", engine, "--warmup", "4", "--seconds", "0.02", *options]
        environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "INGOT_LOG": "info"}
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    @pytest.mark.parametrize("budget", ["all", "75%", "50%", "400KB", "0"])
    def test_the_command_line_takes_a_budget(self, engine: Path, fake_driver: Path, budget: str) -> None:
        done = self._bench(engine, fake_driver, "--weight-budget", budget)
        assert done.returncode == 0, done.stderr
        assert "0 allocations left" in done.stderr
        copies = int(re.search(r"(\d+) copies from pinned memory", done.stderr)[1])
        captures, replays = map(int, re.search(r"(\d+) captures, (\d+) graph launches", done.stderr).groups())
        assert (copies > 0) == (budget != "all"), done.stderr
        assert captures == 0 or replays > captures, "copies are captured with the kernels"

    def test_what_is_no_budget_is_told(self, engine: Path, fake_driver: Path) -> None:
        done = self._bench(engine, fake_driver, "--weight-budget", "much")
        assert done.returncode == 1
        assert "INGOT-U336" in done.stderr


@needs_gpu
class TestOnAGpu:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_results_do_not_change(self, dtype: torch.dtype) -> None:
        engine = ingot.build(_program(dtype), device=f"cuda:{ingot.devices.architecture()}")
        ids = torch.arange(6).reshape(2, 3).cuda()
        expected = engine(ids)
        with ingot.runtime.weight_streaming(engine) as weights:
            total = weights.total_device_budget
            for budget in _BUDGETS:
                weights.device_budget = budget
                for _ in range(4):  # enqueued, captured, replayed
                    assert torch.equal(engine(ids), expected), budget
                assert weights.device_budget <= max(total, weights.minimum_device_budget)
        assert torch.equal(engine(ids), expected)

    def test_compiled_modules_and_graphs_of_the_caller(self) -> None:
        model = Layers().eval().half().cuda()
        ids = torch.arange(6).reshape(2, 3).cuda()
        with torch.no_grad():
            compiled = torch.compile(model, backend="ingot")
            expected = compiled(ids)
            with ingot.runtime.weight_streaming(compiled) as weights:
                weights.device_budget = weights.total_device_budget // 2
                assert torch.equal(compiled(ids), expected)
                with ingot.runtime.enable_cudagraphs(compiled) as graphs:
                    for _ in range(4):
                        assert torch.equal(graphs(ids), expected)
                    assert graphs.captured == 1, graphs.reasons

    def test_memory_of_the_gpu_is_given_back(self, tmp_path: Path) -> None:
        model = Layers(1024, 24).eval().half()
        program = torch.export.export(model, (torch.zeros(2, 3, dtype=torch.int64),))
        ingot.build(program, device=f"cuda:{ingot.devices.architecture()}").save(tmp_path / "layers.ingot")
        ids = torch.arange(6).reshape(2, 3).cuda()
        used = {}
        for budget in ("all", "25%"):
            torch.cuda.synchronize()
            before = torch.cuda.mem_get_info()[0]
            engine = ingot.Engine.load(tmp_path / "layers.ingot", weight_budget=budget)
            engine(ids)
            torch.cuda.synchronize()
            used[budget] = before - torch.cuda.mem_get_info()[0]
            del engine
        assert used["25%"] < used["all"] / 2, used
