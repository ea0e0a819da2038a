# SPDX-License-Identifier: Apache-2.0
"""What one rank of a torch process group does for test_ranks.py: every function `check_...`, whose outcomes it writes as JSON.

python rank_checks.py RANK SIZE STORE RESULT
"""

import contextlib
import functools
import io
import json
import sys
import tempfile
import traceback
import unittest.mock
import warnings
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import branch_checks
import ingot
import mesh_checks
import mixed_checks
import number_checks
import one_program_checks
import pytest
import shard_checks
import staged_checks
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import uneven_checks
from accuracy import assert_accurate
from ingot import ranks
from rank_models import PLAN, Shard, whole_block
from small_models import Function
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

WHOLE = {"require_full_compilation": True}
NUMBERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8)  # fmt: skip


def ways(model: nn.Module, inputs: list[torch.Tensor], size: int) -> list[Callable[..., Any]]:
    """The model compiled ahead of time and, by few ranks, just in time."""
    module = ingot.compile(model, inputs=inputs, **WHOLE)
    return [module, module.engine, *([just_in_time(model)] if size == 2 else [])]


def just_in_time(model: Callable[..., Any]) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(model, backend="ingot", options=WHOLE)


def values(dtype: torch.dtype, shape: tuple[int, ...], rank: int) -> torch.Tensor:
    """Small whole numbers, whose sums every dtype holds."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + rank * 3) % 5).reshape(shape).to(dtype)


def reductions(*inputs: torch.Tensor) -> list[torch.Tensor]:
    group = dist.group.WORLD
    results = []
    for x in inputs:
        results += [funcol.all_reduce(x + 1, kind, group) for kind in ("sum", "max", "min", "product")]
        results.append(funcol.reduce_scatter_tensor(x + 2, "sum", 0, group))
        results.append(funcol.all_gather_tensor(x * 2, 0, group))
        results.append(funcol.broadcast(x + 3, group.size() - 1, group))
    return [result + 0 for result in results]


def check_collectives_of_each_dtype(rank: int, size: int) -> None:
    inputs = [values(dtype, (4 * size, 3), rank) for dtype in NUMBERS]
    expected = reductions(*inputs)
    for compiled in ways(Function(reductions), inputs, size):
        for got, wanted in zip(compiled(*inputs), expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def check_averages(rank: int, size: int) -> None:
    """Gloo has none: their definition is the expected value."""

    def average(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x * 1, "avg", dist.group.WORLD)

    for dtype in (torch.float32, torch.bfloat16):
        x = values(dtype, (5, 7), rank)
        expected = sum(values(torch.float64, (5, 7), other) for other in range(size)) / size
        got = ingot.compile(Function(average), inputs=[x], **WHOLE)(x)
        torch.testing.assert_close(got, expected.to(dtype), rtol=0, atol=0)


def check_rows_to_each_rank(rank: int, size: int) -> None:
    """As a mixture of experts moves its tokens: evenly, and by sizes that differ between the ranks."""
    group = dist.group.WORLD
    counts = [[(source + target) % 3 + 1 for target in range(size)] for source in range(size)]
    sent, received = counts[rank], [counts[other][rank] for other in range(size)]

    def even(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_to_all_single(x * 2, None, None, group) + 1

    def uneven(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_to_all_single(x * 2, received, sent, group) + 1

    for function, rows in ((even, 2 * size), (uneven, sum(sent))):
        x = values(torch.float32, (rows, 4), rank)
        expected = function(x)
        for compiled in ways(Function(function), [x], size):
            torch.testing.assert_close(compiled(x), expected, rtol=0, atol=0)


def check_sizes_that_vary(rank: int, size: int) -> None:
    """One engine for all sizes; those that cannot be divided among the ranks are not its."""

    def gather(x: torch.Tensor) -> torch.Tensor:
        total = funcol.all_reduce(x * 2, "sum", dist.group.WORLD)
        return funcol.all_gather_tensor(total + 1, 0, dist.group.WORLD)

    def scatter(x: torch.Tensor) -> torch.Tensor:
        return funcol.reduce_scatter_tensor(x * 2, "sum", 0, dist.group.WORLD) + 1

    rows = torch.export.Dim("rows", min=1, max=64)
    example = values(torch.float32, (2 * size, 3), rank)
    program = torch.export.export(Function(gather), (example,), dynamic_shapes=(({0: rows},),))
    module = ingot.compile(program, **WHOLE)
    for count in (1, 5, 64):
        x = values(torch.float32, (count, 3), rank)
        torch.testing.assert_close(module(x), gather(x), rtol=0, atol=0)
    torch.compiler.reset()
    compiled = torch.compile(scatter, backend="ingot", options=WHOLE, dynamic=True)
    for count in (2, 5, 8):
        x = values(torch.float32, (count * size, 3), rank)
        torch.testing.assert_close(compiled(x), scatter(x), rtol=0, atol=0)
    assert len(ingot.report(compiled).engines) == 1


def check_block_of_dtensors(rank: int, size: int) -> None:
    """torch's own tensor parallelism, just in time."""
    whole, x = whole_block()
    exact = whole_block()[0].double()(x.double())
    sharded = parallelize_module(whole, init_device_mesh("cpu", (size,)), PLAN)
    eager = sharded(x)
    compiled = just_in_time(sharded)
    for _ in range(2):
        assert_accurate(compiled(x), eager, exact)
    report = ingot.report(compiled)
    assert not report.fallbacks, report.fallbacks
    calls = [node.op for segment in report.segments for node in segment.nodes]
    assert sum("all_reduce" in call for call in calls) == 2, calls
    # This rank's parts are the engine's weights, and watched like others.
    assert len(report.engines[0].inputs()) == 1, report.engines[0].inputs()
    halved = whole_block()[0].double()
    with torch.no_grad():
        for weight in [*sharded.parameters(), *halved.parameters()]:
            (weight.to_local() if hasattr(weight, "to_local") else weight).mul_(0.5)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for _ in range(2):
            assert_accurate(compiled(x), sharded(x), halved(x.double()))


