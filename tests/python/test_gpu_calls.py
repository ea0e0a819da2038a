# SPDX-License-Identifier: Apache-2.0
"""How calls on a GPU run, as options say: with CUDA graphs or without, and whether they wait for their indices to be checked."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
from errors.inputs import INGOT
from gpu_targets import DEVICE, needs_gpu, needs_nvrtc
from torch import nn

pytestmark = needs_nvrtc
_CALLS = 6


def _layers() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


# Modules on the host whose engines are for a GPU, each by another way: all are called with tensors of the host.
_WAYS: dict[str, Callable[[Path, dict], Callable]] = {
    "engine": lambda folder, options: ingot.build(
        torch.export.export(_layers(), (torch.zeros(2, 8),)), device="cuda:sm_90a", **options
    ),
    "loaded engine": lambda folder, options: ingot.Engine.load(folder / "model.ingot", **options),
    "engine from bytes": lambda folder, options: ingot.Engine.from_bytes(
        (folder / "model.ingot").read_bytes(), **options
    ),
    "copied engine": lambda folder, options: copy.deepcopy(_WAYS["loaded engine"](folder, options)),
    "module": lambda folder, options: ingot.compile(
        _layers(), inputs=[torch.zeros(2, 8)], device="cuda:sm_90a", **options
    ),
    "copied module": lambda folder, options: copy.deepcopy(_WAYS["module"](folder, options)),
    "loaded module": lambda folder, options: ingot.load(folder / "model.pt2", **options),
    "opened engine": lambda folder, options: ingot.load(folder / "model.ingot", **options),
    "file": lambda folder, options: ingot.build(folder / "program.pt2", device="cuda:sm_90a", **options),
    "torch.compile": lambda folder, options: torch.compile(
        _layers(), backend="ingot", options={"device": "cuda:sm_90a", **options}
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calls")
    program = torch.export.export(_layers(), (torch.zeros(2, 8),))
    torch.export.save(program, folder / "program.pt2")
    ingot.build(program, device="cuda:sm_90a").save(folder / "model.ingot")
    ingot.save(_WAYS["module"](folder, {}), folder / "model.pt2")
    return folder


def call_all(folder: Path, options: dict) -> None:
    """In a process of its own, with the stand-in for the driver."""
    x = torch.zeros(2, 8)
    for make in _WAYS.values():
        run = make(folder, options)
        with torch.no_grad():
            for _ in range(_CALLS):
                run(x)


def _counts(said: str) -> tuple[int, int]:
    """Captures and graph launches."""
    found = re.search(r"launches, (\d+) captures, (\d+) graph launches", said)
    assert found is not None, said
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("wants", [True, False])
def test_graphs_are_used_unless_they_are_not_wanted(wants: bool, folder: Path, fake_driver: Path) -> None:
    code = f"import test_gpu_calls as t, pathlib; t.call_all(pathlib.Path({str(folder)!r}), {{'cuda_graphs': {wants}}})"
    environment = os.environ | {"LD_LIBRARY_PATH": str(fake_driver), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    captures, graph_launches = _counts(done.stderr)
    if wants:
        assert captures >= len(_WAYS)
        assert graph_launches >= len(_WAYS) * (_CALLS - 2)
    else:
        assert (captures, graph_launches) == (0, 0)


@pytest.mark.parametrize("command", ["bench", "profile", "run"])
def test_the_command_line_may_do_without_graphs(command: str, folder: Path, fake_driver: Path) -> None:
    environment = os.environ | {"LD_LIBRARY_PATH": str(fake_driver)}
    words = [INGOT, command, folder / "model.ingot", "--no-cuda-graphs"]
    words += [] if command == "run" else ["--seconds", "0.02"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert _counts(done.stderr)[0] == 0


class Taken(nn.Module):
    def forward(self, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        return x[indices] * 2


@needs_gpu
@pytest.mark.parametrize("way", ["engine", "module", "torch.compile", "loaded", "copy"])
def test_calls_tell_their_own_indices_where_they_shall(way: str, tmp_path: Path) -> None:
    x, good, bad = (torch.arange(9.0).cuda(), torch.tensor([1, 8]).cuda(), torch.tensor([1, 9]).cuda())
    asked = {"check_indices": "sync"}
    if way == "torch.compile":
        run = torch.compile(Taken(), backend="ingot", options=asked)
    elif way == "module":
        run = ingot.compile(Taken(), inputs=[x, good], **asked)
    else:
        program = torch.export.export(Taken(), (x.cpu(), good.cpu()))
        run = ingot.build(program, device=DEVICE, **asked)
        if way == "copy":
            run = copy.deepcopy(run)
        if way == "loaded":
            run.save(tmp_path / "model.ingot")
            run = ingot.Engine.load(tmp_path / "model.ingot", **asked)
    for _ in range(4):
        with pytest.raises(ingot.UserError, match="INGOT-U310"):
            run(x, bad)
        assert torch.equal(run(x, good).cpu(), Taken()(x.cpu(), good.cpu()))


@needs_gpu
def test_calls_that_are_captured_check_nothing() -> None:
    x, indices = torch.arange(9.0).cuda(), torch.tensor([1, 8]).cuda()
    program = torch.export.export(Taken(), (x.cpu(), indices.cpu()))
    engine = ingot.build(program, device=DEVICE, check_indices="sync")
    engine(x, indices)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = engine(x, indices)
    indices.fill_(3)
    graph.replay()
    assert torch.equal(captured.cpu(), torch.tensor([6.0, 6.0]))
