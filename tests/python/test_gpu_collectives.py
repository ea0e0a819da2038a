# SPDX-License-Identifier: Apache-2.0
"""Collectives of engines for GPUs, by NCCL and by memory that GPUs write for each other, on the machines of collective_engines.py.
test_gpu_ranks.py has models, test_gpu_failing_ranks.py ranks that fail."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from collective_engines import (
    DTYPES,
    RANKS,
    Machine,
    folder,
    machine,
    names_of,
    run_as_threads,
    run_threads,
)
from errors.inputs import INGOT
from gpu_targets import needs_nvrtc

__all__ = ["folder", "machine"]  # fixtures
pytestmark = needs_nvrtc


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
    by_peers = 4 if machine.has_peers else 0  # sums and averages of f32 and f16
    assert f"{4 * RANKS * by_peers} reductions by peers" in said
    assert run == 4 * RANKS * (on_device - by_peers)
    # Once at once, once while a graph is captured; then the graph is used.
    assert enqueued == 2 * RANKS * (on_device - by_peers)
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


SIZES = """
def engine_of(rank):
    return "sized"

def check(engine, rank):
    for rows in map(int, sys.argv[2:]):
        parts = [np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) % 97 + each for each in range(2)]
        np.testing.assert_array_equal(engine(parts[rank]), parts[0] + parts[1], err_msg=str(rows))
"""


def test_long_sums_go_by_nccl(folder: Path, machine: Machine) -> None:
    """Short and long ones in turns, each size several times, so that graphs of both ways are replayed."""
    most = (2 << 20) // (2 * RANKS * 16) * 8 // 4 // 3  # rows of three floats: kernel_abi.h, most_peer_bytes
    sizes = [1, most, most + 1, 5, 40000, 1, most, 40000, most + 1, 5] * 3
    said = run_as_threads(SIZES, folder, machine, *map(str, sizes))
    if machine.has_peers:
        assert f"{sum(rows <= most for rows in sizes) * RANKS} reductions by peers" in said


FOLLOWED = """
def engine_of(rank):
    return "followed"

def check(engine, rank):
    for rows in map(int, sys.argv[3:]):
        parts = [np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) % 97 + each for each in range(3)]
        result = engine(parts[rank], 5 * parts[2])
        if sys.argv[2]:
            np.testing.assert_array_equal(result, parts[0] + parts[1] + 5 * parts[2], err_msg=str(rows))
"""


@pytest.mark.parametrize("use", ["", "sums", "0"])
def test_what_follows_a_sum_is_done_with_it(folder: Path, machine: Machine, use: str) -> None:
    """Of short sums, where GPUs reach each other's memory. Other launches of what stands in for GPUs compute nothing."""
    most = (2 << 20) // (2 * RANKS * 16) * 8 // 4 // 3
    sizes = [1, most, 5, 1, most, 7] * 3
    long = [most + 1, 5, 40000, most + 1, 5, 40000] * 2
    does_next = machine.has_peers and not use
    for rows, is_checked in ((sizes, not machine.is_fake or does_next), (long, not machine.is_fake)):
        said = run_as_threads(
            FOLLOWED,
            folder,
            machine,
            "checked" if is_checked else "",
            *map(str, rows),
            FAKE_NEXT=1,
            INGOT_PEER_MEMORY=use,
        )
        if not machine.is_fake:
            continue
        short = RANKS * sum(each <= most for each in rows)
        by_peers = short if machine.has_peers and use != "0" else 0
        assert f" {by_peers} reductions by peers, {short if does_next else 0} with what follows" in said


class Halves(torch.nn.Module):
    """Two blocks of a tensor-parallel decoder: row-parallel products, their sums, a residual, and a norm before the next product."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict(
                {
                    "norm": torch.nn.RMSNorm(width),
                    "up": torch.nn.Linear(width, 32),
                    "down": torch.nn.Linear(32, width),
                }
            )
            for _ in range(2)
        )
        self.bias = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for layer in self.layers:
            part = layer["down"](torch.nn.functional.silu(layer["up"](layer["norm"](x))))
            x = x + (funcol.all_reduce(part, "sum", dist.group.WORLD) + self.bias)
        return x, other.exp()


def steps_of(level: int, rows: int = 1) -> list[dict]:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    try:
        model = Halves().bfloat16().eval().requires_grad_(False)
        given = (torch.zeros(rows, 64, dtype=torch.bfloat16), torch.zeros(5))
        program = torch.export.export(model, given)
    finally:
        dist.destroy_process_group()
    built = ingot.build(
        program, rank="any", device="cuda:sm_90a", verify_kernels=False, optimization_level=level
    )
    return built.inspect()["main"]["steps"]


def test_nothing_lies_between_a_sum_and_the_next_product() -> None:
    """And no other step is joined with what follows a sum."""
    steps = steps_of(3)
    sums = [k for k, step in enumerate(steps) if step["name"] == "all_reduce"]
    assert len(sums) == 2
    assert [steps[k].get("with_next") for k in sums] == ["ingot_peer_sum_bf16_and_next"] * 2
    assert all(steps[k + 1]["name"] == "fused[add, add]" for k in sums), [step["name"] for step in steps]
    assert "normalized_linear" in steps[sums[0] + 2]["name"]
    assert not any("with_next" in step for step in steps_of(1))


def run_apart(engine: Path, machine: Machine, variables: dict[int, dict[str, object]]) -> list[str]:
    """Each rank a process of the command line, with these variables; what they say."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    ranks = []
    for rank in range(RANKS):
        own = {
            "INGOT_RANK": rank,
            "INGOT_WORLD_SIZE": RANKS,
            "INGOT_ADDRESS": address,
            **variables.get(rank, {}),
        }
        command = [INGOT, "run", engine, "--gpu", str(rank), "--shapes", "x:5x3"]
        ranks.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=machine.environment(**own)))  # fmt: skip
    said = [process.communicate()[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0] * RANKS, said
    return said


@pytest.mark.parametrize("refusing", range(RANKS))
def test_all_ranks_refuse_peers_alike(folder: Path, fake_nccl: Path, refusing: int) -> None:
    """One process does not want its memory to be written: no rank waits for what another does not send."""
    machine = Machine(fake_nccl, has_peers=True)
    for said in run_apart(folder / "twice.ingot", machine, {refusing: {"INGOT_PEER_MEMORY": 0}}):
        assert " 0 reductions by peers" in said


@pytest.mark.parametrize("late", range(RANKS))
def test_a_rank_that_has_finished_may_end_before_others(folder: Path, fake_nccl: Path, late: int) -> None:
    """Whose GPUs still work, on what needs no other rank."""
    run_apart(folder / "twice.ingot", Machine(fake_nccl), {late: {"FAKE_LATE_EVENTS": 300}})