def check_the_page(rank: int, size: int) -> None:
    """The model of docs/ranks.md, in the process group that there is."""
    page = (Path(__file__).parents[2] / "docs" / "ranks.md").read_text(encoding="utf-8")
    text = page.split("```python\n")[1].split("```")[0]
    for line in ('dist.init_process_group("gloo")\n', "dist.destroy_process_group()\n"):
        assert line in text
        text = text.replace(line, "")
    printed = io.StringIO()
    names: dict[str, Any] = {}
    torch.compiler.reset()
    with contextlib.redirect_stdout(printed):
        exec(text, names)
    assert printed.getvalue() == "tensor(True)\n"
    assert not ingot.report(names["compiled"]).fallbacks


def check_block_by_hand(rank: int, size: int) -> None:
    """Ahead of time, just in time, saved and loaded; and one engine without weights for all ranks."""
    whole, x = whole_block()
    exact = whole_block()[0].double()(x.double())
    shard = Shard(whole, rank, size).eval()
    eager = shard(x)
    compiled = ways(shard, [x], size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.ingot"
        compiled[1].save(path)
        loaded = ingot.Engine.load(path)
        shared = Path(sys.argv[3]).with_name("shared.ingot")
        if rank == 0:
            ingot.compile(shard, inputs=[x], rank="any", strip_engine_weights=True, **WHOLE).engine.save(
                shared
            )
        dist.barrier()
        from_shared = ingot.Engine.load(shared, weights=dict(shard.named_parameters()))
        for each in (*compiled, loaded, from_shared):
            assert_accurate(each(x), eager, exact)


def check_only_its_rank_runs_an_engine(rank: int, size: int) -> None:
    """What depends on the rank is a constant in a trace: correct where it was traced, refused elsewhere."""
    torch.manual_seed(3)
    table = torch.randn(8 * size, 4)
    own, first = table[rank * 8 : rank * 8 + 8], rank * 8

    def embed(ids: torch.Tensor) -> torch.Tensor:
        is_own = (ids >= first) & (ids < first + 8)
        rows = nn.functional.embedding(torch.where(is_own, ids - first, 0), own)
        return funcol.all_reduce(torch.where(is_own.unsqueeze(-1), rows, 0.0), "sum", dist.group.WORLD)

    ids = torch.tensor([0, 3, 8 * size - 1, 9, 5])
    module = ingot.compile(Function(embed), inputs=[ids], **WHOLE)
    for compiled in (module, just_in_time(embed)):
        torch.testing.assert_close(compiled(ids), table[ids], rtol=0, atol=0)
    if rank == 0:
        module.engine.save(Path(sys.argv[3]).with_name("rank0.ingot"))
    dist.barrier()
    engine = ingot.Engine.load(Path(sys.argv[3]).with_name("rank0.ingot"))
    if rank != 0:
        with pytest.raises(ingot.UserError, match="was built by rank 0 of group") as info:
            engine(ids)
        assert info.value.code == "INGOT-U351"


def check_groups_of_some_ranks(rank: int, size: int) -> None:
    """A mesh of two dims, or a group of all but one; each program names its own."""
    groups = [dist.new_group([r for r in range(size) if r % 2 == parity]) for parity in (0, 1)]
    own = groups[rank % 2]

    def both(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(funcol.all_reduce(x * 1, "sum", own) + 1, "max", dist.group.WORLD)

    x = values(torch.float32, (3, 3), rank)
    module = ingot.compile(Function(both), inputs=[x], **WHOLE)
    torch.testing.assert_close(module(x), both(x), rtol=0, atol=0)
    expected = (
        {own.group_name, dist.group.WORLD.group_name} if own.size() > 1 else {dist.group.WORLD.group_name}
    )
    assert expected <= set(ingot.distributed.group_names(module)), ingot.distributed.group_names(module)


def check_parts_in_torch(rank: int, size: int) -> None:
    """Collectives in torch and in engines keep their order; torch waits for those that it began."""

    def mixed(x: torch.Tensor) -> torch.Tensor:
        x = funcol.all_reduce(x + 1, "sum", dist.group.WORLD)
        x = funcol.all_reduce(x.long() * 3, "bor", dist.group.WORLD)
        return funcol.all_reduce(x.float() * 2, "max", dist.group.WORLD)

    x = values(torch.float32, (64, 64), rank)
    expected = mixed(x)
    torch.compiler.reset()
    compiled = torch.compile(mixed, backend="ingot")
    torch.testing.assert_close(compiled(x), expected, rtol=0, atol=0)
    assert {node.op.rsplit(".", 2)[-2] for node in ingot.report(compiled).fallbacks} >= {
        "all_reduce",
        "wait_tensor",
    }


def check_in_place_collectives(rank: int, size: int) -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        total = x * 2
        dist.all_reduce(total)
        return total + 1

    x = values(torch.float32, (5, 3), rank)
    torch.testing.assert_close(just_in_time(doubled)(x), doubled(x), rtol=0, atol=0)


def check_collectives_without_a_reader(rank: int, size: int) -> None:
    """They are run all the same: the other ranks wait for this one."""

    def dropped(x: torch.Tensor) -> torch.Tensor:
        funcol.all_reduce(x * 2, "sum", dist.group.WORLD)
        return funcol.all_reduce(x * 3, "sum", dist.group.WORLD)

    x = values(torch.float32, (5, 3), rank)
    module = ingot.compile(Function(dropped), inputs=[x], **WHOLE)
    torch.testing.assert_close(module(x), dropped(x), rtol=0, atol=0)


def check_builds_tell_that_the_rank_is_alive(rank: int, size: int) -> None:
    """From the connection to the end of the build, so that its time does not count."""

    def total(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x * 1, "sum", dist.group.WORLD)

    def build(names: Iterable[str]) -> None:
        connect_groups(names)
        at_work.append(len(ranks._connections._works))

    x = values(torch.float32, (3,), rank)
    connect_groups, at_work = ranks.connect_groups, []
    with unittest.mock.patch.object(ranks, "connect_groups", build):
        module = ingot.compile(Function(total), inputs=[x], **WHOLE)
    assert at_work[0] == len(ranks._connections.groups) > 0
    assert not ranks._connections._works
    torch.testing.assert_close(module(x), total(x), rtol=0, atol=0)


def check_modes_of_the_peer(rank: int, size: int) -> None:
    """`distributed_context` and `set_distributed_mode`: a module that was traced with one group runs with another."""

    def total(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x * 1, "sum", dist.group.WORLD)

    x = values(torch.float32, (4,), rank)
    module = ingot.compile(Function(total), inputs=[x], **WHOLE)
    other = dist.new_group(list(range(size)))
    (core,) = ingot.report(module).engines
    with ingot.distributed.distributed_context(other, module) as same:
        torch.testing.assert_close(same(x), total(x), rtol=0, atol=0)
    assert not core.groups()
    torch.testing.assert_close(
        ingot.distributed.set_distributed_mode(other, module)(x), total(x), rtol=0, atol=0
    )


def check_a_new_connection_after_a_failure(rank: int, size: int) -> None:
    """The last: a rank that has inputs of other sizes ends the calls of all, who then connect again."""

    def total(x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x * 1, "sum", dist.group.WORLD)

    rows = torch.export.Dim("rows", min=1, max=64)
    x = values(torch.float32, (4, 2), rank)
    module = ingot.compile(
        torch.export.export(Function(total), (x,), dynamic_shapes=(({0: rows},),)), **WHOLE
    )
    torch.testing.assert_close(module(x), total(x), rtol=0, atol=0)
    for code in ("INGOT-D351", "INGOT-D352"):
        with pytest.raises(ingot.DeviceError) as info:
            module(values(torch.float32, (4 + (rank == 0), 2), rank))
        assert info.value.code == code, info.value
    dist.barrier()
    ingot.distributed.connect(deadline=60)
    torch.testing.assert_close(module(x), total(x), rtol=0, atol=0)


IN_FOLDERS = {
    "one_program_of_all_traces": one_program_checks.check,
    "parts_of_different_sizes": uneven_checks.check,
    "sizes_that_vary_and_depend_on_the_rank": mixed_checks.check,
    "branches": branch_checks.check,
    "numbers_of_calls": number_checks.check,
    "one_checkpoint_for_all_ranks": shard_checks.check,
}
check_staged_builds = staged_checks.check
OF_TWO = [
    *IN_FOLDERS,
    *(name[6:] for name in globals() if name.startswith("check_")),  # a failure of the group comes last
]
OF_FOUR = [
    "averages",
    "rows_to_each_rank",
    "block_by_hand",
    *IN_FOLDERS,
    "a_mesh_of_groups",
    "staged_builds",
    "groups_of_some_ranks",
]


def checks_of(size: int) -> dict[str, Callable[[int, int], None]]:
    """Of four ranks those that have more to do than with two."""
    folder = Path(sys.argv[3]).parent if len(sys.argv) > 3 else Path()
    in_folder = {**IN_FOLDERS, "a_mesh_of_groups": mesh_checks.check}
    return {
        name: functools.partial(in_folder[name], folder) if name in in_folder else globals()[f"check_{name}"]
        for name in (OF_TWO if size == 2 else OF_FOUR)
    }


def outcome(check: Callable[[int, int], None], rank: int, size: int) -> str:
    try:
        check(rank, size)
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    rank, size = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=size,
                            timeout=timedelta(seconds=120))  # fmt: skip
    ingot.distributed.connect(deadline=120)
    with torch.no_grad():
        outcomes = {name: outcome(check, rank, size) for name, check in checks_of(size).items()}
    Path(sys.argv[4]).write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
