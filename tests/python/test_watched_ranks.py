# SPDX-License-Identifier: Apache-2.0
"""What is said of ranks that hang, of which test_gpu_ranks.py has the serious ones."""

import re
import sys
import textwrap
from pathlib import Path

import pytest
from collective_engines import Machine, folder
from gpu_targets import needs_nvrtc
from watched_ranks import WatchedRanks, unreturned_calls

__all__ = ["folder"]  # a fixture
HERE = Path(__file__).parent
RANK = """
import ctypes, os, sys, time
sys.path.insert(0, sys.argv[1])
from watched_ranks import enter_rank, say

def sleeps_with_the_lock():
    say("sleeps")
    ctypes.PyDLL(None).sleep(100)

def fails():
    raise ValueError("this one")

enter_rank({"0": sleeps_with_the_lock, "1": {WORK}}[os.environ["RANK"]])
"""


def watch(work: str, seconds: float, variables: dict[str, str] | None = None) -> str:
    script = RANK.replace("{WORK}", textwrap.dedent(work))
    with WatchedRanks([sys.executable, "-c", script, str(HERE)], 2, seconds, variables) as ranks:
        return ranks.wait([0, 1])


def test_a_rank_that_hangs_says_where(capfd: pytest.CaptureFixture[str]) -> None:
    """Also with Python's lock held by code of C."""
    assert watch("sleeps_with_the_lock", 3) == "did not end within 3 s"
    said = capfd.readouterr().out
    for rank in range(2):
        assert f"rank {rank}: sleeps" in said
        assert said.count(f'rank {rank}:   File "<string>", line 8 in sleeps_with_the_lock') == 1
        assert f"rank {rank}: thread" in said
    assert " sleep" in said  # the kernel's or the debugger's name for it


def test_a_rank_that_fails_ends_the_check(capfd: pytest.CaptureFixture[str]) -> None:
    """Although the other one waits."""
    assert watch("fails", 60) == "rank 1 ended with 1"
    assert "rank 1: ValueError: this one" in capfd.readouterr().out


@needs_nvrtc
def test_calls_of_nccl_are_traced(folder: Path, fake_nccl: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The library that traces stands between Ingot and the one that stands in for NCCL."""
    command = [sys.executable, "-c", CALLS, folder]
    variables = Machine(fake_nccl).environment(TRACED_NCCL=fake_nccl / "libnccl.so.2")
    with WatchedRanks(command, 2, 60, variables) as ranks:
        problem = ranks.wait([0, 1])
        traces = [ranks.path / f"calls{rank}.log" for rank in range(2)]
        texts = [trace.read_text() for trace in traces]
        open_calls = [unreturned_calls(trace) for trace in traces]
    assert not problem, capfd.readouterr().out
    for text, calls in zip(texts, open_calls, strict=True):
        assert "begins ncclAllReduce by" in text
        assert re.search(r"returned \d from ncclAllReduce", text)  # 7: it goes on
        assert not calls


CALLS = """
import os, sys
import numpy as np
import ingot

rank = int(os.environ["RANK"])
engine = ingot.Engine.load(f"{sys.argv[1]}/twice.ingot", device=rank)
address = f"127.0.0.1:{os.environ['MASTER_PORT']}"
group = ingot.distributed.join(address, rank, 2, deadline=20)
ingot.distributed.bind(engine, group)
engine(np.ones((4, 3), np.float32))
"""


def test_a_call_that_has_not_returned_is_shown(tmp_path: Path) -> None:
    trace = tmp_path / "calls.log"
    trace.write_text(
        "1 5.000 begins ncclAllReduce by python\n2 6.000 begins ncclCommAbort by end\n1 7.000 returned 0 from ncclAllReduce\n"
    )
    assert unreturned_calls(trace) == [(6.0, "ncclCommAbort by end")]
    assert unreturned_calls(tmp_path / "none") == []
