# SPDX-License-Identifier: Apache-2.0
"""Products by cuBLASLt without a GPU: a driver that computes nothing, and a library that tells which algorithm it was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from gpu_targets import needs_nvrtc
from library_machine import Machine
from torch import nn

pytestmark = needs_nvrtc


@pytest.fixture(scope="module")
def machine(fake_driver: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(fake_driver, "cublaslt", tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def engine(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its linear layer is the library's second choice."""
    folder = tmp_path_factory.mktemp("engine")
    program = torch.export.export(nn.Linear(64, 48).eval().half(), (torch.zeros(8, 64).half(),))
    torch.export.save(program, folder / "model.pt2")
    return machine.build_with(folder, "linear", "cuBLASLt, choice 1")


def test_inspect_names_the_tactic(machine: Machine, engine: Path) -> None:
    inspected = json.loads(machine.run("inspect", engine, "--json").stdout)
    assert [step["kernel"] for step in inspected["main"]["steps"]] == ["linear: cuBLASLt, choice 1"]
    assert inspected["kernels"][-1]["target"] == "cuda:sm_90a+cublaslt"


def test_algorithms_that_add_up_in_place_are_left_out(machine: Machine, engine: Path) -> None:
    done = machine.run("run", engine)
    assert done.returncode == 0, done.stderr
    assert "cublaslt: algorithm 2\n" in done.stderr


def test_another_version_takes_its_first_choice(machine: Machine, engine: Path) -> None:
    done = machine.run("run", engine, version=120901)
    assert done.returncode == 0, done.stderr
    assert "cublaslt: algorithm 0\n" in done.stderr


def test_a_missing_or_old_library_is_told(machine: Machine, engine: Path) -> None:
    missing = machine.run("run", engine, library=False)
    assert missing.returncode != 0
    assert "INGOT-D405" in missing.stderr
    assert "cannot be opened" in missing.stderr
    old = machine.run("run", engine, version=110800)
    assert "INGOT-D405" in old.stderr
    assert "12.0 is needed" in old.stderr


def test_builds_without_the_library_take_other_tactics(
    machine: Machine, engine: Path, tmp_path: Path
) -> None:
    for name in ("model.pt2", "tactics.txt"):
        (tmp_path / name).write_bytes((engine.parent / name).read_bytes())
    other = machine.build(tmp_path, library=False)
    assert all("cuBLASLt" not in kernel and ": " in kernel for kernel in machine.kernels(other))
    assert machine.run("run", other, library=False).returncode == 0


def test_versions_decide_whether_an_engine_is_found(machine: Machine, engine: Path, tmp_path: Path) -> None:
    """Where tactics are timed; below level 4 no step calls a library."""

    def is_found(level: int, **library: Any) -> bool:
        done = machine.run(
            "build", engine.parent / "model.pt2", "-o", tmp_path / "model.ingot", "--device", "cuda:sm_90a", "--json",
            "--engine-cache-dir", tmp_path / "cache", "--optimization-level", str(level), **library
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["is_from_cache"]

    while not is_found(4, version=130100):  # the timings of earlier builds decide too
        pass
    others = ({"version": 120901}, {"library": False})
    assert [is_found(4, **library) for library in others] == [False, False]
    libraries = ({"version": 130100}, *others)
    assert [is_found(4, **library) for library in libraries] == [True] * 3
    assert [is_found(3, **library) for library in libraries] == [False, True, True]


def test_builds_where_the_library_does_not_start_take_other_tactics(
    machine: Machine, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUBLASLT_FAILS", "1")
    (tmp_path / "model.pt2").write_bytes((engine.parent / "model.pt2").read_bytes())
    for level in (4, 5):
        other = machine.build(tmp_path, level=level)
        assert all("cuBLASLt" not in kernel for kernel in machine.kernels(other))
    refused = machine.run("run", engine)
    assert refused.returncode != 0
    assert "INGOT-D405" in refused.stderr
