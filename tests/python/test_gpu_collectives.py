# SPDX-License-Identifier: Apache-2.0
"""Collectives of engines for GPUs by NCCL: on a driver and a library that stand in for both, where kernels compute nothing, but
copies and collectives are real. test_gpu_ranks.py is for real GPUs."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from errors.inputs import INGOT

pytestmark = pytest.mark.skipif(not os.environ.get("INGOT_NVRTC"), reason="there is no NVRTC")

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.int16)  # fmt: skip
RANKS = 2


def names_of(dtype: torch.dtype) -> list[str]:
    """The collectives that a program has of this dtype."""
    if dtype is torch.bool:
        return ["all_gather", "broadcast", "all_to_all"]
    average = ["avg"] if dtype.is_floating_point else []
    return ["sum", "max", "min", "product", *average, "reduce_scatter", "all_gather", "broadcast", "all_to_all"]


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


class Another(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x, "max", dist.group.WORLD)


def value(dtype: torch.dtype, rank: int) -> np.ndarray:
    numbers = (np.arange(24).reshape(8, 3) * 7 + rank * 3) % 5
    return numbers.astype(str(dtype).removeprefix("torch."))


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
            torch.export.save(torch.export.export(model, given, dynamic_shapes=shapes), folder / f"{name}.pt2")
    finally:
        dist.destroy_process_group()
    for name in ("everything", "twice", "another"):
        ingot.build(folder / f"{name}.pt2", rank="any", device="cuda:sm_90a").save(folder / f"{name}.ingot")
    for rank in range(RANKS):
        np.savez(folder / f"x{rank}.npz", *[value(dtype, rank) for dtype in DTYPES])
        np.savez(folder / f"y{rank}.npz", *[each for dtype in DTYPES for each in expected(dtype, rank)])
    return folder


def environment_of(libraries: Path, **variables: object) -> dict[str, str]:
    texts = {name: str(text) for name, text in variables.items()}
    return os.environ | {"LD_LIBRARY_PATH": str(libraries), "FAKE_GPUS": "2", "INGOT_LOG": "warning"} | texts


THREADS = """
import sys, threading
import numpy as np
import ingot

folder, calls = sys.argv[1], int(sys.argv[2])
listener = ingot.distributed.listen()
failures = []

def work(rank):
    try:
        engine = ingot.Engine.load(folder + "/everything.ingot", device=rank)
        group = ingot.distributed.join(listener if rank == 0 else listener.address(), rank, 2, deadline=20)
        ingot.distributed.bind(engine, group)
        given = np.load(f"{folder}/x{rank}.npz")
        wanted = np.load(f"{folder}/y{rank}.npz")
        for _ in range(calls):
            results = engine(*[given[name] for name in given.files])
            for k, (got, name) in enumerate(zip(results, wanted.files, strict=True)):
                np.testing.assert_array_equal(got, wanted[name], err_msg=f"result {k} of rank {rank}")
    except Exception as error:
        failures.append(error)

threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failures, failures
"""


def run_threads(folder: Path, libraries: Path, calls: int = 4, **variables: object) -> str:
    done = subprocess.run([sys.executable, "-c", THREADS, folder, str(calls)], capture_output=True, text=True,
                          env=environment_of(libraries, **variables), check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_all_collectives_in_graphs(folder: Path, fake_nccl: Path) -> None:
    said = run_threads(folder, fake_nccl)
    assert "over the host" not in said
    enqueued, run, left, aborted = map(int, re.search(
        r"fake NCCL: (\d+) collectives enqueued, (\d+) run, (\d+) communicators left, (\d+) aborted", said).groups())  # fmt: skip
    on_device = sum(len(names_of(dtype)) for dtype in DTYPES) - 5  # i16 is reduced on the host
    assert run == 4 * RANKS * on_device
    assert enqueued == 2 * RANKS * on_device  # once at once, once while a graph is captured; then the graph is used
    assert (left, aborted) == (0, 0)
    assert "0 calls in a wrong context, 0 contexts left current" in said
    assert " 0 allocations left" in said


def test_ranks_are_processes(folder: Path, fake_nccl: Path, tmp_path: Path) -> None:
    command = [INGOT, "run", folder / "twice.ingot", "--ranks", "2", "--shapes", "x:5x3", "-o", tmp_path / "y{rank}.npz"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment_of(fake_nccl), check=False)
    assert done.returncode == 0, done.stderr
    assert "over the host" not in done.stderr
    first, second = (np.load(tmp_path / f"y{rank}.npz")["output_0"] for rank in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first).max() > 0
