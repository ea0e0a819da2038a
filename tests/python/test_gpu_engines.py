# SPDX-License-Identifier: Apache-2.0
"""Engines for GPUs on machines without one: built, checked, rejected without a driver, and run on a driver that computes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT
from gpu_targets import HAS_GPU, needs_gpu, needs_nvrtc

pytestmark = needs_nvrtc


class Mixed(torch.nn.Module):
    """Kernel templates, generic kernels, results of init, and a state."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(8, 16, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(16)
        self.linear = torch.nn.Linear(16, 24)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        x = torch.relu(self.norm(self.convolution(x))).mean((2, 3))
        return torch.softmax(self.linear(x), -1)


@pytest.fixture(scope="module")
def engine_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gpu") / "mixed.ingot"
    model = Mixed().eval().half()
    batch = torch.export.Dim("batch", min=1, max=16)
    program = torch.export.export(model, (torch.zeros(4, 8, 9, 9).half(),), dynamic_shapes=({0: batch},))
    ingot.build(program, device="cuda:sm_90a").save(path)
    return path


def _run(*command: str | Path, driver: Path | None = None, gpu: int = 90) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | (
        {"LD_LIBRARY_PATH": str(driver), "FAKE_GPU": str(gpu)} if driver else {}
    )
    return subprocess.run([INGOT, *command], capture_output=True, text=True, env=environment, check=False)


def test_files_say_what_they_are_for(engine_file: Path) -> None:
    assert _run("verify", engine_file).returncode == 0
    inspected = json.loads(_run("inspect", "--json", engine_file).stdout)
    assert inspected["target"].startswith("cuda:sm_90a")
    assert inspected["weights_form"] == "original"  # init runs where the engine does
    assert inspected["main"]["arena_bytes"] > 0
    assert {step["backend"] for step in inspected["main"]["steps"] if step["kind"] == "kernel"} == {"cuda"}


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_machines_without_a_gpu_say_so(engine_file: Path) -> None:
    done = _run("run", engine_file, "--shapes", "x:2x8x9x9")
    assert done.returncode == 1
    assert "INGOT-D402" in done.stderr
    with pytest.raises(ingot.DeviceError, match="there is no GPU that Ingot can use"):
        ingot.Engine.load(engine_file)


@pytest.mark.parametrize(
    "device",
    [
        "cuda:compute_75",
        "cuda:compute_90a",
        "cuda:compute_",
        "cuda:sm_70",
        "cuda:x86-64-v3",
        "cuda:sm_90b!",
        "gpu",
        "cpu:sm_90a",
    ],
)
def test_devices_that_are_none_are_refused(device: str) -> None:
    with pytest.raises(ingot.UserError):
        ingot.compile(torch.nn.ReLU(), inputs=[torch.zeros(2)], device=device)


def test_what_no_template_computes_stays_in_torch() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU()).eval()
    for dtype, in_torch in ((torch.float32, 0), (torch.float64, 1)):
        x = torch.zeros(256, 1024, dtype=dtype)
        report = ingot.compile(model.to(dtype), inputs=[x], device="cuda:sm_90a").report
        assert len([segment for segment in report.segments if segment.backend == "torch"]) == in_torch


# Which GPUs run what is built for an architecture, and whether their driver has to compile it first.
_RUNS = {
    "sm_80": {
        80: "cubin",
        86: "",
        89: "",
        90: "ptx",
        100: "ptx",
        120: "",
    },  # up to 163 KB of shared memory per block
    "sm_86": {80: "", 86: "cubin", 89: "cubin", 90: "ptx", 120: "ptx"},
    "sm_90": {80: "", 90: "cubin", 100: "ptx", 120: ""},
    "sm_90a": {80: "", 90: "cubin", 100: "", 120: ""},
    "compute_80": {80: "ptx", 86: "ptx", 90: "ptx", 120: "ptx"},
    "compute_90": {89: "", 90: "ptx", 100: "ptx", 120: "ptx"},
    "sm_120": {90: "", 120: "cubin", 121: "cubin"},
}


