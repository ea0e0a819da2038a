# SPDX-License-Identifier: Apache-2.0
"""Convolutions by cuDNN without a GPU: a driver whose kernels compute nothing, and a library that computes what it is asked for."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from convolution_layers import CASES, Case
from gpu_targets import needs_nvrtc
from library_machine import Machine
from torch import nn

pytestmark = needs_nvrtc


class _ChannelsLast(nn.Module):
    """Everything is an input and lies as the library has it, so that nothing but the convolution is computed."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(
        self,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        residual: torch.Tensor | None = None,
    ) -> torch.Tensor:
        first = [None if value is None else value.movedim(-1, 1) for value in (x, weight, residual)]
        return self.case.apply(first[0], first[1], bias, first[2]).movedim(1, -1)


@pytest.fixture(scope="module")
def machine(fake_driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(fake_driver, "cudnn", tmp_path_factory.mktemp("library"), "fast")


def _save(folder: Path, case: Case, dtype: torch.dtype) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Writes `model.pt2`; its inputs by name, and the result."""
    torch.manual_seed(7)
    weight, bias = case.parameters()
    given = {"x": case.input().movedim(1, -1).contiguous(), "weight": weight.movedim(1, -1).contiguous()}
    model = _ChannelsLast(case)
    if bias is not None:
        given["bias"] = bias
    if case.residual:
        given["residual"] = torch.randn_like(model(**given))
    given = {name: value.to(dtype) for name, value in given.items()}
    program = torch.export.export(model, (), given)
    torch.export.save(program, folder / "model.pt2")
    exact = model(**{name: value.double() for name, value in given.items()})
    return given, exact


def _run(machine: Machine, engine: Path, given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, str]:
    words: list[str | Path] = ["run", engine]
    for name, value in given.items():
        np.save(engine.with_name(f"{name}.npy"), value.numpy())
        words += ["-i", f"{name}={engine.with_name(f'{name}.npy')}"]
    done = machine.run(*words, "-o", engine.with_name("y.npy"))
    assert done.returncode == 0, done.stderr
    return torch.from_numpy(np.load(engine.with_name("y.npy"))), done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_is_as_torch_says(machine: Machine, tmp_path: Path, case: Case) -> None:
    given, exact = _save(tmp_path, case, torch.float16)
    engine = machine.build_with(tmp_path, "convolution", "cuDNN, choice 0")
    assert [kernel for kernel in machine.kernels(engine) if kernel != "view"] == [
        "convolution: cuDNN, choice 0"
    ]
    result, log = _run(machine, engine, given)
    operations = 1 + case.bias + case.residual + bool(case.activation)
    assert f"cudnn: engine 0 of {operations} operations\n" in log
    torch.testing.assert_close(result.double(), exact, rtol=4e-3, atol=4e-3)


@pytest.fixture(scope="module")
def chosen(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, torch.Tensor]]:
    """A convolution by the library's second choice."""
    folder = tmp_path_factory.mktemp("chosen")
    given, _ = _save(folder, next(case for case in CASES if case.name == "bias"), torch.float16)
    return machine.build_with(folder, "convolution", "cuDNN, choice 1"), given


def test_inspect_names_the_library(machine: Machine, chosen: tuple[Path, dict[str, torch.Tensor]]) -> None:
    inspected = json.loads(machine.run("inspect", chosen[0], "--json").stdout)
    assert "convolution: cuDNN, choice 1" in [step.get("kernel") for step in inspected["main"]["steps"]]
    assert "cuda:sm_90a+cudnn" in [kernel["target"] for kernel in inspected["kernels"]]


def test_engines_that_do_not_suit_are_left_out(machine: Machine, chosen: tuple[Path, dict[str, torch.Tensor]]) -> None:  # fmt: skip
    """The second is not deterministic, the third has no plan, and the fourth wants more than the workspace."""
    _, log = _run(machine, *chosen)
    assert "cudnn: engine 4 of 2 operations\n" in log


def test_another_version_takes_its_first_choice(machine: Machine, chosen: tuple[Path, dict[str, torch.Tensor]]) -> None:  # fmt: skip
    done = machine.run("run", chosen[0], version=91000)
    assert done.returncode == 0, done.stderr
    assert "cudnn: engine 0 of 2 operations\n" in done.stderr


def test_plans_are_made_once_and_graphs_replay_them(machine: Machine, chosen: tuple[Path, dict[str, torch.Tensor]]) -> None:  # fmt: skip
    done = machine.run("bench", chosen[0], "--warmup", "3", "--seconds", "0.05")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("cudnn: a plan of engine 4\n") == 1, "of several contexts"
    graphs = re.search(r"(\d+) graph launches", done.stderr)
    assert graphs is not None
    assert done.stderr.count("cudnn: engine 4 of") < int(graphs[1])


def test_a_missing_old_or_failing_library_is_told(
    machine: Machine, chosen: tuple[Path, dict[str, torch.Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = machine.run("run", chosen[0], library=False)
    assert missing.returncode != 0
    assert "INGOT-D405" in missing.stderr
    assert "cuDNN cannot be opened" in missing.stderr
    assert "nvidia-cudnn-cu13" in missing.stderr
    old = machine.run("run", chosen[0], version=8907)
    assert "INGOT-D405" in old.stderr
    assert "9.0 is needed" in old.stderr
    monkeypatch.setenv("FAKE_CUDNN_FAILS", "1")
    failing = machine.run("run", chosen[0])
    assert "INGOT-D405" in failing.stderr
    assert "creation of a handle failed: CUDNN_STATUS_FAKE: it does not start" in failing.stderr


def test_builds_without_the_library_take_other_tactics(
    machine: Machine, chosen: tuple[Path, dict[str, torch.Tensor]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    for name in ("model.pt2", "tactics.txt"):
        (tmp_path / name).write_bytes((chosen[0].parent / name).read_bytes())
    other = machine.build(tmp_path, library=False)
    assert all("cuDNN" not in kernel for kernel in machine.kernels(other))
    assert machine.run("run", other, library=False).returncode == 0
    (tmp_path / "tactics.txt").unlink()
    monkeypatch.setenv("FAKE_CUDNN_FAILS", "1")
    for level in (4, 5):
        other = machine.build(tmp_path, level=level)
        assert all("cuDNN" not in kernel for kernel in machine.kernels(other))


@pytest.mark.parametrize("numerics", ["default", "strict"])
def test_other_numerics_do_not_ask_it(machine: Machine, tmp_path: Path, numerics: str) -> None:
    """It loses infinities and NaN, whatever follows the convolution."""
    _save(tmp_path, next(case for case in CASES if case.name == "bias"), torch.float16)
    for level in (4, 5):
        engine = replace(machine, numerics=numerics).build(tmp_path, level=level)
        assert all("cuDNN" not in kernel for kernel in machine.kernels(engine))
    assert "cuDNN" not in (tmp_path / "tactics.txt").read_text()


@pytest.mark.parametrize(("channels", "groups"), [(16, 16), (24, 24)])
def test_depthwise_convolutions_are_ours(machine: Machine, tmp_path: Path, channels: int, groups: int) -> None:  # fmt: skip
    program = torch.export.export(
        nn.Conv2d(channels, channels, 3, groups=groups).eval().half(),
        (torch.zeros(1, channels, 9, 9).half(),),
    )
    torch.export.save(program, tmp_path / "model.pt2")
    machine.build(tmp_path)
    assert "cuDNN" not in (tmp_path / "tactics.txt").read_text()


def test_small_sizes_are_planned_when_they_come(machine: Machine, tmp_path: Path) -> None:
    """One engine for any batch and any height."""
    torch.manual_seed(3)
    case = next(case for case in CASES if case.name == "bias")
    weight, bias = case.parameters()
    given = [value.half() for value in (case.input().movedim(1, -1), weight.movedim(1, -1), bias)]
    sizes = {0: torch.export.Dim("images", min=1, max=64), 1: torch.export.Dim("height", min=3, max=99)}
    model = _ChannelsLast(case)
    program = torch.export.export(model, tuple(value.contiguous() for value in given), dynamic_shapes=(sizes, None, None))  # fmt: skip
    torch.export.save(program, tmp_path / "model.pt2")
    engine = machine.build_with(tmp_path, "convolution", "cuDNN, choice 0")
    for images, height in ((1, 9), (5, 4), (2, 33)):
        x = torch.randn(images, height, 7, 16).half()
        result, _ = _run(machine, engine, {"x": x, "weight": given[1].contiguous(), "bias": given[2]})
        exact = model(x.double(), given[1].double(), given[2].double())
        torch.testing.assert_close(result.double(), exact, rtol=4e-3, atol=4e-3)
