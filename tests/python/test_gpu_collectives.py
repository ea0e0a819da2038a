# SPDX-License-Identifier: Apache-2.0
"""Collectives of engines for GPUs by NCCL, and ranks that fail: on a driver and a library that stand in for both, where kernels
compute nothing, but copies and collectives are real; and on two GPUs where there are such. test_gpu_ranks.py has models."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from errors.inputs import INGOT

pytestmark = pytest.mark.skipif(not os.environ.get("INGOT_NVRTC"), reason="there is no NVRTC")

DTYPES = tuple(
    getattr(torch, name)
    for name in ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "int16"]
)
RANKS = 2


def names_of(dtype: torch.dtype) -> list[str]:
    """The collectives that a program has of this dtype."""
    if dtype is torch.bool:
        return ["all_gather", "broadcast", "all_to_all"]
    average = ["avg"] if dtype.is_floating_point else []
    return [
        "sum",
        "max",
        "min",
        "product",
        *average,
        "reduce_scatter",
        "all_gather",
        "broadcast",
        "all_to_all",
    ]


class Everything(torch.nn.Module):
    """Nothing but collectives, which are the program's results."""

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        group = dist.group.WORLD
        results = []
        for x in inputs:
            for name in names_of(x.dtype):
                match name:
                    case "reduce_scatter":
                        results.append(funcol.reduce_scatter_tensor(x, "sum", 0, group))
                    case "all_gather":
                        results.append(funcol.all_gather_tensor(x, 0, group))
                    case "broadcast":
                        results.append(funcol.broadcast(x, 1, group))
                    case "all_to_all":
                        results.append(funcol.all_to_all_single(x, None, None, group))
                    case _:
                        results.append(funcol.all_reduce(x, name, group))
        return results


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = funcol.all_reduce(x, "sum", dist.group.WORLD)
        return funcol.all_reduce(total, "sum", dist.group.WORLD)


SENT = ((1, 3), (2, 1))  # rows, by source and target


class Uneven(torch.nn.Module):
    """Ranks send other numbers of rows to each other, so that each has a program of its own."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        received = [each[self.rank] for each in SENT]
        return funcol.all_to_all_single(x, received, list(SENT[self.rank]), dist.group.WORLD)


class Another(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x, "max", dist.group.WORLD)


def value(dtype: torch.dtype, rank: int) -> np.ndarray:
    numbers = (np.arange(24).reshape(8, 3) * 7 + rank * 3) % 5
    return numbers.astype(str(dtype).removeprefix("torch."))


def rows_of(rank: int) -> np.ndarray:
    return np.arange(sum(SENT[rank]) * 3, dtype=np.float32).reshape(-1, 3) + 100 * rank


def expected(dtype: torch.dtype, rank: int) -> list[np.ndarray]:
    values = [value(dtype, each) for each in range(RANKS)]
    stacked = np.stack(values)
    results = []
    for name in names_of(dtype):
        match name:
            case "sum" | "product" | "max" | "min":
                reduce = {"sum": np.add, "product": np.multiply, "max": np.maximum, "min": np.minimum}[name]
                results.append(reduce.reduce(stacked, 0))
            case "avg":
                results.append((stacked.sum(0) / RANKS).astype(stacked.dtype))
            case "reduce_scatter":
                results.append(np.add.reduce(stacked, 0)[rank * 4 : rank * 4 + 4])
            case "all_gather":
                results.append(np.concatenate(values))
            case "broadcast":
                results.append(values[1])
            case "all_to_all":
                results.append(np.concatenate([each[rank * 4 : rank * 4 + 4] for each in values]))
    return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """everything.ingot, twice.ingot, another.ingot; x0.npz, y0.npz: inputs and results of rank 0."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    folder = tmp_path_factory.mktemp("collectives")
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    try:
        inputs = tuple(torch.from_numpy(value(dtype, 0)) for dtype in DTYPES)
        sized = torch.export.Dim("rows", min=1, max=64)
        for name, model, given, shapes in (
            ("everything", Everything(), inputs, None),
            ("twice", Twice(), (torch.zeros(4, 3),), {"x": {0: sized}}),
            ("another", Another(), (torch.zeros(4, 3),), {"x": {0: sized}}),
        ):
            torch.export.save(
                torch.export.export(model, given, dynamic_shapes=shapes), folder / f"{name}.pt2"
            )
    finally:
        dist.destroy_process_group()
    for name in ("everything", "twice", "another"):
        ingot.build(folder / f"{name}.pt2", rank="any", device="cuda:sm_90a", verify_kernels=False).save(
            folder / f"{name}.ingot"
        )
    for rank in range(RANKS):
        dist.init_process_group("fake", rank=rank, world_size=RANKS, store=FakeStore())
        try:
            own = torch.export.export(Uneven(rank), (torch.from_numpy(rows_of(rank)),))
        finally:
            dist.destroy_process_group()
        ingot.build(own, rank=str(rank), device="cuda:sm_90a", verify_kernels=False).save(
            folder / f"uneven{rank}.ingot"
        )
        parts = [np.split(rows_of(source), [SENT[source][0]])[rank] for source in range(RANKS)]
        np.savez(folder / f"unevenx{rank}.npz", rows_of(rank))
        np.savez(folder / f"uneveny{rank}.npz", np.concatenate(parts))
        np.savez(folder / f"x{rank}.npz", *[value(dtype, rank) for dtype in DTYPES])
        np.savez(folder / f"y{rank}.npz", *[each for dtype in DTYPES for each in expected(dtype, rank)])
    return folder


