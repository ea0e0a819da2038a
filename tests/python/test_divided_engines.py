# SPDX-License-Identifier: Apache-2.0
"""Engines for GPUs whose CPU runs some nodes: built here, and run on a driver whose kernels compute nothing but whose copies copy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from divided_models import Layers, exported
from errors.inputs import INGOT
from gpu_targets import needs_nvrtc

pytestmark = needs_nvrtc


def _program(seed: int = 1) -> torch.export.ExportedProgram:
    torch.manual_seed(seed)
    return exported(Layers())


def _steps(engine: ingot.Engine) -> list[dict]:
    return engine.inspect()["main"]["steps"]


def _run(driver: Path, *command: str | Path, cpu: str = "") -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, LD_LIBRARY_PATH=str(driver), FAKE_GPU="90")
    return subprocess.run(
        [str(INGOT), *map(str, command)], env=environment, capture_output=True, text=True, check=False
    )


def test_inspect_says_what_runs_each_step() -> None:
    engine = ingot.build(_program(), device="cuda:sm_90a", backend_of={"softmax": "cpu"})
    runs = [step["runs_on"] for step in _steps(engine)]
    assert "cuda" in runs
    assert "cpu" in runs
    at = runs.index("cpu")
    assert runs[at - 1 : at + 2] == ["cuda to host", "cpu", "host to cuda"]
    spans = [step["span"] for step in _steps(engine)]
    assert spans == sorted(spans)
    assert [step["name"] for step in _steps(engine) if step["runs_on"] == "cpu"] == ["softmax"]
    assert {kernel["target"].split(":")[0] for kernel in engine.inspect()["kernels"]} == {"cpu", "cuda"}


def test_without_the_option_all_nodes_are_the_gpus() -> None:
    engine = ingot.build(_program(), device="cuda:sm_90a")
    assert {step["runs_on"] for step in _steps(engine)} == {"cuda"}


@pytest.mark.parametrize("level", [0, 3])
def test_what_the_cpu_runs_alone_is_right_beside_any_driver(
    tmp_path: Path, fake_driver: Path, level: int
) -> None:
    path = tmp_path / "divided.ingot"
    program = _program()
    ingot.build(program, device="cuda:sm_90a", backend_of={"*": "cpu"}, optimization_level=level).save(path)
    x = torch.randn(5, 32)
    np.save(tmp_path / "x.npy", x.numpy())
    done = _run(
        fake_driver, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "y.npz"
    )
    assert done.returncode == 0, done.stderr
    expected = program.module()(x)
    (result,) = np.load(tmp_path / "y.npz").values()
    torch.testing.assert_close(torch.from_numpy(result), expected)


def test_the_command_line_reports_who_runs_what(tmp_path: Path, fake_driver: Path) -> None:
    model, path = tmp_path / "model.pt2", tmp_path / "model.ingot"
    torch.export.save(_program(), model)
    options = ["--device", "cuda:sm_90a", "--cpu", "x86-64-v3", "--backend-of", "softmax=cpu"]
    done = _run(fake_driver, "build", model, "-o", path, *options)
    assert done.returncode == 0, done.stderr
    assert "1 x cpu runs softmax: backend_of names it" in done.stdout
    shown = _run(fake_driver, "inspect", path).stdout
    assert "1 x softmax [cpu]" in shown
    kernels = json.loads(_run(fake_driver, "inspect", path, "--json").stdout)["kernels"]
    assert {kernel["target"] for kernel in kernels} == {"cpu:x86-64-v3", "cuda:sm_90a"}
    timed = _run(fake_driver, "profile", path, "--shapes", "x:4x32", "--json")
    assert timed.returncode == 0, timed.stderr
    assert {"cpu", "cuda"} <= {step["runs_on"] for step in json.loads(timed.stdout)["steps"]}


def test_reports_of_modules_name_backends_and_reasons() -> None:
    report = ingot.compile(
        Layers().eval(), inputs=[torch.zeros(4, 32)], device="cuda:sm_90a", backend_of={"softmax": "cpu"}
    ).report
    nodes = {node.name: node.backend for segment in report.segments for node in segment.nodes}
    assert [text for text in nodes.values() if text] == ["cpu: backend_of names it"]


@pytest.mark.parametrize(
    "options",
    [
        {"device": "cuda:sm_90a", "backend_of": {"softmax": "gpu"}},
        {"device": "cuda:sm_90a", "backend_of": {"softmax": "fake"}},
        {"device": "cuda:sm_90a", "backend_of": "softmax"},
        {"device": "cuda:sm_90a", "backend_of": "=cpu"},
        {"device": "cuda:sm_90a", "backend_of": {"softmax": 1}},
        {"device": "cuda:sm_90a", "backend_of": {"softmaxx": "cpu"}},
        {"device": "cuda:sm_90a", "backend_of": {"softmax": "cpu", "third*": "cuda"}},
        {"backend_of": {"softmax": "cuda"}},
    ],
)
def test_wrong_choices_are_errors(options: dict) -> None:
    with pytest.raises(ingot.UserError, match="backend_of") as caught:
        ingot.build(_program(), **options)
    assert caught.value.code == "INGOT-U002"
    with pytest.raises(ingot.UserError, match="backend_of"):
        ingot.compile(Layers().eval(), inputs=[torch.zeros(4, 32)], **options)


def test_patterns_may_fit_one_of_several_engines() -> None:
    class Cut(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(torch.exp(torch.sin(x)), -1)

    compiled = ingot.compile(
        Cut(),
        inputs=[torch.zeros(4, 8)],
        device="cuda:sm_90a",
        torch_executed_ops=["aten.exp.default"],
        backend_of={"softmax": "cpu"},
    )
    assert len(compiled.report.segments) == 3


def test_keys_name_both_processors_and_the_choice() -> None:
    def key(**options: object) -> str:
        return ingot.build(_program(), device="cuda:sm_90a", **options).inspect()["key"]

    plain, older = key(cpu="x86-64-v4"), key(cpu="x86-64-v3")
    assert plain != older
    assert plain != key(cpu="x86-64-v4", backend_of={"softmax": "cpu"})
    assert plain == key(cpu="x86-64-v4")


def test_what_is_named_stays_a_node_of_its_own() -> None:
    """Unnamed, the softmax becomes a part of attention, and batch norm one of the convolution."""

    class Composed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = torch.nn.Conv2d(4, 8, 3)
            self.norm = torch.nn.BatchNorm2d(8)

        def forward(self, x: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.norm(self.convolution(x)), torch.softmax(q @ q.transpose(-1, -2) / 8, -1) @ q

    program = torch.export.export(Composed().eval(), (torch.zeros(1, 4, 8, 8), torch.zeros(2, 4, 16, 64)))
    engine = ingot.build(program, device="cuda:sm_90a", backend_of={"softmax": "cpu", "batch_norm": "cpu"})
    runs = [step["runs_on"] for step in _steps(engine)]
    assert runs.count("cpu") == 2
    assert "cuda" in runs
