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

pytestmark = pytest.mark.skipif(not os.environ.get("INGOT_NVRTC"), reason="there is no NVRTC")

_FAKE = Path(__file__).with_name("fake_cuda_driver.cpp")
_HAS_GPU = torch.cuda.is_available()


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


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    command = ["c++", "-std=c++20", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", _FAKE, "-o"]
    subprocess.run([*command, folder / "libcuda.so.1"], check=True)
    return folder


def _run(*command: str | Path, driver: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) | ({"LD_LIBRARY_PATH": str(driver)} if driver else {})
    return subprocess.run([INGOT, *command], capture_output=True, text=True, env=environment, check=False)


def test_files_say_what_they_are_for(engine_file: Path) -> None:
    assert _run("verify", engine_file).returncode == 0
    inspected = json.loads(_run("inspect", "--json", engine_file).stdout)
    assert inspected["target"].startswith("cuda:sm_90a")
    assert inspected["weights_form"] == "original"  # init runs where the engine does
    assert inspected["main"]["arena_bytes"] > 0
    assert {step["backend"] for step in inspected["main"]["steps"] if step["kind"] == "kernel"} == {"cuda"}


@pytest.mark.skipif(_HAS_GPU, reason="there is a GPU")
def test_machines_without_a_gpu_say_so(engine_file: Path) -> None:
    done = _run("run", engine_file, "--shapes", "x:2x8x9x9")
    assert done.returncode == 1
    assert "INGOT-D402" in done.stderr
    with pytest.raises(ingot.DeviceError, match="there is no GPU that Ingot can use"):
        ingot.Engine.load(engine_file)


@pytest.mark.parametrize("device", ["cuda:sm_70", "cuda:x86-64-v3", "cuda:sm_90b!", "gpu", "cpu:sm_90a"])
def test_devices_that_are_none_are_refused(device: str) -> None:
    with pytest.raises(ingot.UserError):
        ingot.compile(torch.nn.ReLU(), inputs=[torch.zeros(2)], device=device)


def test_operators_of_the_host_are_refused_by_name() -> None:
    class Sorts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sort(x)[0]

    with pytest.raises(ingot.UnsupportedError, match="sort is a routine of the host"):
        ingot.compile(Sorts(), inputs=[torch.zeros(8)], device="cuda", require_full_compilation=True)


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
