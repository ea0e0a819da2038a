# SPDX-License-Identifier: Apache-2.0
"""`torchrun --nproc-per-node 2 -m bench.gpu_reductions`: sums of ranks by their sizes, one after another, bf16, in one CUDA graph.

Prints the microseconds of a sum and of the multiplication behind it, by the slowest rank: by kernels that write into the other
GPUs' memory up to their largest size, and by NCCL (in processes with INGOT_PEER_MEMORY=0, started by this one).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn

from bench.gpu_ranks import Ranks, queued_us

SUMS, ROUNDS = 32, 10
KILOBYTES = (2, 4, 8, 16, 32, 64, 128, 256)


class Sums(nn.Module):
    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self.ranks = ranks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(SUMS):
            x = self.ranks.sum(x) * 0.5
        return x


def measure() -> dict[int, float]:
    """Microseconds by kilobytes, the same on all ranks."""
    import ingot
    from ingot.devices import architecture

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    taken = {}
    for kilobytes in KILOBYTES:
        x = torch.randn(1, kilobytes * 512, device="cuda", dtype=torch.bfloat16)
        program = torch.export.export(Sums(Ranks(rank, size)), (x,))
        engine = ingot.build(program, device=f"cuda:{architecture(rank)}", gpu=rank, rank=str(rank))
        rounds = [queued_us(lambda engine=engine, x=x: engine(x)) / SUMS for _ in range(ROUNDS)]
        slowest = torch.tensor(statistics.median(rounds), device="cuda")
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        taken[kilobytes] = float(slowest)
    return taken


def main() -> None:
    taken = measure()
    if os.environ.get("INGOT_PEER_MEMORY") == "0":
        if os.environ["RANK"] == "0":
            print(json.dumps(taken), flush=True)
        os._exit(0)
    port = int(os.environ["MASTER_PORT"]) + 1
    other = {
        **os.environ,
        "INGOT_PEER_MEMORY": "0",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "0",
    }
    run = subprocess.run(
        [sys.executable, "-m", "bench.gpu_reductions"], env=other, capture_output=True, text=True, check=True
    )
    if os.environ["RANK"] == "0":
        nccl = json.loads(run.stdout.splitlines()[-1])
        for kilobytes, us in taken.items():
            print(f"{kilobytes:4} KB: peers {us:6.2f} us, NCCL {nccl[str(kilobytes)]:6.2f}", flush=True)
    os._exit(0)  # graphs hold torch's communicator, whose end would wait for them


if __name__ == "__main__":
    main()
