# SPDX-License-Identifier: Apache-2.0
"""Models whose traces differ between ranks, and one program for all of them, for rank_checks.py."""

import time
import unittest.mock
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from ingot import ranks
from torch import nn


class Table(nn.Module):
    """A vocabulary that is divided among the ranks: which ids are this rank's is a number in its trace."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = rank * 8
        self.own = nn.Parameter(torch.randn(8 * size, 4)[self.first : self.first + 8].clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        is_own = (ids >= self.first) & (ids < self.first + 8)
        rows = nn.functional.embedding(torch.where(is_own, ids - self.first, 0), self.own)
        return funcol.all_reduce(torch.where(is_own.unsqueeze(-1), rows, 0.0), "sum", dist.group.WORLD)


class Slices(nn.Module):
    """Each rank takes other rows."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.first = 2 * rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x[self.first : self.first + 2] * 1, "sum", dist.group.WORLD)


class Positions(nn.Module):
    """Where this rank takes and writes elements, in all the ways that Python has."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rank, size = self.rank, self.size
        own, whole = slice(2 * rank, 2 * rank + 2), x[: 2 * size]
        taken = x[own] * 2 + x[rank - size]  # at an index from the end
        taken = taken + whole.chunk(size)[rank] + whole.split(2)[size - 1 - rank]
        taken = taken + whole.view(size, 2, -1).unbind(0)[rank]
        taken = taken + y[..., rank : rank + 6 : 2] + torch.narrow(y, 1, 2 * rank, 3)
        written = torch.zeros_like(x)
        written[own] = taken
        written[:, rank % 3] = y[0, : len(x)]
        written[2 * rank : 2 * rank + 4 : 2] += 1  # every other row
        return funcol.all_reduce(written, "sum", dist.group.WORLD)


class Other(nn.Module):
    """Each rank computes something else."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x.sin() if self.rank else x.cos(), "sum", dist.group.WORLD)


class Integers(nn.Module):
    """A scalar whose tensor would promote integers."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.part = 0.5 + rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x + self.part, "sum", dist.group.WORLD)


class Derived(nn.Module):
    """Its inputs have 4 * h rows and 2 * w + 1 columns: positions and numbers follow from these and from the rank."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        x = x * (1 + rows * self.rank) + self.rank * (columns // 2)
        x = nn.functional.max_pool2d(x[None], (4, 1))[0]
        part = x[: rows // 4 - self.rank].sum(0) + x.new_full((columns,), columns * self.rank)
        return funcol.all_reduce(part[self.rank :][: columns - self.size], "sum", dist.group.WORLD)


def check_derived_sizes(rank: int, size: int) -> None:
    """As a module, an engine, in stages, and a part of it in torch."""
    h, w = torch.export.Dim("h", min=size + 2, max=size + 9), torch.export.Dim("w", min=size, max=size + 9)
    model = Derived(rank, size)
    example = torch.ones(4 * size + 12, 2 * size + 3)
    program = torch.export.export(model, (example,), dynamic_shapes=({0: 4 * h, 1: 2 * w + 1},))
    compiled: list[Any] = [
        ingot.compile(program, rank="all"),
        ingot.build(program, rank="all"),
        ingot.compile(program, rank="all", staged=True, staged_first_level=1, optimization_level=3),
        ingot.compile(program, rank="all", torch_executed_ops=["aten.sum.dim_IntList"]),
    ]
    for run in compiled:
        for rows, columns in ((size + 2, size), (size + 3, size + 9), (size + 9, size + 4)):
            x = torch.arange(4.0 * rows)[:, None] + torch.arange(2.0 * columns + 1)
            torch.testing.assert_close(run(x), model(x))


def refuse(module: nn.Module, x: torch.Tensor, what: str) -> ingot.UserError:
    with pytest.raises(ingot.UserError, match=what) as info:
        ingot.compile(module, inputs=[x], rank="all", require_full_compilation=True)
    assert info.value.code == "INGOT-U359"
    return info.value


def check(folder: Path, rank: int, size: int) -> None:
    """Of the traces of all ranks: numbers that differ are constants per rank, and what differs otherwise is refused by name."""
    table = Table(rank, size).eval()
    ids = torch.tensor([0, 3, 8 * size - 1, 9, 5])
    eager = table(ids)
    options = {"require_full_compilation": True, "strip_engine_weights": True}
    module = ingot.compile(table, inputs=[ids], rank="all", shards=[f"own:0/{size}"], **options)
    module.engine.save(folder / f"table{rank}.ingot")
    dist.barrier()
    files = [(folder / f"table{other}.ingot").read_bytes() for other in range(size)]
    assert all(file == files[0] for file in files)
    whole = torch.cat([Table(other, size).own for other in range(size)])
    for weights in (dict(table.named_parameters()), {"own": whole}):
        engine = ingot.Engine.load(folder / "table0.ingot", weights=weights)
        torch.testing.assert_close(engine(ids), eager, rtol=0, atol=0)
    torch.compiler.reset()
    compiled = torch.compile(
        table, backend="ingot", options={"rank": "all", "require_full_compilation": True}
    )
    torch.testing.assert_close(compiled(ids), eager, rtol=0, atol=0)
    check_positions(folder, rank, size)
    check_failures_of_one_rank(rank, size)
    check_traces_that_fail_on_one_rank(rank, size)
    check_wrong_options_on_one_rank(rank, size)
    check_traces_of_torch_that_fail_on_one_rank(rank, size)
    check_derived_sizes(rank, size)
    if size == 4:
        check_two_groups_at_once(rank)
    error = refuse(
        Other(rank), torch.ones(2 * size, 3), r"the program depends on the rank .* the operator is aten.cos"
    )
    assert error.node == ("sin" if rank else "cos")
    assert "one_program_checks.py" in error.source
    refuse(Integers(rank), torch.arange(3), r"the result is torch.float64, not torch.float32")
    equal = ingot.compile(
        Slices(0), inputs=[torch.ones(2 * size, 3)], rank="all", require_full_compilation=True
    )
    assert equal.engine(torch.ones(2 * size, 3)).sum() == 6 * size


def check_failures_of_one_rank(rank: int, size: int) -> None:
    """The others hear what is wrong there instead of waiting, and the next build is that of all again."""
    x = torch.ones(2 * size, 3)
    program = torch.export.export(Slices(0), (x,))
    for _ in range(2):
        given = [x, x] if rank == size - 1 else [x]
        with pytest.raises(ingot.Error) as info:
            ingot.dynamo.compile(program, inputs=given, rank="all")
        if rank == size - 1:
            assert info.value.code != "INGOT-D350"
        else:
            assert info.value.code == "INGOT-D350"
            assert f"rank {size - 1} did not build the program: [INGOT-U" in str(info.value)
        dist.barrier()  # so that none begins the next build before all have ended this one
        module = ingot.dynamo.compile(program, inputs=[x], rank="all", require_full_compilation=True)
        assert module.engine(x).sum() == 6 * size


class Doubled(nn.Module):
    """A trace of it fails unless it is to be traced."""

    def __init__(self, group: dist.ProcessGroup, is_traced: bool = True) -> None:
        super().__init__()
        self.is_traced, self.group = is_traced, group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.is_traced:
            raise RuntimeError("no trace\nof this model")
        return funcol.all_reduce(x * 2, "sum", self.group)


class Tripled(Doubled):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x * 1.5)


