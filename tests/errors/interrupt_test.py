# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while an engine is built: the command reports it, ends by the signal and leaves no file."""

import json
import signal
import subprocess
import time
from pathlib import Path

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


def interrupt(command, phase, **process):
    """Sends the signal when the phase begins; returns the process, and its other output."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **process
    ) as build:
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


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("phase", ["read", "compile kernels", "write"])
def test_builds_in_the_background_go_on(phase, model, tmp_path):
    """Shells start them with the signal ignored."""
    build, rest, _ = interrupt(
        [INGOT, "build", model, "-o", tmp_path / "out.ingot"], phase, preexec_fn=ignore_interrupts
    )
    assert build.wait() == 0, rest
    assert "cancelled" not in rest


def catches_interrupts(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    mask = next((line.split()[1] for line in text.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.parametrize("command", ["bench", "profile"])
@pytest.mark.parametrize("is_ignored", [False, True])
def test_measurements_in_the_background_go_on(command, is_ignored, model, tmp_path):
    engine = tmp_path / "out.ingot"
    subprocess.run(
        [INGOT, "build", model, "-o", engine, "--optimization-level", "0"], check=True, capture_output=True
    )
    with subprocess.Popen(
        [INGOT, command, engine, "--seconds", "1"],
        stdout=subprocess.DEVNULL,
        preexec_fn=ignore_interrupts if is_ignored else None,
    ) as measuring:
        caught = False
        while measuring.poll() is None:
            caught |= catches_interrupts(measuring)
            time.sleep(0.01)
    assert measuring.returncode == 0
    assert caught == (not is_ignored)


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
