# SPDX-License-Identifier: Apache-2.0
"""Nodes that an engine would run slower than torch: which are worth leaving to torch, and measured times of segments."""

from __future__ import annotations

import json
import logging
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node

from ingot import compat
from ingot.capture import Capture, Input, target_name
from ingot.settings import Settings
from ingot.slowness import Slowness

_log = logging.getLogger("ingot")

CROSSING_NS = 12_000  # per crossing between an engine and torch: the call, and the lost fusion
BYTES_PER_NS = 8  # values that cross are stored and reloaded,
GPU_BYTES_PER_NS = 2000  # on a GPU by all of it


# Torch computes these element by element without vectors, and not by the functions that engines compose them of.
_NEVER_SLOW = ("aten.special_log_ndtr.default",)


class TooSlowError(Exception):
    """The nodes that are predicted to run faster in torch, crossings included; with the reason of each."""

    def __init__(self, nodes: dict[Node, str]) -> None:
        super().__init__(", ".join(node.name for node in nodes))
        self.nodes = nodes


def slow_nodes(capture: Capture, settings: Settings) -> dict[Node, Slowness]:
    """The nodes of the captured graph that an engine would run slowly. Raises as a build would."""
    by_name = {node.name: node for node in capture.nodes}
    found: dict[Node, Slowness] = {}
    for row in json.loads(capture.builder.slow(settings.compiler)):
        node = by_name.get(row["node"])
        if node is None or target_name(node.target) in _NEVER_SLOW:
            continue
        known = found.get(node, Slowness(row["reason"], 0, 0))  # one node may become several
        found[node] = Slowness(known.reason, known.own_ns + row["own_ns"], known.peer_ns + row["peer_ns"])
    return found


def worth_leaving(module: GraphModule, slow: dict[Node, Slowness], on_gpu: bool = False) -> dict[Node, str]:
    """The slow nodes that torch runs faster even with the added crossings, run by run of neighbours.

    Predicted times are those of one thread of a CPU, or of a whole GPU.
    """
    threads, bytes_per_ns = (1, GPU_BYTES_PER_NS) if on_gpu else (torch.get_num_threads(), BYTES_PER_NS)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    leaving: dict[Node, str] = {}
    for start, end in _runs(calls, slow):
        run = calls[start:end]
        gain = sum(slow[node].gain_ns for node in run if node in slow) / threads
        ends = [start > 0, end < len(calls)]  # no crossing at the ends of the graph
        if gain > sum(ends) * CROSSING_NS + _crossing_bytes(run, calls) / bytes_per_ns:
            leaving |= {node: str(slow[node]) for node in run if node in slow}
    return leaving


def taken_slow(module: GraphModule, capture: Capture, settings: Settings) -> dict[Node, Slowness]:
    """The slow nodes that stay in the engine; TooSlowError names those that are optional and faster in torch."""
    slow = slow_nodes(capture, settings)
    leaving = worth_leaving(module, slow, on_gpu=str(settings.compiler.get("device", "")).startswith("cuda"))
    if leaving and not settings.require_full_compilation:
        raise TooSlowError(leaving)
    for node, slowness in slow.items():
        level = logging.WARNING if node in leaving else logging.INFO
        _log.log(level, "%s (%s) is %s", target_name(node.target), node.name, slowness)
    return slow


def _runs(calls: Sequence[Node], slow: dict[Node, Slowness]) -> list[tuple[int, int]]:
    """Neighbours in execution order; the selection of one of several results stays with its call."""
    runs: list[tuple[int, int]] = []
    for position, node in enumerate(calls):
        follows = bool(runs) and runs[-1][1] == position
        if node in slow and not follows:
            runs.append((position, position + 1))
        elif node in slow or (follows and target_name(node.target) == "_operator.getitem"):
            runs[-1] = (runs[-1][0], position + 1)
    return runs


def _crossing_bytes(run: Sequence[Node], calls: Sequence[Node]) -> int:
    """Bytes of the values that engines would pass to the run and receive from it."""
    inside, around = set(run), set(calls)
    given = {source for node in run for source in node.all_input_nodes if source in around - inside}
    taken = {node for node in run if any(user not in inside and user.op != "output" for user in node.users)}
    return sum(_bytes(node.meta.get("val")) for node in given | taken)


def _bytes(value: object) -> int:
    if not isinstance(value, torch.Tensor):
        return 0
    elements = math.prod(size if isinstance(size, int) else typical(size) for size in value.shape)
    return elements * value.element_size()


def typical(size: torch.SymInt) -> int:
    """The size that the graph was traced with."""
    hint = getattr(size.node, "hint", None)
    return int(hint) if hint is not None else 64


@dataclass(frozen=True)
class Times:
    """Milliseconds of one call in torch and in an engine, or of two ways to run a module: the smallest of interleaved turns."""

    torch_ms: float
    engine_ms: float
    noise: float  # how much longer the median turn took, as a fraction

    @property
    def is_faster_in_torch(self) -> bool:
        """By more than the noise, and by 5 % at least."""
        return self.engine_ms > self.torch_ms * (1 + max(_NOTABLE, self.noise))


_NOTABLE = 0.05


def measure(
    part: GraphModule, inputs: Sequence[Input], call: Callable[[list], list], rounds: int = 5
) -> Times:
    """Times of a part in torch and in its engine, at the traced sizes."""
    with compat.with_real_tensors():
        arguments = example_arguments(part, inputs)
        return times_of([lambda: part(*arguments), lambda: call(list(arguments))], arguments, rounds)


def stopwatch(
    arguments: Sequence[object], clock: Callable[[], float] = time.perf_counter
) -> Callable[[Callable[[], object]], float]:
    """A function that returns the seconds of a call with such arguments, to the end of what it enqueues on a GPU."""
    on_gpu = next((value for value in arguments if isinstance(value, torch.Tensor) and value.is_cuda), None)

    def seconds(call: Callable[[], object]) -> float:
        start = clock()
        call()
        if on_gpu is not None:
            torch.cuda.synchronize(on_gpu.device)
        return clock() - start

    return seconds


def times_of(
    ways: Sequence[Callable[[], object]],
    arguments: Sequence[object],
    rounds: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Of two ways, whose arguments say whether a GPU has to be waited for."""
    turns: list[list[float]] = [[] for _ in ways]
    seconds = stopwatch(arguments, clock)
    with torch.no_grad():
        for _ in range(rounds + 1):  # the first turn warms up
            for way, taken in zip(ways, turns, strict=True):
                taken.append(seconds(way))
    best = [min(taken[1:]) for taken in turns]
    noise = max(statistics.median(taken[1:]) / least - 1 for taken, least in zip(turns, best, strict=True))
    return Times(best[0] * 1e3, best[1] * 1e3, noise)


def example_arguments(part: GraphModule, inputs: Sequence[Input]) -> list[object]:
    """Arguments of the traced sizes, and the weights."""
    placeholders = [node for node in part.graph.nodes if node.op == "placeholder"]
    return [_example(node, given) for node, given in zip(placeholders, inputs, strict=True)]


def _example(node: Node, given: Input) -> object:
    """The weight itself, random floats, or zeros for integers, which may be indices."""
    if given.data is not None:
        return given.data
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return typical(value)
    if not isinstance(value, torch.Tensor):
        return value if given.literal is None else given.literal
    shape = [size if isinstance(size, int) else typical(size) for size in value.shape]
    make = torch.randn if value.dtype.is_floating_point or value.dtype.is_complex else torch.zeros
    with torch.device(value.device):
        return make(shape, dtype=torch.float32 if make is torch.randn else value.dtype).to(value.dtype)
