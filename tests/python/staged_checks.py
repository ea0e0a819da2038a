# SPDX-License-Identifier: Apache-2.0
"""Staged builds of ranks, for rank_checks.py: all change engines between the same two calls, or none does."""

import copy
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ingot
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from ingot import staging
from ingot.staged_part import StagedPart
from ingot.staged_ranks import StagedRanks
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

PATIENCE = 120.0  # seconds; nothing takes as long
OPTIONS = {"staged": True, "staged_first_level": 1, "optimization_level": 3}


class Summed(nn.Module):
    """Of a rank's own part of a product, by a group."""

    def __init__(self, group: Any) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear, self.group = nn.Linear(16, 16), group

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(torch.relu(self.linear(x)), "sum", self.group)


class Crossed(nn.Module):
    """Sums over the two groups of a rank in a mesh of two by two: each rank is linked to all others."""

    def __init__(self, groups: list[Any]) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(funcol.all_reduce(x * 2, "sum", self.groups[0]) + 1, "sum", self.groups[1])


class Exchanges:
    """At which calls the engines of a process were exchanged."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    @contextmanager
    def watched(self) -> Iterator["Exchanges"]:
        exchange = StagedRanks._exchange

        def noted(staged: StagedRanks, stage: Any, better: Any) -> None:
            assert not staged._is_inside
            self.calls.append(staged._ended)
            exchange(staged, stage, better)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StagedRanks, "_exchange", noted)
            yield self


@contextmanager
def builds(change: Callable[[StagedPart, int], None]) -> Iterator[None]:
    """`change` runs before each build in the background."""
    build = StagedPart.better

    def better(part: StagedPart, level: int, *rest: Any) -> Any:
        change(part, level)
        return build(part, level, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagedPart, "better", better)
        yield


def states_of(module: Any) -> list[tuple[int, str]]:
    return [(stage.level, stage.state) for stage in ingot.report(module).stages]


def of_all(value: Any) -> list[Any]:
    """By rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def calls_until_tuned(module: Any, model: nn.Module, x: torch.Tensor, pause: float = 0.0) -> int:
    """Ranks end the calls together, as programs of several ranks have to."""
    truth, count = model(x), 0
    end = time.monotonic() + PATIENCE
    while True:
        torch.testing.assert_close(module(x), truth, rtol=1e-5, atol=1e-5)
        count += 1
        time.sleep(pause)
        if count % 5 == 0:
            is_done = ingot.wait_until_tuned(module, 0)
            if all(of_all(is_done)):
                return count
            assert time.monotonic() < end, states_of(module)


def check(rank: int, size: int) -> None:
    for case in (_without_calls, _during_calls, _just_in_time, _in_parts, _one_fails, _one_stops, _same_bits):
        case(rank, size)
    if size == 4:
        _in_a_mesh(rank)


def _compiled(rank: int, **options: Any) -> tuple[Any, nn.Module, torch.Tensor]:
    model, x = Summed(dist.group.WORLD).eval(), torch.full((3, 16), 1.0 + rank)
    return ingot.compile(model, inputs=[x], **{**OPTIONS, **options}), model, x


def _without_calls(rank: int, size: int) -> None:
    with Exchanges().watched() as exchanges:
        module, model, x = _compiled(rank)
        assert module.wait_until_tuned(PATIENCE)
        assert states_of(module) == [(1, "ran"), (3, "runs")]
        torch.testing.assert_close(module(x), model(x), rtol=1e-5, atol=1e-5)
    assert exchanges.calls == [0]


def _during_calls(rank: int, size: int) -> None:
    """Builds end at different times, and calls go on as fast as they can, or slowly."""
    for pause in (0.0, 0.01):
        with Exchanges().watched() as exchanges, builds(lambda *_: time.sleep(0.2 * rank)):
            module, model, x = _compiled(rank)
            twin = copy.deepcopy(module)
            calls_until_tuned(module, model, x, pause)
            assert states_of(module) == [(1, "ran"), (3, "runs")]
            calls_until_tuned(twin, model, x, pause)
            assert states_of(twin) == [(1, "ran"), (3, "runs")]
        assert of_all(exchanges.calls) == [exchanges.calls] * size


def _just_in_time(rank: int, size: int) -> None:
    model, x = Summed(dist.group.WORLD).eval(), torch.full((3, 16), 1.0 + rank)
    torch.compiler.reset()
    with Exchanges().watched() as exchanges:
        call = torch.compile(model, backend="ingot", options={**OPTIONS, "require_full_compilation": True})
        call(x)
        calls_until_tuned(call, model, x)
        assert states_of(call) == [(1, "ran"), (3, "runs")]
    assert of_all(exchanges.calls) == [exchanges.calls] * size


def _in_parts(rank: int, size: int) -> None:
    """Two engines with collectives, and torch between them."""

    class Parts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first = funcol.all_reduce(torch.relu(x) * 2, "sum", dist.group.WORLD)
            return funcol.all_reduce(torch.tanh(torch.sin(first)) * 3 + 1, "sum", dist.group.WORLD)

    model, x = Parts(), torch.full((3, 16), 1.0 + rank)
    with Exchanges().watched() as exchanges:
        module = ingot.compile(model, inputs=[x], torch_executed_ops=["aten.sin.default"], **OPTIONS)
        assert len(module.engines) == 2
        calls_until_tuned(module, model, x)
        assert states_of(module) == [(1, "ran"), (3, "runs")]
    assert of_all(exchanges.calls) == [exchanges.calls] * size


def _one_fails(rank: int, size: int) -> None:
    """It keeps all at the level that runs, and the next level may succeed."""

    def change(_part: StagedPart, level: int) -> None:
        if level == 3 and rank == size - 1:
            raise staging.NotTakenError("no memory")

    options = {"staged": True, "staged_first_level": 1, "optimization_level": 4}
    model, x = Summed(dist.group.WORLD).eval(), torch.full((3, 16), 1.0 + rank)
    with builds(change):
        module = ingot.compile(model, inputs=[x], **options)
        calls_until_tuned(module, model, x)
    assert states_of(module) == [(1, "ran"), (3, "is not taken"), (4, "runs")]
    reason = ingot.report(module).stages[1].reason
    assert (f"rank {size - 1} has no engine of level 3" in reason) == (rank != size - 1)
    assert "no memory" in reason


def _one_stops(rank: int, size: int) -> None:
    """Without an answer of all, the engines stay, and all are told why."""
    may_go = threading.Event()
    with builds(lambda *_: may_go.wait(PATIENCE)):
        module, model, x = _compiled(rank)
        if rank == 0:
            module.stop_tuning()
        dist.barrier()
        may_go.set()
        assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "is stopped")], ingot.report(module).stages
    assert rank == 0 or "rank 0 has stopped: it was stopped" in ingot.report(module).stages[1].reason
    torch.testing.assert_close(module(x), model(x), rtol=1e-5, atol=1e-5)


def _same_bits(rank: int, size: int) -> None:
    with pytest.raises(ingot.UserError, match="one rank alone"):
        _compiled(rank, staged="same_bits")


def _in_a_mesh(rank: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    model, x = Crossed([mesh.get_group("rows"), mesh.get_group("columns")]), torch.full((3, 4), 1.0 + rank)
    with Exchanges().watched() as exchanges, builds(lambda *_: time.sleep(0.1 * rank)):
        module = ingot.compile(model, inputs=[x], **OPTIONS)
        calls_until_tuned(module, model, x)
        assert states_of(module) == [(1, "ran"), (3, "runs")]
    assert of_all(exchanges.calls) == [exchanges.calls] * 4
