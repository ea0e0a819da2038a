# SPDX-License-Identifier: Apache-2.0
"""Engines for GPUs that do collectives and little else, and the machines that tests run them on: two GPUs where there are such, and a
driver and a library that stand in for both, where kernels compute nothing, but copies and collectives are real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

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


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x, "sum", dist.group.WORLD)


class Followed(torch.nn.Module):
    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return residual + funcol.all_reduce(x, "sum", dist.group.WORLD)


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
    """everything.ingot, twice.ingot, another.ingot, sized.ingot, followed.ingot; x0.npz, y0.npz: inputs and results of rank 0."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    folder = tmp_path_factory.mktemp("collectives")
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    try:
        inputs = tuple(torch.from_numpy(value(dtype, 0)) for dtype in DTYPES)
        sized = torch.export.Dim("rows", min=1, max=64)
        long = torch.export.Dim("rows", min=1, max=50000)
        for name, model, given, shapes in (
            ("everything", Everything(), inputs, None),
            ("twice", Twice(), (torch.zeros(4, 3),), {"x": {0: sized}}),
            ("another", Another(), (torch.zeros(4, 3),), {"x": {0: sized}}),
            ("sized", Sum(), (torch.zeros(4, 3),), {"x": {0: long}}),
            (
                "followed",
                Followed(),
                (torch.zeros(4, 3), torch.ones(4, 3)),
                {"x": {0: long}, "residual": {0: long}},
            ),
        ):
            torch.export.save(
                torch.export.export(model, given, dynamic_shapes=shapes), folder / f"{name}.pt2"
            )
    finally:
        dist.destroy_process_group()
    for name in ("everything", "twice", "another", "sized", "followed"):
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
    """Two GPUs, or what stands in for them in processes with its environment; then they may reach each other's memory."""

    def __init__(self, libraries: Path | None, has_peers: bool = False) -> None:
        self.is_fake, self.has_peers = libraries is not None, has_peers
        self.deadline = 3.0 if self.is_fake else 6.0  # a loaded machine, and NCCL, take their time to start
        self.variables = {"INGOT_LOG": "warning"}
        if self.is_fake:
            self.variables |= {"LD_LIBRARY_PATH": str(libraries), "FAKE_GPUS": str(RANKS)}
            self.variables |= {"FAKE_PEERS": "1"} if has_peers else {}
        else:
            found = sorted(Path(torch.__file__).parents[1].glob("nvidia/nccl/lib/libnccl.so.2"))
            self.variables |= {"INGOT_NCCL": str(found[0])} if found else {}

    def environment(self, **variables: object) -> dict[str, str]:
        return os.environ | self.variables | {name: str(text) for name, text in variables.items()}


@pytest.fixture(scope="module", params=["fake", "peers", "gpus"])
def machine(request: pytest.FixtureRequest) -> Machine:
    if request.param == "gpus" and torch.cuda.device_count() < RANKS:
        pytest.skip("there are not two GPUs")
    if request.param == "gpus":
        return Machine(None)
    return Machine(request.getfixturevalue("fake_nccl"), has_peers=request.param == "peers")


# Before functions `engine_of(rank)`, which names the rank's engine in the folder, and `check(engine, rank)`.
RANKS_AS_THREADS = """
import sys, threading
import numpy as np
import ingot

folder = sys.argv[1]
listener = ingot.distributed.listen()
failures = []

def work(rank):
    try:
        engine = ingot.Engine.load(f"{folder}/{engine_of(rank)}.ingot", device=rank)
        group = ingot.distributed.join(listener if rank == 0 else listener.address(), rank, 2, deadline=20)
        ingot.distributed.bind(engine, group)
        check(engine, rank)
    except Exception as error:
        failures.append(error)

def run():
    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not failures, failures
"""
CALLS = """
calls, uneven = int(sys.argv[2]), sys.argv[3]

def engine_of(rank):
    return f"uneven{rank}" if uneven else "everything"

def check(engine, rank):
    given = np.load(f"{folder}/{uneven}x{rank}.npz")
    wanted = np.load(f"{folder}/{uneven}y{rank}.npz")
    for _ in range(calls):
        results = engine(*[given[name] for name in given.files])
        results = results if isinstance(results, (tuple, list)) else (results,)
        for k, (got, name) in enumerate(zip(results, wanted.files, strict=True)):
            np.testing.assert_array_equal(got, wanted[name], err_msg=f"result {k} of rank {rank}")
"""


def run_as_threads(script: str, folder: Path, machine: Machine, *arguments: str, **variables: object) -> str:
    """Runs `check` of the script in a thread for each rank; returns what was logged."""
    command = [sys.executable, "-c", RANKS_AS_THREADS + script + "\nrun()\n", folder, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=machine.environment(**variables), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def run_threads(
    folder: Path, machine: Machine, calls: int = 4, uneven: bool = False, **variables: object
) -> str:
    return run_as_threads(CALLS, folder, machine, str(calls), "uneven" if uneven else "", **variables)
