# SPDX-License-Identifier: Apache-2.0
"""A tensor-parallel block on two GPUs, one per rank: kernels in engines, collectives in torch's NCCL between them.

python tests/python/test_gpu_ranks.py        # on a machine with two GPUs, also through pytest
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

RANKS = 2


@pytest.mark.skipif(torch.cuda.device_count() < RANKS, reason="there are not two GPUs")
def test_two_gpus() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, "rank"],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": str(rank), "RANK": str(rank), "WORLD_SIZE": str(RANKS),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "NCCL_NVLS_ENABLE": "0"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(RANKS)
    ]  # fmt: skip
    for process in ranks:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output


def run_rank() -> None:
    import ingot
    import torch.distributed as dist
    from accuracy import assert_accurate
    from rank_models import PLAN, Shard, whole_block
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    x = whole_block()[1]
    exact = whole_block()[0].double()(x.double())
    with torch.no_grad():
        for dtype in (torch.float32, torch.bfloat16):
            given = x.to("cuda", dtype)
            model = whole_block()[0].to("cuda", dtype)
            shard = Shard(model, rank, RANKS).to("cuda", dtype).eval()
            sharded = parallelize_module(model, init_device_mesh("cuda", (RANKS,)), PLAN)
            for each in (shard, sharded):
                eager = each(given)
                torch.compiler.reset()
                compiled = torch.compile(each, backend="ingot")
                for _ in range(2):
                    assert_accurate(compiled(given).cpu(), eager.cpu(), exact)
                kinds = {node.op.split(".")[-2] for node in ingot.report(compiled).fallbacks}
                assert kinds <= {"all_reduce", "wait_tensor"}, kinds
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.path.insert(0, str(Path(__file__).parent))
        run_rank()
    else:
        test_two_gpus()