@pytest.mark.parametrize("built", _RUNS)
def test_later_gpus_run_ptx(built: str, tmp_path: Path, fake_driver: Path) -> None:
    program = torch.export.export(Mixed().eval().half(), (torch.zeros(4, 8, 9, 9).half(),))
    ingot.build(program, device=f"cuda:{built}").save(tmp_path / "model.ingot")
    for gpu, expected in _RUNS[built].items():
        done = _run("run", tmp_path / "model.ingot", driver=fake_driver, gpu=gpu)
        if not expected:
            assert done.returncode == 1
            assert f"built for GPUs with {built}" in done.stderr, "both sides are named"
            assert f"this one has sm_{gpu}" in done.stderr
            continue
        assert done.returncode == 0, (gpu, done.stderr)
        compiled = int(re.search(r"(\d+) modules of PTX", done.stderr)[1])
        assert (compiled > 0) == (expected == "ptx"), gpu


class Recurrent(torch.nn.Module):
    """A layer that runs on the host, between kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.LSTM(8, 96, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(torch.relu(self.layer(x * 2)[0]))[0]


def test_whole_builds_run_routines_on_the_host(tmp_path: Path, fake_driver: Path) -> None:
    program = torch.export.export(Recurrent().eval(), (torch.zeros(2, 5, 8),))
    ingot.build(program, device="cuda:sm_90a").save(tmp_path / "model.ingot")
    steps = json.loads(_run("inspect", "--json", tmp_path / "model.ingot").stdout)["main"]["steps"]
    kinds = [step["kind"] for step in steps]
    assert kinds.count("routine") == 1
    assert kinds.count("copy") >= 2, "to the host and back"
    assert kinds[-1] == "kernel", "the sort has one"
    done = _run("bench", tmp_path / "model.ingot", "--warmup", "3", "--seconds", "0.05", driver=fake_driver)
    assert done.returncode == 0, done.stderr
    assert "0 allocations left" in done.stderr


def test_modules_leave_routines_of_the_host_to_torch() -> None:
    report = ingot.compile(Recurrent().eval(), inputs=[torch.zeros(2, 5, 8)], device="cuda:sm_90a").report
    assert ["lstm" in row.op for row in report.fallbacks] == [True]
    assert "runs on the host" in report.fallbacks[0].reason


def test_builds_are_equal_byte_for_byte(engine_file: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "first.ingot", tmp_path / "second.ingot"]
    torch.export.save(torch.export.export(Mixed().eval(), (torch.zeros(4, 8, 9, 9),)), tmp_path / "model.pt2")
    for path in paths:
        done = _run("build", tmp_path / "model.pt2", "-o", path, "--device", "cuda:sm_80")
        assert done.returncode == 0, done.stderr
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_shape_becomes_a_graph_at_its_second_use(engine_file: Path, fake_driver: Path) -> None:
    done = _run(
        "bench",
        engine_file,
        "--shapes",
        "x:3x8x9x9",
        "--warmup",
        "5",
        "--seconds",
        "0.05",
        driver=fake_driver,
    )
    assert done.returncode == 0, done.stderr
    asked = re.search(
        r"fake GPU: (\d+) launches, (\d+) captures, (\d+) graph launches, (-?\d+) allocations left",
        done.stderr,
    )
    assert asked is not None, done.stderr
    launches, captures, graph_launches, left = map(int, asked.groups())
    assert 2 <= launches <= 60  # of init, and of the first run
    assert captures <= 8  # callers' memory may move between a few places
    assert captures == 0 or graph_launches > 0
    assert left == 0


def test_results_come_back_to_the_host(engine_file: Path, fake_driver: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 8, 9, 9), np.float16))
    done = _run("run", engine_file, "-i", tmp_path / "x.npy", "-o", tmp_path / "y.npy", driver=fake_driver)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "y.npy").shape == (2, 24)  # nothing computed them: zeros


def test_tactics_are_timed_where_there_is_the_gpu(fake_driver: Path, tmp_path: Path) -> None:
    model, tactics = tmp_path / "model.pt2", tmp_path / "tactics.txt"
    torch.export.save(torch.export.export(Mixed().eval().half(), (torch.zeros(4, 8, 9, 9).half(),)), model)
    options = ["--device", "cuda:sm_90a", "--optimization-level", "5", "--timing-cache-path", tactics]
    done = _run("build", model, "-o", tmp_path / "timed.ingot", *options, "--json", driver=fake_driver)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tuning"]["timed"] > 0
    found = [line.split("\t") for line in tactics.read_text().splitlines()[1:]]
    assert {row[0] for row in found} == {"fake GPU"}
    assert any("convolution" in row[4] for row in found)
    if not HAS_GPU:
        done = _run("build", model, "-o", tmp_path / "predicted.ingot", *options, "--json")
        assert "cannot run the engine" in json.loads(done.stdout)["tuning"]["note"]


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
@pytest.mark.parametrize("gpu", [0, 1])
def test_graphs_on_a_gpu_are_for_that_gpu(monkeypatch: pytest.MonkeyPatch, gpu: int) -> None:
    """What the graph says of its tensors decides: no GPU is needed to ask."""
    from ingot import devices
    from ingot.capture import Input as Given
    from ingot.kinds import InputRole
    from ingot.settings import Settings
    from torch._subclasses.fake_tensor import FakeTensorMode

    monkeypatch.setattr(devices, "architecture", lambda number: "sm_90a" if number == gpu else "")
    graph = torch.fx.Graph()
    near, other = f"cuda:{gpu}", f"cuda:{1 - gpu}"
    with FakeTensorMode():
        x, row = graph.placeholder("x"), graph.call_function(torch.ops.aten.arange.default, (3,))
        x.meta["val"], row.meta["val"] = torch.empty(3, device=near), torch.empty(3)
        moved = graph.call_function(torch.ops.aten._to_copy.default, (row,), {"device": near})
        far = graph.call_function(torch.ops.aten._to_copy.default, (row,), {"device": other})
        back = graph.call_function(torch.ops.aten._to_copy.default, (far,), {"device": near})
        moved.meta["val"], far.meta["val"] = torch.empty(3, device=near), torch.empty(3, device=other)
        back.meta["val"] = torch.empty(3, device=near)
    graph.output((moved, far, back))
    module, inputs = torch.fx.GraphModule(torch.nn.Module(), graph), [Given(InputRole.USER, "x")]
    own = devices.settings_for(module, inputs, Settings.parse({}))
    assert (own.compiler["device"], own.compiler["gpu"]) == ("cuda:sm_90a", str(gpu))
    assert set(devices.refused(module, inputs, own)) == {row, far, back}
    named = devices.settings_for(module, inputs, Settings.parse({"device": "cuda:sm_90"}))
    assert (named.compiler["device"], named.compiler["gpu"]) == ("cuda:sm_90", str(gpu))
    host = Settings.parse({"backend": "cpu"})
    assert devices.settings_for(module, inputs, host) is host
    assert set(devices.refused(module, inputs, host)) == {moved, far, back}
    # Engines need a later GPU: torch runs what is there.
    monkeypatch.setattr(devices, "architecture", lambda number: "")
    old = devices.settings_for(module, inputs, Settings.parse({}))
    assert "device" not in old.compiler
    assert set(devices.refused(module, inputs, old)) == {moved, far, back}


@needs_gpu
class TestModelsOnTheGpu:
    def test_torch_compile(self) -> None:
        model = Mixed().eval().half().cuda()
        x = torch.randn(4, 8, 9, 9).half().cuda()
        compiled = torch.compile(model, backend="ingot")
        with torch.no_grad():
            expected, got = model(x), compiled(x)
            assert got.device == expected.device
            torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-3)
            model.linear.weight.mul_(-2)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-2, atol=1e-3)
        assert not ingot.report(compiled).fallbacks

    def test_ahead_of_time(self) -> None:
        model = Mixed().eval().half().cuda()
        x = torch.randn(4, 8, 9, 9).half().cuda()
        with torch.no_grad():
            expected = model(x)
            compiled = ingot.compile(model, inputs=[x])
            torch.testing.assert_close(compiled(x), expected, rtol=1e-2, atol=1e-3)
            sized = ingot.compile(model, inputs=[ingot.Input((4, 8, 9, 9), dtype=torch.float16)])
            torch.testing.assert_close(sized(x), expected, rtol=1e-2, atol=1e-3)

    def test_parts_that_torch_runs(self) -> None:
        def mixed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            ordered, _ = torch.sort(torch.relu(x) + 1)  # a routine of the host
            row = torch.arange(16, device=x.device) * 2 + 1  # a part without inputs
            return (ordered * 2).cpu(), ordered @ ordered.t(), row

        x = torch.randn(16, 16, device="cuda")
        for got, expected in zip(torch.compile(mixed, backend="ingot")(x), mixed(x), strict=True):
            assert got.device == expected.device
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)

    def test_moves_between_devices(self) -> None:
        x = torch.randn(8)
        there = torch.compile(lambda x: x.cuda() * 2, backend="ingot")(x)
        assert there.is_cuda
        back = torch.compile(lambda x: (x + 1).cpu() * 3, backend="ingot")(there)
        assert not back.is_cuda
        torch.testing.assert_close(back, (x * 2 + 1) * 3)