def check_traces_that_fail_on_one_rank(rank: int, size: int) -> None:
    """Before its build begins; also if ranks compile other models in between, alone or in smaller groups."""
    x = torch.ones(2, 3)
    options = {"inputs": [x], "rank": "all", "require_full_compilation": True}

    def build(kind: type[Doubled], group: dist.ProcessGroup) -> None:
        total = kind(group)(x).sum()
        assert ingot.compile(kind(group), **options).engine(x).sum() == total

    pair = dist.new_group([0, 1])
    for group, last in ((dist.group.WORLD, size - 1), (pair, 1), (dist.group.WORLD, 0)):
        if rank == 0:  # alone
            assert ingot.compile(nn.ReLU(), **options).engine(x).sum() == 6
        dist.barrier()  # so that none waits for a model of the same kind in another group
        if group is pair and rank > 1:
            dist.barrier()
            continue
        for kind in (Doubled, Doubled, Tripled, Doubled):
            fail(kind(group, rank != last), options, None if rank == last else last)
        build(Tripled, group)
        for kind in (Doubled, Tripled):
            fail(kind(group, rank != last), options, None if rank == last else last)
            build(kind, group)
        for kind in (Doubled, Tripled):  # on all ranks: none of them waits
            fail(kind(group, False), options)
        build(Doubled, group)
        if group is pair:
            dist.barrier()
    build(Tripled, dist.group.WORLD)


