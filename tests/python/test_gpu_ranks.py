# SPDX-License-Identifier: Apache-2.0
"""Models on two GPUs, one per rank: each is one engine with its collectives, by NCCL in its CUDA graph, against torch on NCCL.

python tests/python/test_gpu_ranks.py block        # on a machine with two GPUs, also through pytest
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch

RANKS = 2
CHECKS = ("collectives", "block", "gloo", "killed", "stopped", "caller", "one_program")


@pytest.mark.skipif(torch.cuda.device_count() < RANKS, reason="there are not two GPUs")
@pytest.mark.parametrize("check", CHECKS)
def test_two_gpus(check: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryFile("w+") as log:  # children of a rank that ended may hold a pipe open
        ranks = [
            subprocess.Popen(
                [sys.executable, __file__, check, "rank"],
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(port), "NCCL_NVLS_ENABLE": "0"},
                stdout=log, stderr=subprocess.STDOUT)
            for rank in range(RANKS)
        ]  # fmt: skip
        try:
            for rank in ranks[:1] if check in ("killed", "stopped") else ranks:
                status = rank.wait(timeout=300)
                log.seek(0)
                assert status == 0, log.read()
        finally:
            for rank in ranks:
                rank.kill()


def collectives(rank: int) -> None:
    import rank_checks

    inputs = [rank_checks.values(dtype, (4 * RANKS, 3), rank).cuda() for dtype in rank_checks.NUMBERS]
    compare(rank_checks.reductions, inputs)

    def averages(*values: torch.Tensor) -> list[torch.Tensor]:
        import torch.distributed._functional_collectives as funcol

        group = torch.distributed.group.WORLD
        return [funcol.all_reduce(x * 1, "avg", group) + 0 for x in values]

    compare(averages, [x for x in inputs if x.is_floating_point()])
    counts = [[1, 3], [2, 1]]

    def uneven(x: torch.Tensor) -> torch.Tensor:
        import torch.distributed._functional_collectives as funcol

        received = [counts[other][rank] for other in range(RANKS)]
        return funcol.all_to_all_single(x * 2, received, counts[rank], torch.distributed.group.WORLD) + 1

    compare(uneven, [rank_checks.values(torch.bfloat16, (sum(counts[rank]), 4), rank).cuda()])


def compare(function: object, inputs: list[torch.Tensor]) -> None:
    """Equal bits, at once and from a graph: the numbers are small and whole."""
    import ingot
    import rank_checks

    expected = function(*inputs)
    model = rank_checks.Function(function)
    for compiled in (
        ingot.compile(model, inputs=inputs, **rank_checks.WHOLE),
        rank_checks.just_in_time(model),
    ):
        for _ in range(3):
            torch.testing.assert_close(compiled(*inputs), expected, rtol=0, atol=0)


def block(rank: int) -> None:
    import ingot
    from accuracy import assert_accurate
    from rank_models import PLAN, Shard, whole_block
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import parallelize_module

    x = whole_block()[1]
    exact = whole_block()[0].double()(x.double())
    for dtype in (torch.float32, torch.bfloat16):
        given = x.to("cuda", dtype)
        model = whole_block()[0].to("cuda", dtype)
        shard = Shard(model, rank, RANKS).to("cuda", dtype).eval()
        sharded = parallelize_module(model, init_device_mesh("cuda", (RANKS,)), PLAN)
        for each in (shard, sharded):
            eager = each(given)
            torch.compiler.reset()
            compiled = torch.compile(each, backend="ingot")
            results = [compiled(given) for _ in range(4)]
            for result in results:
                assert result.device == given.device
                assert_accurate(result.cpu(), eager.cpu(), exact)
                assert torch.equal(result, results[0])
            report = ingot.report(compiled)
            assert not report.fallbacks, report.fallbacks
            assert len(report.engines) == 1


gloo = block  # torch's own group is of gloo


def killed(rank: int, how: signal.Signals = signal.SIGKILL) -> None:
    """The others' work on the GPU ends, and the call after it names the rank."""
    import ingot
    import rank_checks

    ingot.distributed.connect(deadline=6)
    x = torch.ones(4 * RANKS, 3, device="cuda")
    compiled = ingot.compile(rank_checks.Function(rank_checks.reductions), inputs=[x], **rank_checks.WHOLE)
    for _ in range(3):
        compiled(x)
    torch.cuda.synchronize()
    if rank == 1:
        os.kill(os.getpid(), how)
    time.sleep(0.2)
    begun = time.monotonic()

    def call() -> None:
        for _ in range(2):
            compiled(x)
            torch.cuda.synchronize()  # the work has ended, without results

    with pytest.raises(ingot.DeviceError, match="rank 1 ") as caught:
        call()
    assert caught.value.code == "INGOT-D350"
    assert time.monotonic() - begun < 25
    os._exit(0)  # torch's own group would wait for rank 1


def stopped(rank: int) -> None:
    killed(rank, signal.SIGSTOP)


def caller(rank: int) -> None:
    """In a graph of the caller, and on a stream of the caller."""
    import ingot
    from rank_models import Shard, whole_block

    model, x = whole_block()
    given = x.to("cuda", torch.bfloat16)
    shard = Shard(model.to("cuda", torch.bfloat16), rank, RANKS).to("cuda", torch.bfloat16).eval()
    module = ingot.compile(shard, inputs=[given], require_full_compilation=True)
    expected = module(given)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert torch.equal(module(given), expected)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = module(given)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, expected)
    del graph


def one_program(rank: int) -> None:
    """Of the traces of all ranks: sizes, positions and constants of each rank's own, each in one engine."""
    import ingot
    import one_program_checks
    import uneven_models

    torch.manual_seed(4)
    torch.set_default_device("cuda")  # also of what the models make themselves
    cases = [(model, [x]) for model, x in uneven_models.cases(rank, RANKS)]
    x, y = torch.randn(2 * RANKS + 2, 3), torch.randn(2, 2 * RANKS + 6)
    cases.append((one_program_checks.Positions(rank, RANKS), [x, y]))
    for model, inputs in cases:
        model, inputs = model.eval().cuda(), [each.cuda() for each in inputs]
        expected = model(*inputs)
        module = ingot.compile(model, inputs=inputs, rank="all", require_full_compilation=True)
        for _ in range(3):
            torch.testing.assert_close(module(*inputs), expected)


def run_rank(check: str) -> None:
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo" if check == "gloo" else "nccl")
    with torch.no_grad():
        globals()[check](rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.path.insert(0, str(Path(__file__).parent))
        run_rank(sys.argv[1])
    else:
        for each in sys.argv[1:] or CHECKS:
            test_two_gpus(each)
