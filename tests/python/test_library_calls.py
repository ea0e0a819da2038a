# SPDX-License-Identifier: Apache-2.0
"""Products by cuBLASLt without a GPU: a driver that computes nothing, and a library that tells which algorithm it was given."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from errors.inputs import INGOT
from gpu_targets import needs_nvrtc
from torch import nn

_LIBRARY = Path(__file__).with_name("fake_cublaslt.cpp")

pytestmark = needs_nvrtc


class _Machine:
    """A GPU that computes nothing, with a library of some version, or without one."""

    def __init__(self, driver: Path, library: Path) -> None:
        self.driver, self.library = driver, library

    def run(
        self, *words: str | Path, version: str = "130100", library: bool = True
    ) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(self.driver),
            "INGOT_CUBLASLT": str(self.library if library else self.library.with_name("missing.so")),
            "FAKE_CUBLASLT_VERSION": version,
        }
        return subprocess.run([INGOT, *words], capture_output=True, text=True, env=environment, check=False)


@pytest.fixture(scope="module")
def machine(fake_driver: Path, tmp_path_factory: pytest.TempPathFactory) -> _Machine:
    library = tmp_path_factory.mktemp("library") / "libcublasLt.so.13"
    subprocess.run(["c++", "-std=c++20", "-shared", "-fPIC", _LIBRARY, "-o", library], check=True)
    return _Machine(fake_driver, library)


def _build(machine: _Machine, folder: Path, library: bool = True, level: str = "4", **run: str) -> Path:
    engine = folder / "model.ingot"
    done = machine.run("build", folder / "model.pt2", "-o", engine, "--device", "cuda:sm_90a", "--engine-cache-dir", "off",
                       "--optimization-level", level, "--timing-cache-path", folder / "tactics.txt", library=library, **run)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return engine


@pytest.fixture(scope="module")
def engine(machine: _Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its linear layer is the library's second choice: the tactic file says so, as people may write it."""
    folder = tmp_path_factory.mktemp("engine")
    program = torch.export.export(nn.Linear(64, 48).eval().half(), (torch.zeros(8, 64).half(),))
    torch.export.save(program, folder / "model.pt2")
    _build(machine, folder)
    tactics = folder / "tactics.txt"
    text = tactics.read_text()
    assert "linear" in text
    tactics.write_text(re.sub(r"(\t4\t)[^\t]*(\tlinear)", r"\1cuBLASLt, choice 1\2", text))
    return _build(machine, folder)


def test_inspect_names_the_tactic(machine: _Machine, engine: Path) -> None:
    inspected = json.loads(machine.run("inspect", engine, "--json").stdout)
    assert [step["kernel"] for step in inspected["main"]["steps"]] == ["linear: cuBLASLt, choice 1"]
    assert inspected["kernels"][-1]["target"] == "cuda:sm_90a+cublaslt"


def test_algorithms_that_add_up_in_place_are_left_out(machine: _Machine, engine: Path) -> None:
    done = machine.run("run", engine)
    assert done.returncode == 0, done.stderr
    assert "cublaslt: algorithm 2\n" in done.stderr


def test_another_version_takes_its_first_choice(machine: _Machine, engine: Path) -> None:
    done = machine.run("run", engine, version="120901")
    assert done.returncode == 0, done.stderr
    assert "cublaslt: algorithm 0\n" in done.stderr


def test_a_missing_or_old_library_is_told(machine: _Machine, engine: Path) -> None:
    missing = machine.run("run", engine, library=False)
    assert missing.returncode != 0
    assert "INGOT-D405" in missing.stderr
    assert "cannot be opened" in missing.stderr
    old = machine.run("run", engine, version="110800")
    assert "INGOT-D405" in old.stderr
    assert "12.0 is needed" in old.stderr


def test_builds_without_the_library_take_other_tactics(
    machine: _Machine, engine: Path, tmp_path: Path
) -> None:
    for name in ("model.pt2", "tactics.txt"):
        (tmp_path / name).write_bytes((engine.parent / name).read_bytes())
    other = _build(machine, tmp_path, library=False)
    steps = json.loads(machine.run("inspect", other, "--json").stdout)["main"]["steps"]
    assert all("cuBLASLt" not in step["kernel"] and ": " in step["kernel"] for step in steps)
    assert machine.run("run", other, library=False).returncode == 0


def test_builds_where_the_library_does_not_start_take_other_tactics(
    machine: _Machine, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CUBLASLT_FAILS", "1")
    (tmp_path / "model.pt2").write_bytes((engine.parent / "model.pt2").read_bytes())
    for level in ("4", "5"):
        other = _build(machine, tmp_path, level=level)
        steps = json.loads(machine.run("inspect", other, "--json").stdout)["main"]["steps"]
        assert all("cuBLASLt" not in step["kernel"] for step in steps)
    refused = machine.run("run", engine)
    assert refused.returncode != 0
    assert "INGOT-D405" in refused.stderr
