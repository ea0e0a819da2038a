# SPDX-License-Identifier: Apache-2.0
"""The node tests of the package onnx: none is wrong, in a slice; in the long mode all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx_nodes
import pytest

NAMES = onnx_nodes.names()[:: onnx_nodes.SLICE]


def test_cases_are_right_or_refused_by_name():
    assert len(NAMES) > 200
    results = [onnx_nodes.outcome(case) for case in onnx_nodes.cases(NAMES)]
    bad = [
        f"{each.name}: {each.status}: {each.detail}"
        for each in results
        if each.status in ("wrong", "rejected")
    ]
    assert not bad, "\n".join(bad)
    reasons = [each.detail for each in results if each.status == "unsupported"]
    assert all(reason.startswith("[INGOT-N54") for reason in reasons), reasons
    assert sum(each.status.startswith("right") for each in results) > 0.8 * len(results)


@pytest.mark.long
def test_all_cases():
    script = Path(__file__).with_name("run_onnx_nodes.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
