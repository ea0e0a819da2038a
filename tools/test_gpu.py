#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test of GPUs with one command, and a row of its result for docs/gpu.md.

test_gpu.py [FILE ...] [--architecture compute_90] [--state FILE] [--jobs N]: the C++ tests of kernels, templates and operators' samples
(where they are built), and all Python tests that use a GPU, each in a process of its own. Without a GPU what needs one is skipped,
and kernels are compiled. `--state`: parts that passed before, at the same commit, are not run again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import test_parts
from test_parts import BINARIES, ROOT, Part

# gtest programs, and which of their tests.
PROGRAMS = {"ingot_test_platforms": "*Gpu*", "ingot_test_backends": "*Cuda*"}
SHARDS = 8
# These measure the GPU's free memory, or take all GPUs: nothing runs beside them.
ALONE = (
    "test_gpu_runs.py",
    "test_weight_streaming.py",
    "test_gpu_ranks.py",
    "test_gpu_failing_ranks.py",
    "test_gpu_outputs.py",
)
_USES_A_GPU = re.compile(r"gpu_targets|torch\.cuda\.(is_available|device_count)")


def python_files() -> list[Path]:
    """All test files that use a GPU where there is one."""
    found = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/*_test.py")]
    return sorted(
        path for path in found if _USES_A_GPU.search(path.read_text()) and path.parent.name != "tools"
    )


def parts(files: list[Path], architecture: str) -> list[Part]:
    """Those of the given files, or all."""
    variables = {"INGOT_TEST_ARCHITECTURE": architecture} if architecture else {}
    result = [
        test_parts.of_pytest(path.name, [path], variables, path.name in ALONE)
        for path in files or python_files()
    ]
    for program, tests in {} if files else PROGRAMS.items():
        if (BINARIES / program).exists():
            result += test_parts.of_gtest(program, tests, variables, SHARDS)
        else:
            print(f"{program} is not built (make tests)")
    return result


def device() -> str:
    """What runs them: "NVIDIA H200"."""
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU', 'torch', torch.__version__)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="All tests of GPUs.")
    parser.add_argument("files", nargs="*", type=Path, help="test files of Python; all tests by default")
    parser.add_argument(
        "--architecture", default="", help="what kernels are built for: compute_90; the GPU's own by default"
    )
    test_parts.add_options(parser)
    options = parser.parse_args()
    commit = test_parts.commit_of_tree() + (f", {options.architecture}" if options.architecture else "")
    results = test_parts.run_all(
        parts(options.files, options.architecture), commit, options.jobs, options.state
    )
    print(
        f"| {device()}, {date.today()}, commit {commit} | `tools/test_gpu.py` | {test_parts.totals(results)} |"
    )
    return test_parts.exit_status(results)


if __name__ == "__main__":
    sys.exit(main())
