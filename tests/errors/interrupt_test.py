# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while an engine is built: the command says so and leaves no file, or was done already."""

import signal
import subprocess

import pytest
from inputs import INGOT, ROOT


@pytest.mark.parametrize("phase", ["read", "simplify", "compile kernels", "plan"])
def test_no_half_engine_is_left(phase, tmp_path):
    engine = tmp_path / "image.ingot"
    command = [INGOT, "build", ROOT / "tests/data/pt2/image.pt2", "-o", engine]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as build:
        for line in build.stderr:
            if line.strip() == phase:
                build.send_signal(signal.SIGINT)
                break
        rest = build.stderr.read()
    if build.returncode == 0:
        subprocess.run([INGOT, "verify", engine], check=True, capture_output=True)
        engine.unlink()
    else:
        assert build.returncode == 1
        assert rest.endswith("ingot: [INGOT-U010] the build was cancelled\n")
    assert list(tmp_path.iterdir()) == []
