# SPDX-License-Identifier: Apache-2.0
"""tools/test_gpu.py runs every test of GPUs, counts what came of them, and fails where one does."""

import re
import subprocess
import sys
from pathlib import Path

import test_gpu

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/test_gpu.py"
_TESTS = """
import os
import pytest

def test_passes():
    assert os.environ["INGOT_TEST_ARCHITECTURE"] == "compute_90"

@pytest.mark.skip
def test_is_skipped(): ...

def test_fails():
    assert {result}
"""


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, TOOL, "--architecture", "compute_90", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _file(folder: Path, name: str, result: bool) -> Path:
    path = folder / f"test_{name}.py"
    path.write_text(_TESTS.format(result=result))
    return path


def test_no_file_of_gpus_is_left_out() -> None:
    names = {path.name for path in test_gpu.python_files()}
    assert names >= {path.name for path in (ROOT / "tests/python").glob("test_gpu_*.py")}
    assert {"test_cuda_graphs.py", "test_weight_streaming.py"} <= names
    assert names >= set(test_gpu.ALONE)


def test_no_gtest_of_gpus_is_left_out() -> None:
    asks = re.compile(r"has_gpu\(\)|gpu\(\) == nullptr|expect_all_same")
    for path in [*(ROOT / "tests").glob("*/*_test.cpp"), *(ROOT / "tests/backends").glob("**/*_test.cpp")]:
        text = path.read_text()
        if not asks.search(text):
            continue
        program = f"ingot_test_{path.relative_to(ROOT / 'tests').parts[0]}"
        word = test_gpu.PROGRAMS[program].strip("*")
        for suite in re.findall(r"\bTEST(?:_[PF])?\((\w+),", text):
            assert word in suite, f"{path.name}: {program} runs no {suite}"


def test_counts_are_told_and_failures_fail(tmp_path: Path) -> None:
    good, bad = _file(tmp_path, "good", True), _file(tmp_path, "bad", False)
    done = _run(good)
    assert done.returncode == 0, done.stdout
    assert "2 passed, 1 skipped, 0 failed |" in done.stdout
    done = _run(good, bad)
    assert done.returncode == 1
    assert "3 passed, 2 skipped, 1 failed |" in done.stdout
    assert "def test_fails" in done.stdout, "what failed is shown"


def test_processes_that_crash_are_failures(tmp_path: Path) -> None:
    path = tmp_path / "test_crash.py"
    path.write_text("import os\ndef test_ends():\n    os._exit(0)\n")
    done = _run(path)
    assert done.returncode == 1
    assert "0 passed, 0 skipped, 1 failed |" in done.stdout
