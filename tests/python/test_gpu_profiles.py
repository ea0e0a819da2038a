# SPDX-License-Identifier: Apache-2.0
"""Times of kernels, their shares of what a GPU can do, and ranges for tools: on a driver that computes nothing, and on a GPU."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from errors.inputs import INGOT
from gpu_targets import needs_gpu, needs_nvrtc
from test_gpu_engines import Mixed

_LISTENER = Path(__file__).with_name("nvtx_listener.cpp")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profiles") / "mixed.ingot"
    program = torch.export.export(Mixed().eval().half(), (torch.zeros(4, 8, 9, 9).half(),))
    ingot.build(program, device="cuda:sm_90a").save(path)
    return path


def _run(*command: str | Path, driver: Path | None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    if driver is not None:
        environment["LD_LIBRARY_PATH"] = str(driver)
    return subprocess.run([INGOT, *command], capture_output=True, text=True, env=environment, check=False)


@needs_nvrtc
def test_profiles_have_the_device(engine: Path, fake_driver: Path) -> None:
    done = _run("profile", engine, "--seconds", "0.02", "--json", driver=fake_driver)
    assert done.returncode == 0, done.stderr
    profile = json.loads(done.stdout)
    device, kernels = profile["device"], [step for step in profile["steps"] if step["kind"] == "kernel"]
    assert device["name"] == "fake GPU"
    assert device["kernels"] == len(kernels) > 1
    assert device["bytes_per_second"] == pytest.approx(4.917e12, rel=1e-3)  # of an H200
    assert device["half_operations_per_second"] == pytest.approx(1.07e15, rel=1e-2)
    assert {step["median_ns"] for step in kernels} == {1000}, "by the driver's clock, not the host's"
    assert device["kernels_ns"] == 1000 * len(kernels)
    moved = sum(step["bytes"] for step in kernels)
    assert device["memory_share"] == pytest.approx(moved / device["bytes_per_second"] / (len(kernels) * 1e-6))
    for step in kernels:
        least = max(step["bytes"] / device["bytes_per_second"], 0)
        assert step["roof_share"] >= least / 1e-6 * 0.999


@needs_nvrtc
def test_traces_name_kernels_by_their_operators(engine: Path, fake_driver: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    done = _run("profile", engine, "--seconds", "0.02", "--trace", trace, driver=fake_driver)
    assert done.returncode == 0, done.stderr
    steps = json.loads(_run("inspect", "--json", engine, driver=None).stdout)["main"]["steps"]
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    names = [event["name"] for event in events]
    assert set(names) >= {step["name"] for step in steps if step["kind"] == "kernel"}
    assert any("linear" in name for name in names)
    assert all(event["dur"] >= 0 for event in events)


@needs_nvrtc
def test_benchmarks_say_what_the_kernels_do(engine: Path, fake_driver: Path) -> None:
    done = _run("bench", engine, "--seconds", "0.02", driver=fake_driver)
    assert done.returncode == 0, done.stderr
    assert "fake GPU: " in done.stdout
    assert "% of what its memory moves meanwhile" in done.stdout
    assert "linear" in done.stdout


@needs_nvrtc
def test_ranges_have_the_names_of_steps(engine: Path, fake_driver: Path, tmp_path: Path) -> None:
    listener = tmp_path / "listener.so"
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", _LISTENER, "-o", listener], check=True)
    steps = json.loads(_run("inspect", "--json", engine, driver=None).stdout)["main"]["steps"]
    variables = {"NVTX_INJECTION64_PATH": str(listener), "INGOT_NVTX": "1"}
    done = _run("run", engine, driver=fake_driver, **variables)
    assert done.returncode == 0, done.stderr
    seen = [line.removeprefix("nvtx: ") for line in done.stderr.splitlines() if line.startswith("nvtx: ")]
    if not seen:
        pytest.skip("built without NVTX")
    assert seen == [step["name"] for step in steps] + ["0 ranges are open"]
    assert "0 graph launches" in done.stderr, "tools see kernels, not graphs"
    quiet = _run("run", engine, driver=fake_driver, NVTX_INJECTION64_PATH=str(listener))
    assert not [
        line for line in quiet.stderr.splitlines() if line.startswith("nvtx: ") and "open" not in line
    ]


@needs_gpu
def test_times_on_a_gpu_are_its_own() -> None:
    """A product of known size: its time is plausible, and no share exceeds what is possible by much."""
    model = torch.nn.Linear(4096, 4096, bias=False).eval().half()
    x = torch.randn(4096, 4096).half().cuda()
    compiled = ingot.compile(model.cuda(), inputs=[x])
    profile = ingot.profile(compiled, x, runs=20)
    step = max(profile.steps, key=lambda step: step.microseconds)
    assert step.operations == 2 * 4096**3
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        compiled(x)
    begin.record()
    for _ in range(20):
        compiled(x)
    end.record()
    end.synchronize()
    assert step.microseconds < begin.elapsed_time(end) * 1e3 / 20 * 1.5 + 20
    assert 0.2 < step.roof_share < 1.05
