# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes, each check of which has a deadline. A check that does not end by then shows where each rank is: what it said last,
its Python and native stacks, its threads, and the calls of NCCL that have not returned.

In a rank: `enter_rank`, then `say` before each step that may take long. Lines are few and short; $RANK_LOGS names a folder that keeps all
that was written."""

from __future__ import annotations

import faulthandler
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

GRACE = 2.0  # seconds after the deadline in which ranks write their stacks
DEBUGGER = 20.0  # seconds that it may take to read a rank's stacks
SHOWN, WIDTH, FRAMES = 8, 150, 14  # lines of a trace, characters of a line, functions of a stack


def say(text: str) -> None:
    """A line of this rank, at once."""
    print(text, flush=True)


def enter_rank(run: Callable[[], None]) -> None:
    """In the process of a rank: runs it, and leaves a rank that failed at once, since what it holds may wait for the others."""
    if (deadline := os.environ.get("RANK_DEADLINE")) is not None:
        # By a thread of C: it also writes while another one holds Python's lock.
        faulthandler.dump_traceback_later(max(0.1, float(deadline) - time.time()), exit=False)
    try:
        run()
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    say("done, leaving")


class WatchedRanks:
    """Runs `command` once per rank, and prints what the ranks say as it comes."""

    def __init__(
        self, command: list[str], size: int, seconds: float, variables: dict[str, str] | None = None
    ) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.begun = time.time()
        self.limit = self.begun + seconds
        self.seconds = seconds
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        shared = os.environ | {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        shared |= {"RANK_DEADLINE": str(self.limit), "PYTHONUNBUFFERED": "1"} | traced_nccl(self.path)
        self.processes = []
        self.read = [0] * size
        for rank in range(size):
            own = {"RANK": str(rank), "NCCL_DEBUG_FILE": str(self.path / f"library{rank}.log"),
                   "NCCL_TRACE": str(self.path / f"calls{rank}.log")}  # fmt: skip
            # A file: children of a rank that ended may hold a pipe open.
            with self._log(rank).open("w") as log:
                process = subprocess.Popen(
                    command, env=shared | own | (variables or {}), stdout=log, stderr=subprocess.STDOUT
                )
            self.processes.append(process)

    def __enter__(self) -> WatchedRanks:
        return self

    def __exit__(self, *unused: object) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                self._print(f"process {process.pid} does not end when it is killed: its driver is stuck")
        if (kept := os.environ.get("RANK_LOGS")) is not None:
            shutil.copytree(
                self.path, Path(kept) / f"{self.begun:.0f}", ignore=lambda *_: ["libtraced_nccl.so"]
            )
        self.folder.cleanup()

    def wait(self, ranks: list[int]) -> str:
        """Until these ranks have ended. What went wrong, or ""."""
        while any(self.processes[rank].poll() is None for rank in ranks):
            if any(self.processes[rank].poll() for rank in ranks):
                time.sleep(GRACE)  # for what the others have to say
                break
            if time.time() > self.limit:
                time.sleep(GRACE)
                self._forward()
                self._show_where_ranks_are()
                return f"did not end within {self.seconds:.0f} s"
            self._forward()
            time.sleep(0.1)
        self._forward()
        failed = [rank for rank in ranks if self.processes[rank].poll()]
        if not failed:
            return ""
        for rank in failed:
            self._show_calls(rank)
        return ", ".join(f"rank {rank} ended with {self.processes[rank].returncode}" for rank in failed)

    def _log(self, rank: int) -> Path:
        return self.path / f"rank{rank}.log"

    def _print(self, text: str) -> None:
        print(f"[{time.time() - self.begun:6.1f}] {text}", flush=True)

    def _forward(self) -> None:
        for rank in range(len(self.processes)):
            with self._log(rank).open("rb") as log:
                log.seek(self.read[rank])
                *lines, last = log.read().split(b"\n")
            self.read[rank] = self._log(rank).stat().st_size - len(last) if lines else self.read[rank]
            for line in lines:
                self._print(f"rank {rank}: {line.decode(errors='replace')}")

    def _show_where_ranks_are(self) -> None:
        for rank, process in enumerate(self.processes):
            if process.poll() is not None:
                self._print(f"rank {rank} has ended with {process.returncode}")
                continue
            for thread in threads_of(process.pid):
                self._print(f"rank {rank}: thread {thread}")
            self._show_calls(rank)
        for rank, process in enumerate(self.processes):
            if process.poll() is None:
                output = debug(process.pid)
                (self.path / f"stacks{rank}.log").write_text(output)
                for line in stacks_in(output):
                    self._print(f"rank {rank}: {line}")

    def _show_calls(self, rank: int) -> None:
        trace = self.path / f"calls{rank}.log"
        for call in unreturned_calls(trace):
            self._print(f"rank {rank}: IN NCCL since {time.time() - call[0]:.1f} s: {call[1]}")
        for file in (trace, self.path / f"library{rank}.log"):
            for line in last_lines(file):
                self._print(f"rank {rank}: {file.stem}: {line[-WIDTH:]}")


def traced_nccl(folder: Path) -> dict[str, str]:
    """The environment in which Ingot's calls of NCCL are traced, and NCCL says what it does itself."""
    variables = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,COLL", "NCCL_NVLS_ENABLE": "0"}
    source, made = Path(__file__).with_name("traced_nccl.cpp"), folder / "libtraced_nccl.so"
    include = f"-I{Path(__file__).parents[2] / 'src'}"
    command = [shutil.which("c++") or "g++", "-std=c++20", "-shared", "-fPIC", include, source, "-o", made]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"calls of NCCL are not traced: {error} {getattr(error, 'stderr', '')}", flush=True)
        return variables
    if (real := os.environ.get("INGOT_NCCL")) is not None:
        variables["TRACED_NCCL"] = real
    return variables | {"INGOT_NCCL": str(made)}


