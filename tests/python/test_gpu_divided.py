# SPDX-License-Identifier: Apache-2.0
"""Engines for GPUs whose CPU runs some nodes, on a GPU: streams, threads, captures, forks, and callers that have no torch.
Skipped where there is no GPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from divided_models import Layers, exported
from errors.inputs import INGOT
from gpu_targets import DEVICE, needs_gpu, wrong_turns

pytestmark = needs_gpu
_SIZES = (1, 4, 33, 64)
_NO_CAPTURE, _FORKED = "INGOT-D404", "INGOT-D407"


class Stateless(Layers):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.softmax(self.first(x), -1))


def _pair(kind: type[Layers]) -> tuple[torch.nn.Module, ingot.Engine]:
    torch.manual_seed(1)
    model = kind()
    engine = ingot.build(exported(model), device=DEVICE, backend_of={"softmax": "cpu"})
    assert {step["runs_on"] for step in engine.inspect()["main"]["steps"]} >= {"cuda", "cpu"}
    return model.cuda(), engine


def _close(result: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_states_and_sizes_follow_torch() -> None:
    model, engine = _pair(Layers)
    for rows in (*_SIZES, *_SIZES):
        x = torch.randn(rows, 32, device="cuda")
        with torch.no_grad():
            _close(engine(x), model(x))


def test_inputs_that_the_caller_s_stream_still_makes() -> None:
    model, engine = _pair(Stateless)
    stream = torch.cuda.Stream()
    slow = torch.randn(4096, 4096, device="cuda")
    for rows in _SIZES:
        final = torch.randn(rows, 32, device="cuda")
        x = torch.zeros(rows, 32, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(4):
                slow = slow @ slow / 64
            x.copy_(final)
            twice = engine(x) * 2  # what follows on the stream sees the result
            x.zero_()  # and the engine has read its input before
        stream.synchronize()
        with torch.no_grad():
            _close(twice, model(final) * 2)


def test_threads_on_streams_of_their_own_give_the_same_bits() -> None:
    _, engine = _pair(Stateless)
    inputs = [torch.randn(rows, 32, device="cuda") for rows in _SIZES]
    assert wrong_turns(engine, inputs, 100) == []


def test_captures_are_refused_and_harm_nothing() -> None:
    model, engine = _pair(Stateless)
    x = torch.randn(4, 32, device="cuda")
    engine(x)
    torch.cuda.synchronize()
    with pytest.raises(ingot.errors.DeviceError, match=_NO_CAPTURE), torch.cuda.graph(torch.cuda.CUDAGraph()):
        engine(x)
    torch.cuda.synchronize()
    with torch.no_grad():
        _close(engine(x), model(x))


def test_children_get_one_clear_error() -> None:
    model, engine = _pair(Stateless)
    x = torch.randn(4, 32, device="cuda")
    engine(x)
    torch.cuda.synchronize()
    host = x.cpu()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            engine(host)
            said = "no error"
        except BaseException as error:
            said = str(error)
        os.write(writer, said.encode()[:1000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    assert _FORKED in said
    with torch.no_grad():
        _close(engine(x), model(x))


def test_modules_take_tensors_of_the_gpu() -> None:
    torch.manual_seed(2)
    model = Stateless().eval().cuda()
    x = torch.randn(8, 32, device="cuda")
    compiled = ingot.compile(model, inputs=[x], device="cuda", backend_of={"softmax": "cpu"})
    with torch.no_grad():
        _close(compiled(x), model(x))
    later = torch.compile(model, backend="ingot", options={"backend_of": {"softmax": "cpu"}})
    with torch.no_grad():
        _close(later(x), model(x))


def test_the_command_line_runs_them(tmp_path: Path) -> None:
    model, engine = _pair(Stateless)
    path = tmp_path / "divided.ingot"
    engine.save(path)
    x = torch.randn(5, 32)
    np.save(tmp_path / "x.npy", x.numpy())
    command = [INGOT, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "y.npz"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (result,) = np.load(tmp_path / "y.npz").values()
    with torch.no_grad():
        _close(torch.from_numpy(result), model.cpu()(x))