def check_wrong_options_on_one_rank(rank: int, size: int) -> None:
    """Each way to compile tells the others; the next build is that of all again."""
    x = torch.ones(2, 3)
    model = Doubled(dist.group.WORLD)
    program = torch.export.export(model, (x,))
    ways: list[Callable[..., Any]] = [
        lambda **options: ingot.compile(model, inputs=[x], **options),
        lambda **options: ingot.compile(model, ir="torch_compile", **options)(x),
        lambda **options: ingot.compile(program, **options),
        lambda **options: ingot.dynamo.compile(program, **options),
        lambda **options: ingot.build(program, **options),
        lambda **options: ingot.MutableModule(model, **options)(x),
        lambda **options: torch.compile(model, backend="ingot", options=options)(x),
    ]
    for way in ways:
        for wrong in ({"level": 5}, {"optimization_level": 17}, {"min_block_size": "x"}):
            torch.compiler.reset()
            with pytest.raises(ingot.Error) as info:
                way(rank="all", **(wrong if rank == size - 1 else {}))
            if rank == size - 1:
                assert info.value.code in ("INGOT-U001", "INGOT-U002"), info.value
            else:
                assert f"rank {size - 1} did not build the program: [INGOT-U00" in str(info.value), info.value
            dist.barrier()
        torch.compiler.reset()
        way(rank="all")


class Multiplied(nn.Module):
    """Dynamo cannot trace it with a weight of other sizes."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(rows, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x @ self.weight, "sum", dist.group.WORLD)


def check_traces_of_torch_that_fail_on_one_rank(rank: int, size: int) -> None:
    """`ingot.compile` tells the others. With `torch.compile` nothing of Ingot has run there yet: they wait, and name that rank."""
    x = torch.ones(2, 3)
    options = {"rank": "all", "require_full_compilation": True}
    ways: dict[str, Callable[[nn.Module], Any]] = {
        "did not build the program: TorchRuntimeError": lambda model: ingot.compile(
            model, ir="torch_compile", **options
        ),
        "did not build the program within 2 s": lambda model: torch.compile(
            model, backend="ingot", options=options
        ),
    }
    for told, way in ways.items():
        for failing in (size - 1, 0):
            torch.compiler.reset()
            compiled = way(Multiplied(4 if rank == failing else 3))
            with unittest.mock.patch.object(ranks, "DEADLINE", 2.0 if "within" in told else ranks.DEADLINE):
                if rank == failing:
                    with pytest.raises(RuntimeError, match="reduction dim"):
                        compiled(x)
                else:
                    with pytest.raises(ingot.DeviceError, match=f"rank {failing} {told}") as info:
                        compiled(x)
                    assert info.value.code == "INGOT-D350"
            dist.barrier()
            torch.compiler.reset()
            assert way(Multiplied(3))(x).sum() == 18 * size


def check_two_groups_at_once(rank: int) -> None:
    """A failure is told in the group that the model was for, also if a rank is in two."""
    pairs = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    options = {"inputs": [torch.ones(2, 3)], "rank": "all"}
    if rank == 0:
        fail(Doubled(pairs[0]), options, 1)
    elif rank == 1:
        fail(Doubled(pairs[0], is_traced=False), options)
        time.sleep(0.5)  # rank 2 looks for failures
    if rank in (1, 2):
        ingot.compile(Doubled(pairs[1]), require_full_compilation=True, **options)
    if rank in (0, 1):
        ingot.compile(Doubled(pairs[0]), require_full_compilation=True, **options)
    dist.barrier()


def fail(model: nn.Module, options: dict[str, Any], rank: int | None = None) -> None:
    """On this rank, or on another one."""
    if rank is None:
        with pytest.raises(RuntimeError, match="no trace\nof"):
            ingot.compile(model, **options)
        return
    with pytest.raises(ingot.DeviceError) as info:
        ingot.compile(model, **options)
    assert info.value.code == "INGOT-D350"
    assert f"rank {rank} did not build the program: RuntimeError: no trace\n" in str(info.value), info.value


def check_positions(folder: Path, rank: int, size: int) -> None:
    """One file for all ranks, of which each takes and writes its own elements."""
    torch.manual_seed(4)
    x, y = torch.randn(2 * size + 2, 3), torch.randn(2, 2 * size + 6)
    for name, model, inputs in (("slices", Slices(rank), [x]), ("positions", Positions(rank, size), [x, y])):
        module = ingot.compile(model, inputs=inputs, rank="all", require_full_compilation=True)
        module.engine.save(folder / f"{name}{rank}.ingot")
        dist.barrier()
        files = [(folder / f"{name}{other}.ingot").read_bytes() for other in range(size)]
        assert all(file == files[0] for file in files)
        steps = [step["name"] for step in module.engine.inspect()["main"]["steps"]]
        assert steps.count("all_reduce") == 1, steps
        assert not [step for step in steps if "reduce_scatter" in step or "take" in step], steps
        for engine in (module.engine, ingot.Engine.load(folder / f"{name}0.ingot")):
            torch.testing.assert_close(engine(*inputs), model(*inputs))
        torch.compiler.reset()
        compiled = torch.compile(
            model, backend="ingot", options={"rank": "all", "require_full_compilation": True}
        )
        torch.testing.assert_close(compiled(*inputs), model(*inputs))