def unreturned_calls(trace: Path) -> list[tuple[float, str]]:
    """When each began, and what it is."""
    calls: dict[str, tuple[float, str]] = {}
    for line in trace.read_text().splitlines() if trace.exists() else []:
        number, when, word, text = line.split(" ", 3)
        if word == "begins":
            calls[number] = (float(when), text)
        else:
            calls.pop(number, None)
    return list(calls.values())


def last_lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines()[-SHOWN:] if file.exists() else []


def threads_of(process: int) -> list[str]:
    """How many have which name and state, and wait in which function of the kernel."""
    threads: Counter[str] = Counter()
    for folder in sorted(Path(f"/proc/{process}/task").glob("*")):
        try:
            state = re.search(r"State:\s+(\S+)", (folder / "status").read_text())
            waits = (folder / "wchan").read_text() if (folder / "wchan").exists() else ""
            threads[f"{(folder / 'comm').read_text().strip()} {state and state[1]} {waits}"] += 1
        except OSError:
            continue  # it has ended
    return [f"{count} x {thread}" for thread, count in threads.items()]


def debug(process: int) -> str:
    """What a debugger of C says of the stacks of its threads, where there is one that may."""
    debugger = shutil.which("gdb") or shutil.which("cuda-gdb")
    if debugger is None:
        return "no gdb and no cuda-gdb: no native stacks"
    command = [debugger, "-nx", "-batch", "-p", str(process), "-ex", "thread apply all -s backtrace 40"]
    with tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            running.wait(DEBUGGER)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
        output.seek(0)
        return output.read()


def stacks_in(output: str) -> list[str]:
    """A line per stack, from the innermost function outwards; threads that are in the same place share one."""
    names: dict[str, list[str]] = {}
    for text in re.split(r"^(?=Thread \d)", output, flags=re.MULTILINE)[1:]:
        head, *frames = text.splitlines()
        functions = [function_of(frame) for frame in frames if frame.startswith("#")]
        calls = [
            name
            for name in functions
            if not name.startswith(("_Py", "Py", "pymain", "run_", "start_thread", "clone"))
        ]
        name = re.search(r'"(.*)"', head)
        names.setdefault(" < ".join(calls[:FRAMES]), []).append(name[1] if name else head)
    if not names:
        return output.splitlines()[-SHOWN:]
    return [f"{len(threads)} x {threads[0]}: {calls}" for calls, threads in names.items()]


def function_of(frame: str) -> str:
    """`#1  0x0000 in name (arguments) from library` -> name, or the library of one without a name."""
    found = re.match(r"#\d+\s+(?:0x[0-9a-f]+ in )?(.*?) \(.*?(?: from (\S+))?$", frame)
    if found is None:
        return frame
    name = re.sub(r"<.*>", "<>", found[1])
    return f"{name} {Path(found[2]).name}" if name == "??" and found[2] else name[:60]
