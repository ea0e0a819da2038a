# SPDX-License-Identifier: Apache-2.0
"""Which GPU an engine is on: on a driver with several that compute nothing, and on real ones where there are two."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from errors.inputs import INGOT
from gpu_targets import needs_nvrtc
from ingot import devices, gpus
from ingot.settings import Settings

needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs")

# Run by a process with the fake driver: what calls leave behind on each GPU, and in the calling thread.
SCRIPT = """
import copy, ctypes, gc, sys, threading
import numpy as np
import ingot

driver = ctypes.CDLL("libcuda.so.1")
x = np.ones((4, 8), np.float32)

def current():
    context = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(context))
    return context.value

engines = [ingot.Engine.load(sys.argv[1], device=gpu) for gpu in ("cuda:0", "cuda:1", 1)]
assert [engine.device for engine in engines] == ["cuda:0", "cuda:1", "cuda:1"]
moved = engines[0].to("cuda:1")
assert moved.device == "cuda:1" and engines[1].to(1) is engines[1]
for engine in (*engines, moved, copy.deepcopy(moved)):
    for _ in range(3):
        engine(x)
moved.refit({name: np.ones((8, 8) if name == "weight" else (8,), np.float32) for name in moved.weights})
moved(x)
assert current() is None  # a thread that had no GPU has none
contexts = []
for gpu in (0, 1):
    contexts.append(ctypes.c_void_p())
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(contexts[-1]), gpu)
driver.cuCtxPushCurrent_v2(contexts[0])
for engine in engines:
    engine(x)
    assert current() == contexts[0].value

failures = []
def calls(engine):
    try:
        for _ in range(20):
            engine(x)
    except Exception as error:
        failures.append(error)
threads = [threading.Thread(target=calls, args=(engine,)) for engine in engines for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures and current() == contexts[0].value

del engines, moved, engine, threads
gc.collect()
assert current() == contexts[0].value
driver.cuCtxPopCurrent_v2(ctypes.byref(contexts[0]))
"""


@pytest.fixture(scope="module")
def engine_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("choice") / "linear.ingot"
    program = torch.export.export(torch.nn.Linear(8, 8).eval(), (torch.zeros(4, 8),))
    ingot.build(program, device="cuda:sm_90a", optimization_level=1, verify_kernels=False).save(path)
    return path


def _with_gpus(count: int, driver: Path, *command: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver), "FAKE_GPUS": str(count)}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, check=False
    )


@needs_nvrtc
def test_engines_of_two_gpus(engine_file: Path, fake_driver: Path) -> None:
    done = _with_gpus(2, fake_driver, sys.executable, "-c", SCRIPT, engine_file)
    assert done.returncode == 0, done.stderr
    assert "0 calls in a wrong context, 0 contexts left current" in done.stderr
    assert " 0 allocations left" in done.stderr
    launches = dict(re.findall(r"fake GPU (\d): (\d+) launches", done.stderr))
    assert all(int(launches[gpu]) > 40 for gpu in "01"), done.stderr


@needs_nvrtc
def test_the_command_line_chooses(engine_file: Path, fake_driver: Path) -> None:
    for gpu in (0, 2):
        done = _with_gpus(3, fake_driver, INGOT, "run", engine_file, "--gpu", gpu)
        assert done.returncode == 0, done.stderr
        used = [int(count) > 0 for count in re.findall(r"fake GPU \d: (\d+) launches", done.stderr)]
        assert used == [number == gpu for number in range(3)], done.stderr


@needs_nvrtc
@pytest.mark.parametrize(("count", "known"), [(1, "the driver reports one"), (2, "GPUs 0 to 1")])
def test_gpus_that_are_not_there(engine_file: Path, fake_driver: Path, count: int, known: str) -> None:
    for number in (count, 64, 2147483647):
        done = _with_gpus(count, fake_driver, INGOT, "run", engine_file, "--gpu", number)
        assert done.returncode == 1
        assert "INGOT-D402" in done.stderr
        assert f"there is no GPU {number}" in done.stderr
        assert known in done.stderr
    assert _with_gpus(count, fake_driver, INGOT, "run", engine_file, "--gpu", "-1").returncode == 2


@needs_nvrtc
def test_a_rank_has_the_gpu_of_its_number(engine_file: Path, fake_driver: Path) -> None:
    done = _with_gpus(2, fake_driver, INGOT, "run", engine_file, "--ranks", "2")
    assert done.returncode == 0, done.stderr
    summaries = re.findall(r"fake GPU 0: (\d+) launches\s+fake GPU 1: (\d+) launches", done.stderr)
    used = sorted((int(first) > 0, int(second) > 0) for first, second in summaries)
    assert used[-2:] == [(False, True), (True, False)], done.stderr


def test_words_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [gpus.number(device) for device in (3, "cuda:2", torch.device("cuda", 1))] == [3, 2, 1]
    for device in ("cpu", "cuda:", "cuda:-1", -1, "gpu", "cuda:sm_90", True):
        with pytest.raises(ingot.UserError, match="device is a GPU") as caught:
            gpus.number(device)
        assert caught.value.code == "INGOT-U002"
    monkeypatch.setattr(devices, "architecture", lambda gpu: {1: "sm_90a"}.get(gpu, ""))
    for device in ("cuda:1", torch.device("cuda", 1)):
        assert Settings.parse({"device": device}).compiler == {
            "gpu": "1", "device": "cuda:sm_90a", "verify_kernels": "true"
        }  # fmt: skip
    assert Settings.parse({"device": torch.device("cpu")}).compiler["device"] == "cpu"
    assert "gpu" not in Settings.parse({"device": "cuda:sm_90a"}).compiler


def test_engines_of_the_host_have_no_gpu() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(2),))
    engine = ingot.build(program)
    assert engine.device == "cpu"
    with pytest.raises(ingot.UserError, match="no GPU"):
        engine.to("cuda:0")


@needs_two
def test_modules_are_where_their_model_is() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).eval()
    x = torch.randn(4, 64)
    with torch.no_grad():
        for gpu in (1, 0):
            on_gpu = copy.deepcopy(model).to(f"cuda:{gpu}")
            given = x.to(f"cuda:{gpu}")
            for compiled in (
                torch.compile(on_gpu, backend="ingot"),
                ingot.compile(on_gpu, inputs=[given]),
                ingot.compile(model, inputs=[x], device=f"cuda:{gpu}"),
            ):
                for current in (0, 1):
                    torch.cuda.set_device(current)
                    y = compiled(given)
                    assert torch.cuda.current_device() == current
                    assert y.device == given.device
                    torch.testing.assert_close(y, on_gpu(given), rtol=1e-4, atol=1e-5)
    torch.cuda.set_device(0)


@needs_two
def test_tensors_of_another_gpu_are_refused() -> None:
    program = torch.export.export(torch.nn.Linear(8, 8).eval(), (torch.zeros(4, 8),))
    engine = ingot.build(program, device="cuda:1")
    assert engine.device == "cuda:1"
    with pytest.raises(ingot.UserError, match=r"cuda:0.*cuda:1") as caught:
        engine(torch.zeros(4, 8, device="cuda:0"))
    assert caught.value.code == "INGOT-U319"
    first = engine.to("cuda:0")
    x = torch.randn(4, 8)
    torch.testing.assert_close(first(x.to("cuda:0")).cpu(), engine(x.to("cuda:1")).cpu(), rtol=0, atol=0)
    assert first(x).device == torch.device("cpu")
