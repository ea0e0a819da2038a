# SPDX-License-Identifier: Apache-2.0
"""Models on two GPUs, one per rank: each is one engine with its collectives, by NCCL in its CUDA graph, against torch on NCCL.

python tests/python/test_gpu_ranks.py block killed        # on a machine with two GPUs, also through pytest

A check that does not end in time shows where its ranks are (watched_ranks.py), and the next one begins."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
import torch
from watched_ranks import WatchedRanks, enter_rank, say

RANKS = 2
CHECKS = {"collectives": 60, "block": 90, "gloo": 90, "killed": 45, "stopped": 45, "caller": 60, "one_program": 90}  # fmt: skip
"""Each with the seconds that it may take."""


@pytest.mark.skipif(torch.cuda.device_count() < RANKS, reason="there are not two GPUs")
@pytest.mark.parametrize("check", CHECKS)
def test_two_gpus(check: str) -> None:
    with WatchedRanks([sys.executable, __file__, check, "rank"], RANKS, CHECKS[check]) as ranks:
        problem = ranks.wait([0] if check in ("killed", "stopped") else list(range(RANKS)))
    assert not problem, problem


def collectives(rank: int) -> None:
    import rank_checks

    inputs = [rank_checks.values(dtype, (4 * RANKS, 3), rank).cuda() for dtype in rank_checks.NUMBERS]
    say("reductions of each dtype")
    compare(rank_checks.reductions, inputs)

    def averages(*values: torch.Tensor) -> list[torch.Tensor]:
        import torch.distributed._functional_collectives as funcol

        group = torch.distributed.group.WORLD
        return [funcol.all_reduce(x * 1, "avg", group) + 0 for x in values]

    say("averages")
    compare(averages, [x for x in inputs if x.is_floating_point()])
    counts = [[1, 3], [2, 1]]

    def uneven(x: torch.Tensor) -> torch.Tensor:
        import torch.distributed._functional_collectives as funcol

        received = [counts[other][rank] for other in range(RANKS)]
        return funcol.all_to_all_single(x * 2, received, counts[rank], torch.distributed.group.WORLD) + 1

    say("rows of another number to each rank")
    compare(uneven, [rank_checks.values(torch.bfloat16, (sum(counts[rank]), 4), rank).cuda()])


def compare(function: object, inputs: list[torch.Tensor]) -> None:
    """Equal bits, at once and from a graph: the numbers are small and whole."""
    import ingot
    import rank_checks

    expected = function(*inputs)
    model = rank_checks.Function(function)
    for name, compiled in (
        ("ahead of time", ingot.compile(model, inputs=inputs, **rank_checks.WHOLE)),
        ("just in time", rank_checks.just_in_time(model)),
    ):
        for k in range(3):
            say(f"call {k} of what was compiled {name}")
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
            say(f"{type(each).__name__} in {dtype}, eager")
            eager = each(given)
            torch.compiler.reset()
            compiled = torch.compile(each, backend="ingot")
            say("compiled")
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

    say("connects")
    ingot.distributed.connect(deadline=6)
    x = torch.ones(4 * RANKS, 3, device="cuda")
    say("compiles")
    compiled = ingot.compile(rank_checks.Function(rank_checks.reductions), inputs=[x], **rank_checks.WHOLE)
    for k in range(3):
        say(f"call {k}")
        compiled(x)
    say("synchronizes")
    torch.cuda.synchronize()
    if rank == 1:
        say(f"sends itself {how.name}")
        os.kill(os.getpid(), how)
    time.sleep(0.2)
    begun = time.monotonic()

    def call() -> None:
        for k in range(2):
            say(f"call {k} without rank 1")
            compiled(x)
            say("synchronizes")
            torch.cuda.synchronize()  # the work has ended, without results

    with pytest.raises(ingot.DeviceError, match="rank 1 ") as caught:
        call()
    taken = time.monotonic() - begun
    say(f"after {taken:.1f} s: {caught.value}")
    assert caught.value.code == "INGOT-D350"
    assert taken < 25
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
    say("on another stream")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert torch.equal(module(given), expected)
    torch.cuda.synchronize()
    say("captures")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = module(given)
    say("replays")
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, expected)
    del graph


def one_program(rank: int) -> None:
    """Of the traces of all ranks: sizes, positions and constants of each rank's own, each in one engine."""
    import ingot
    import mixed_models
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
        say(type(model).__name__)
        module = ingot.compile(model, inputs=inputs, rank="all", require_full_compilation=True)
        for _ in range(3):
            torch.testing.assert_close(module(*inputs), expected)
    for make in mixed_models.MODELS:
        model, x = make(rank, RANKS).eval().cuda(), torch.randn(4 * RANKS, 8)
        say(f"{make.__name__}, rows that vary")
        program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
        module = ingot.compile(program, rank="all", require_full_compilation=True)
        for count in (4 * RANKS, 2 * RANKS, 6 * RANKS, 4 * RANKS):
            x = torch.randn(count, 8)
            torch.testing.assert_close(module(x), model(x))


def run_rank(check: str) -> None:
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    say(f"torch {torch.__version__}, GPU {torch.cuda.get_device_name()}; joins torch's group")
    dist.init_process_group("gloo" if check == "gloo" else "nccl")
    say(f"begins {check}")
    with torch.no_grad():
        globals()[check](rank)
    say("passed; waits at torch's barrier")
    dist.barrier()
    say("destroys torch's group")
    dist.destroy_process_group()


def run_checks(checks: list[str]) -> int:
    """The exit status. Goes on after a check that failed."""
    problems = {}
    for check in checks:
        print(f"=== {check}, within {CHECKS[check]} s", flush=True)
        try:
            test_two_gpus(check)
        except AssertionError as error:
            problems[check] = str(error)
        print(f"=== {check}: {problems.get(check, 'passed')}", flush=True)
    print(f"=== {len(checks) - len(problems)} passed, failed: {problems}", flush=True)
    return int(bool(problems))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if len(sys.argv) > 2 and sys.argv[2] == "rank":
        enter_rank(lambda: run_rank(sys.argv[1]))
    else:
        sys.exit(run_checks(sys.argv[1:] or list(CHECKS)))
