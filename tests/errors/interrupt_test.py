# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while an engine is built: the command reports it, ends by the signal and leaves no file."""

import json
import signal
import subprocess

import pytest
import torch
from inputs import INGOT

PHASES = ["read", "import", "simplify", "lower", "compile kernels", "plan", "prepare weights", "write"]
MESSAGE = "ingot: [INGOT-U010] the build was cancelled\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """48 MiB of weights, so that each phase is still going on when the signal comes."""
    path = tmp_path_factory.mktemp("model") / "large.pt2"
    layers = [layer for _ in range(12) for layer in (torch.nn.Linear(1024, 1024), torch.nn.GELU())]
    module = torch.nn.Sequential(*layers).eval()
    torch.export.save(torch.export.export(module, (torch.zeros(2, 1024),)), path)
    return path


def interrupt(command, phase):
    """Sends the signal when the phase begins; returns the process, and its other output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as build:
        for line in build.stderr:
            if line.strip() == phase:
                build.send_signal(signal.SIGINT)
                break
        return build, build.stderr.read(), build.stdout.read()


@pytest.mark.parametrize("phase", PHASES)
def test_no_half_engine_is_left(phase, model, tmp_path):
    build, rest, output = interrupt([INGOT, "build", model, "-o", tmp_path / "out.ingot"], phase)
    assert build.wait() == -signal.SIGINT
    assert rest.endswith(MESSAGE)
    assert rest.count("cancelled") == 1
    assert output == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("phase", ["compile kernels", "write"])
def test_json_tells_the_refusal(phase, model, tmp_path):
    build, _, output = interrupt([INGOT, "build", "--json", model, "-o", tmp_path / "out.ingot"], phase)
    assert build.wait() == -signal.SIGINT
    assert json.loads(output)["error"]["code"] == "INGOT-U010"
    assert list(tmp_path.iterdir()) == []


def test_the_file_that_was_there_stays(model, tmp_path):
    engine = tmp_path / "out.ingot"
    engine.write_bytes(b"old")
    interrupt([INGOT, "build", model, "-o", engine], "write")
    assert engine.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [engine]