class Machine:
    """Two GPUs, or what stands in for them in processes with its environment."""

    def __init__(self, libraries: Path | None) -> None:
        self.is_fake = libraries is not None
        self.deadline = 3.0 if self.is_fake else 6.0  # a loaded machine, and NCCL, take their time to start
        self.variables = {"INGOT_LOG": "warning"}
        if self.is_fake:
            self.variables |= {"LD_LIBRARY_PATH": str(libraries), "FAKE_GPUS": str(RANKS)}
        else:
            found = sorted(Path(torch.__file__).parents[1].glob("nvidia/nccl/lib/libnccl.so.2"))
            self.variables |= {"INGOT_NCCL": str(found[0])} if found else {}

    def environment(self, **variables: object) -> dict[str, str]:
        return os.environ | self.variables | {name: str(text) for name, text in variables.items()}


@pytest.fixture(scope="module", params=["fake", "gpus"])
def machine(request: pytest.FixtureRequest) -> Machine:
    if request.param == "gpus" and torch.cuda.device_count() < RANKS:
        pytest.skip("there are not two GPUs")
    return Machine(request.getfixturevalue("fake_nccl") if request.param == "fake" else None)


THREADS = """
import sys, threading
import numpy as np
import ingot

folder, calls, uneven = sys.argv[1], int(sys.argv[2]), sys.argv[3]
listener = ingot.distributed.listen()
failures = []

def work(rank):
    try:
        name = f"uneven{rank}" if uneven else "everything"
        engine = ingot.Engine.load(f"{folder}/{name}.ingot", device=rank)
        group = ingot.distributed.join(listener if rank == 0 else listener.address(), rank, 2, deadline=20)
        ingot.distributed.bind(engine, group)
        given = np.load(f"{folder}/{uneven}x{rank}.npz")
        wanted = np.load(f"{folder}/{uneven}y{rank}.npz")
        for _ in range(calls):
            results = engine(*[given[name] for name in given.files])
            results = results if isinstance(results, (tuple, list)) else (results,)
            for k, (got, name) in enumerate(zip(results, wanted.files, strict=True)):
                np.testing.assert_array_equal(got, wanted[name], err_msg=f"result {k} of rank {rank}")
    except Exception as error:
        failures.append(error)

threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures, failures
"""


def run_threads(
    folder: Path, machine: Machine, calls: int = 4, uneven: bool = False, **variables: object
) -> str:
    arguments = [folder, str(calls), "uneven" if uneven else ""]
    done = subprocess.run([sys.executable, "-c", THREADS, *arguments], capture_output=True, text=True,
                          env=machine.environment(**variables), check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_ranks_send_other_numbers_of_rows(folder: Path, machine: Machine) -> None:
    assert "over the host" not in run_threads(folder, machine, uneven=True)


def test_all_collectives_in_graphs(folder: Path, machine: Machine) -> None:
    """By threads that are ranks, of each dtype; what NCCL does not reduce goes over the host."""
    said = run_threads(folder, machine)
    assert "over the host" not in said
    if not machine.is_fake:
        return
    enqueued, run, left, aborted = map(int, re.search(
        r"fake NCCL: (\d+) collectives enqueued, (\d+) run, (\d+) communicators left, (\d+) aborted", said).groups())  # fmt: skip
    on_device = sum(len(names_of(dtype)) for dtype in DTYPES) - 5  # i16 is reduced on the host
    assert run == 4 * RANKS * on_device
    assert (
        enqueued == 2 * RANKS * on_device
    )  # once at once, once while a graph is captured; then the graph is used
    assert (left, aborted) == (0, 0)
    assert "0 calls in a wrong context, 0 contexts left current" in said
    assert " 0 allocations left" in said


def test_ranks_are_processes(folder: Path, machine: Machine, tmp_path: Path) -> None:
    command = [
        INGOT,
        "run",
        folder / "twice.ingot",
        "--ranks",
        "2",
        "--shapes",
        "x:5x3",
        "-o",
        tmp_path / "y{rank}.npz",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=machine.environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert "over the host" not in done.stderr
    first, second = (np.load(tmp_path / f"y{rank}.npz")["output_0"] for rank in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first).max() > 0


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"INGOT_NCCL": "/nowhere/libnccl.so"}, "rank 0: NCCL cannot be opened"),
        ({"FAKE_NCCL_VERSION": 21700}, "rank 0: NCCL is too old: its version is 21700"),
        ({"FAKE_SAME_GPU": 1}, "ranks 0 and 1 are on the same GPU"),
        ({"FAKE_NCCL_BROKEN": 1}, "rank 0: NCCL says: fake NCCL error"),
    ],
)
def test_without_nccl_the_host_does_them(
    folder: Path, fake_nccl: Path, variables: dict[str, object], reason: str
) -> None:
    said = run_threads(folder, Machine(fake_nccl), calls=2, **variables)
    assert said.count(f"go over the host: {reason}") == RANKS
    assert "0 calls in a wrong context" in said


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


def test_a_rank_that_ended_between_calls_is_named(folder: Path, machine: Machine) -> None:
    with Ranks(folder, machine, machine.deadline) as ranks:
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
