# SPDX-License-Identifier: Apache-2.0
"""Engines of two ranks, and threads and processes that are those ranks, for the tests of ranks."""

import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import ingot
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from errors.inputs import INGOT
from safetensors.torch import save_file
from torch import nn

AXES = {"up.weight": 0, "up.bias": 0, "down.weight": 1}
SHARDS = [f"{name}:{axis}/2" for name, axis in AXES.items()]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 6, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = funcol.all_reduce(self.down(torch.relu(self.up(x))), "sum", dist.group.WORLD)
        return funcol.all_gather_tensor(total, 0, dist.group.WORLD)


class Another(Model):
    """The same collectives, of another model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.sigmoid(x))


def make(folder: Path) -> Path:
    """model.pt2, traced by rank 0 of 2; the engines any.ingot, 0.ingot, 1.ingot, another.ingot; x.npy, expected.npy.

    whole.safetensors has tensors of which both ranks have parts (the same ones): SHARDS.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        torch.manual_seed(1)
        model, x = Model().eval(), torch.randn(3, 6)
        program = torch.export.export(model, (x,))
        torch.export.save(program, folder / "model.pt2")
        torch.export.save(torch.export.export(Another().eval(), (x,)), folder / "another.pt2")
        with torch.no_grad():
            own = model.down(torch.relu(model.up(x)))
    finally:
        dist.destroy_process_group()
    for rank in ("any", "0", "1"):
        ingot.build(folder / "model.pt2", rank=rank).save(folder / f"{rank}.ingot")
    ingot.build(folder / "another.pt2", rank="any").save(folder / "another.ingot")
    state = model.state_dict()
    save_file(
        {name: torch.cat([state[name]] * 2, axis) for name, axis in AXES.items()},
        folder / "whole.safetensors",
    )
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "expected.npy", torch.cat([2 * own, 2 * own]).numpy())
    return folder


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def join(listener: object, rank: int, **options: object) -> object:
    """One of two ranks that meet where rank 0 listens."""
    return ingot.distributed.join(listener if rank == 0 else listener.address(), rank, 2, **options)


def as_ranks(count: int, work: Callable[[int], object]) -> list[object]:
    """Results, or errors, of `work(rank)` in a thread per rank."""
    results: list[object] = [None] * count

    def run(rank: int) -> None:
        try:
            results[rank] = work(rank)
        except ingot.Error as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def run_program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([INGOT, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)
