# SPDX-License-Identifier: Apache-2.0
"""One engine of a staged build: what runs, what builds a better one, and the arguments of a call to try it on."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ingot import _core
from ingot.errors import InternalError
from ingot.speed import stopwatch
from ingot.traffic import Quiet

_LEVELS_BETWEEN = (3,)
_LAST_LEVEL = 5
_MOST_TURNS, _LEAST_TURNS, _TURNS_S = 20, 3, 0.2  # of a timing


def levels_after(first: int, wanted: str | None) -> list[int]:
    """The levels of the stages in the background. wanted: the user's optimization_level."""
    last = _LAST_LEVEL if wanted is None else int(wanted)
    return [level for level in dict.fromkeys((*_LEVELS_BETWEEN, last)) if first < level <= last]


@dataclass(eq=False)
class StagedPart:
    core: _core.Engine  # stays the same object; what it runs changes
    builder: _core.Builder
    options: Mapping[str, str]
    metadata: Mapping[str, str]
    session: Any  # of the cache; None: the process's
    cache: Any  # custom_engine_cache
    weights: Sequence[tuple[str, torch.Tensor]]  # what the builder reads
    positions: Sequence[int] = ()  # of the engine's tensors among the arguments of its runner
    runner: Any = None  # _core.Runner; None: the engine is called directly
    build: dict[str, Any] = field(default_factory=dict)  # what the build of the running engine reported
    sample: list[Any] | None = None  # copies of the tensors of a call, from before it
    wants_sample: bool = True

    def __deepcopy__(self, memo: dict[int, Any]) -> StagedPart:
        twin = copy.copy(self)
        memo[id(self)] = twin
        twin.core, twin.runner = copy.deepcopy(self.core, memo), copy.deepcopy(self.runner, memo)
        twin.build = copy.deepcopy(self.build, memo)
        return twin

    def take_sample(self, tensors: Sequence[Any]) -> None:
        self.sample, self.wants_sample = [copied(tensor) for tensor in tensors], False

    def better(self, level: int, threads: int, quiet: Quiet, proceed: Callable[..., bool]) -> Better:
        """The engine of a level. `proceed`: as `progress` of a build."""
        options = {**self.options, "optimization_level": str(level), "threads": str(threads)}
        core, report = self.builder.build(
            options, proceed, dict(self.metadata), self.session, self.cache, quiet
        )
        core.run_like(self.core)
        if ports_of(core) != ports_of(self.core):
            raise InternalError(
                f"the engine of level {level} has other inputs, outputs or states", code="INGOT-I001"
            )
        return Better(core, json.loads(report))


@dataclass
class Better:
    """An engine that may replace the running one."""

    core: _core.Engine
    build: dict[str, Any]


class Sampled:
    """A runner that copies its arguments when the part wants a sample."""

    def __init__(self, runner: Callable[[list], list], part: StagedPart) -> None:
        self.runner, self.part = runner, part

    def __call__(self, arguments: list) -> list:
        if self.part.wants_sample:
            self.part.take_sample([arguments[position] for position in self.part.positions])
        return self.runner(arguments)


def copied(tensor: Any) -> Any:
    """Of a torch tensor or an array."""
    return tensor.detach().clone() if isinstance(tensor, torch.Tensor) else copy.deepcopy(tensor)


def ports_of(core: _core.Engine) -> tuple:
    signature = json.loads(core.signature())
    del signature["target"]  # which tells the level
    return core.inputs(), core.outputs(), core.states(), signature


def bits_that_differ(running: _core.Engine, better: _core.Engine, sample: Sequence[Any]) -> str:
    """The first tensor that a call of the engines, or the call after it, leaves with other bits; "" if there is none.

    Both have the same states before. Arguments that a call updates are compared too.
    """
    better.copy_states(running)
    arguments = [[copied(tensor) for tensor in sample] for _ in range(2)]
    for call in ("", " of a second call"):
        results = [core.run(given) for core, given in zip((running, better), arguments, strict=True)]
        for what, (left, right) in (("output", results), ("input", arguments)):
            for k, (own, other) in enumerate(zip(left, right, strict=True)):
                if not _same_bits(own, other):
                    return f"{what} {k}{call}"
    return ""


def _same_bits(left: Any, right: Any) -> bool:
    left, right = torch.as_tensor(left), torch.as_tensor(right)
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    flat = [each.detach().contiguous().cpu().reshape(-1).view(torch.uint8) for each in (left, right)]
    return torch.equal(*flat)


def times_of(
    running: _core.Engine,
    better: _core.Engine,
    sample: Sequence[Any],
    quiet: Quiet,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Milliseconds of one call of each: the smallest of turns during which no call of the process's staged modules began."""
    arguments = [copied(tensor) for tensor in sample]
    seconds = stopwatch(arguments, clock)

    def one(core: _core.Engine) -> float:
        return quiet.undisturbed(lambda: seconds(lambda: core.run(arguments)))

    warm = one(running) + one(better)
    best = [float("inf")] * 2
    for _ in range(min(max(int(_TURNS_S / max(warm, 1e-9)), _LEAST_TURNS), _MOST_TURNS)):
        best = [min(least, one(core)) for least, core in zip(best, (running, better), strict=True)]
    return best[0] * 1e3, best[1] * 1e3
