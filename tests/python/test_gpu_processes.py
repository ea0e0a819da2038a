# SPDX-License-Identifier: Apache-2.0
"""Engines on a GPU in forked children, and after the GPU has failed: one clear error for each use, and processes end as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ingot
import pytest
import torch
from gpu_targets import needs_nvrtc
from test_gpu_engines import Mixed

pytestmark = needs_nvrtc
_PROGRAM = Path(__file__).with_name("gpu_processes.py")
_USES = 6


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("processes") / "mixed.ingot"
    batch = torch.export.Dim("batch", min=1, max=16)
    example = (torch.zeros(4, 8, 9, 9).half(),)
    program = torch.export.export(Mixed().eval().half(), example, dynamic_shapes=({0: batch},))
    ingot.build(program, device="cuda:sm_90a").save(path)
    return path


def _run(case: str, engine: Path, driver: Path, **variables: str) -> dict[str, list[str]]:
    """What the program prints, by the first word of each line."""
    environment = os.environ | {"LD_LIBRARY_PATH": str(driver)} | variables
    command = [sys.executable, _PROGRAM, case, engine]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def test_children_are_told_that_the_driver_is_their_parents(engine: Path, fake_driver: Path) -> None:
    said = _run("in_a_child", engine, fake_driver)
    assert said["child"] == ["INGOT-D407"] * _USES
    assert said["status"] == ["0"], "the child ends without a crash"
    assert said["parent"] == ["none"] * _USES, "the parent goes on"


def test_children_may_be_the_first_to_use_a_gpu(engine: Path, fake_driver: Path) -> None:
    said = _run("before_the_first_use", engine, fake_driver)
    assert said == {"child": ["none"] * _USES, "status": ["0"], "parent": ["none"] * _USES}


def test_engines_whose_init_fails_are_not_loaded(engine: Path, fake_driver: Path) -> None:
    said = _run("after_a_failure_in_init", engine, fake_driver, FAKE_FAILS_AFTER="1")
    assert said["loads"] == ["INGOT-D406"] * 3


@pytest.mark.parametrize("launches", ["4", "9", "12"])
def test_nothing_works_after_a_failure_of_the_gpu(engine: Path, fake_driver: Path, launches: str) -> None:
    """The first call, one that is captured, a graph: wherever the GPU fails, all later uses say so."""
    said = _run("after_a_failure", engine, fake_driver, FAKE_FAILS_AFTER=launches)
    worked = said["calls"].index("INGOT-D406")
    assert said["calls"] == ["none"] * worked + ["INGOT-D406"] * (20 - worked)
    assert said["later"] == ["INGOT-D406"] * _USES


def test_the_error_names_what_the_driver_said(engine: Path, fake_driver: Path) -> None:
    from errors.inputs import INGOT

    environment = os.environ | {"LD_LIBRARY_PATH": str(fake_driver), "FAKE_FAILS_AFTER": "9"}
    command = [INGOT, "bench", engine, "--seconds", "0.05"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert (
        "the GPU failed (CUDA_ERROR_ILLEGAL_ADDRESS), and this process cannot use it any more" in done.stderr
    )
