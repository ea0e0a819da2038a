# SPDX-License-Identifier: Apache-2.0
"""Ranks on GPUs that end, hang, come late or do something else, on the machines of collective_engines.py."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from collective_engines import RANKS, Machine, folder, machine
from gpu_targets import needs_nvrtc

__all__ = ["folder", "machine"]  # fixtures
pytestmark = needs_nvrtc

RANK = """
import sys
import time
import numpy as np
import ingot

rank, count, address, deadline = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
engines = {name: ingot.Engine.load(f"{sys.argv[5]}/{name}.ingot", device=rank) for name in ("twice", "another")}
print("ready", flush=True)
group = None
for line in sys.stdin:
    name, rows = line.split()
    if name == "notice":
        while group.is_usable():
            time.sleep(0.01)
        print("noticed", flush=True)
        continue
    try:
        if group is None:
            group = ingot.distributed.join(address, rank, count, deadline=deadline)
            for engine in engines.values():
                ingot.distributed.bind(engine, group)
        x = np.full((int(rows), 3), rank + 1, np.float32)
        print("sum", engines[name](x).sum(), flush=True)
    except ingot.Error as error:
        print(error.code, str(error).replace(chr(10), " "), flush=True)
        if group is not None and not group.is_usable():
            group = None  # the next line is for a new one
"""


class Ranks:
    """Processes, each with a GPU of its own, that call an engine each time that they are told to."""

    def __init__(self, folder: Path, machine: Machine, deadline: float) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", RANK, str(rank), str(RANKS), address, str(deadline), folder],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=machine.environment())
            for rank in range(RANKS)
        ]  # fmt: skip
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *unused: object) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()

    def tell(self, rank: int, name: str = "twice", rows: int = 4) -> None:
        self.processes[rank].stdin.write(f"{name} {rows}\n")
        self.processes[rank].stdin.flush()

    def answer(self, rank: int) -> str:
        return self.processes[rank].stdout.readline()

    def call(self, rows: int = 4) -> None:
        """All ranks together, with the right result."""
        for rank in range(RANKS):
            self.tell(rank, rows=rows)
        for rank in range(RANKS):
            assert self.answer(rank) == f"sum {float(rows * 3 * 6)}\n"


@pytest.mark.parametrize("calls", [1, 3], ids=["enqueued", "graph"])
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_stops_is_named(folder: Path, machine: Machine, stop: signal.Signals, calls: int) -> None:
    milliseconds = round(machine.deadline * 1000)
    with Ranks(folder, machine, machine.deadline) as ranks:
        for _ in range(calls):
            ranks.call()
        ranks.processes[1].send_signal(stop)
        ranks.tell(0)
        answer = ranks.answer(0)
        assert answer.startswith("INGOT-D350")
        assert (
            "rank 1 ended" if stop == signal.SIGKILL else f"rank 1 did not answer within {milliseconds} ms"
        ) in answer
        ranks.tell(0)  # it asks for a new meeting
        assert f"rank 1 did not come within {milliseconds} ms" in ranks.answer(0)


@pytest.mark.parametrize("abort", ["returns", "waits"])
def test_a_rank_that_ended_between_calls_is_named(
    folder: Path, machine: Machine, abort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL's abort may wait until graphs that it is part of are gone."""
    if abort == "waits":
        monkeypatch.setenv("FAKE_NCCL_ABORT_WAITS", "1")
    with Ranks(folder, machine, machine.deadline) as ranks:
        for _ in range(3):
            ranks.call()
        ranks.processes[1].kill()
        ranks.tell(0, "notice")
        assert ranks.answer(0) == "noticed\n"
        ranks.tell(0)
        answer = ranks.answer(0)
        assert answer.startswith("INGOT-D350")
        assert "rank 1 ended" in answer


def test_a_rank_that_is_late_is_waited_for(folder: Path, machine: Machine) -> None:
    with Ranks(folder, machine, 20) as ranks:
        for _ in range(3):
            ranks.call()
        ranks.tell(0)
        ranks.processes[1].send_signal(signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            ranks.processes[0].wait(0.3)
        ranks.processes[1].send_signal(signal.SIGCONT)
        ranks.tell(1)
        assert [ranks.answer(rank) for rank in range(RANKS)] == ["sum 72.0\n"] * RANKS


@pytest.mark.parametrize("is_known", [False, True], ids=["first", "graph"])
@pytest.mark.parametrize(("name", "rows"), [("another", 4), ("twice", 5)], ids=["engine", "sizes"])
def test_other_work_is_noticed(folder: Path, machine: Machine, name: str, rows: int, is_known: bool) -> None:
    with Ranks(folder, machine, machine.deadline) as ranks:
        for _ in range(3 if is_known else 0):
            ranks.call()
        ranks.tell(0)
        ranks.tell(1, name, rows)
        answers = [ranks.answer(rank) for rank in range(RANKS)]
        assert all(answer.startswith("INGOT-D35") for answer in answers), answers
        assert any(answer.startswith("INGOT-D351") for answer in answers), answers
