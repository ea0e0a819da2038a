# SPDX-License-Identifier: Apache-2.0
"""Every byte of an engine and of its results is defined: it depends neither on fresh memory nor on the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from accuracy import assert_accurate, golden
from models import MODELS
from poisoned_models import SMALL, make

ROOT = Path(__file__).resolve().parents[2]
POISON = ROOT / "build/release/lib/libingot_poison.so"
# Signalling NaNs of f32 and of f64, each in a process with another number of threads.
RUNS = (("7fa15e5e", "1"), ("fff45eed", "2"))


def build_poisoned(folder: Path, names: Sequence[str], pattern: str, threads: str) -> None:
    assert POISON.exists(), f"build {POISON} first"
    path = os.pathsep.join(
        [str(ROOT / "tests/python"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    )
    environment = {**os.environ, "PYTHONPATH": path, "LD_PRELOAD": str(POISON), "INGOT_POISON": pattern,
                   "INGOT_THREADS": threads, "OMP_NUM_THREADS": threads}  # fmt: skip
    command = [sys.executable, "-m", "poisoned_models", str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


def check_models(folder: Path, names: Sequence[str]) -> None:
    folders = []
    for pattern, threads in RUNS:
        folders.append(folder / pattern)
        folders[-1].mkdir()
        build_poisoned(folders[-1], names, pattern, threads)
    for name in names:
        first, second = ((each / f"{name}.ingot").read_bytes() for each in folders)
        differences = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
        assert not differences, f"{name}: {len(differences)} bytes differ, the first at {differences[0]}"
        results = [result for each in folders for result in torch.load(each / f"{name}.pt")]
        for result in results[1:]:
            for a, b in zip(results[0], result, strict=True):
                assert torch.equal(a, b), f"{name}: results differ from run to run"
        check_accuracy(name, results[0][0])


@torch.no_grad()
def check_accuracy(name: str, result: torch.Tensor) -> None:
    case = make(name)
    exact = golden(case.model, case.args)
    assert_accurate(result, case.model(*case.args), exact)


def test_small_models(tmp_path: Path) -> None:
    check_models(tmp_path, list(SMALL))


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_models(tmp_path: Path, name: str) -> None:
    check_models(tmp_path, [name])
