# SPDX-License-Identifier: Apache-2.0
"""`fallback="fastest"`: partitions that torch runs faster than their engines, as measured, run in torch if that pays for the whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch
from torch.fx import GraphModule

from ingot import compat, hybrid, ranks, speed
from ingot.capture import Capture, Input, Output
from ingot.errors import UserError
from ingot.hybrid import Compiled
from ingot.kinds import InputRole, OutputRole
from ingot.refusals import Refused
from ingot.reporting import Segment
from ingot.settings import Settings
from ingot.speed import Times
from ingot.trials import Trial

_log = logging.getLogger("ingot")


def compile_graph(
    module: GraphModule,
    inputs: Sequence[Input],
    outputs: Sequence[Output],
    settings: Settings,
    prepare: Callable[[Capture], None] = lambda capture: None,
) -> Compiled:
    """As `hybrid.compile_graph`, and with that option faster."""
    if settings.fallback == "fastest" and any(ranks.groups_in(module)):
        raise UserError(
            'option "fallback" is "fastest" for programs without collectives: ranks would decide by timings of their own',
            code="INGOT-U002",
            advice='leave it out; fallback="unsupported" is the same on all ranks',
        )
    first = hybrid.compile_graph(module, inputs, outputs, settings, prepare)
    slower = [segment for segment in first.report.segments if segment.is_faster_in_torch]
    if settings.fallback != "fastest" or not slower:
        return first
    second = hybrid.compile_graph(module, inputs, outputs, settings, prepare, _leaving(module, slower))
    times = whole_times(module, inputs, outputs, second, first)
    is_taken = times.torch_ms < times.engine_ms
    chosen = second if is_taken else first
    chosen.report.trials = [Trial(tuple(map(_row, slower)), times.engine_ms, times.torch_ms, is_taken)]
    _log.info("fallback: %s", chosen.report.trials[0])
    return chosen


def _leaving(module: GraphModule, slower: Sequence[Segment]) -> Refused:
    reasons = {
        node.name: f"faster in torch: its partition took {segment.torch_ms:.3f} ms there and "
        f"{segment.engine_ms:.3f} ms in an engine"
        for segment in slower
        for node in segment.nodes
    }
    return {node: reasons[node.name] for node in module.graph.nodes if node.name in reasons}


def _row(segment: Segment) -> tuple[str, str, float, float]:
    return segment.nodes[0].name, segment.nodes[-1].name, segment.torch_ms or 0, segment.engine_ms or 0


def whole_times(
    module: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output], second: Compiled, first: Compiled
) -> Times:
    """Of both ways to run the whole graph, at the traced sizes; `torch_ms` is that of `second`."""
    with compat.with_real_tensors():
        pairs = [(way, _own_arguments(module, inputs, outputs)) for way in (second, first)]
        calls = [lambda way=way, given=given: way.call(list(given)) for way, given in pairs]
        times = speed.times_of(calls, pairs[0][1])
    for way in (second, first):
        for engine in way.engines:
            engine.reset_states()
    return times


def _own_arguments(module: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output]) -> list[object]:
    """What a call may write to is a copy."""
    written = {what.target for what in outputs if what.kind != OutputRole.USER}
    arguments = speed.example_arguments(module, inputs)
    for k, given in enumerate(inputs):
        value = arguments[k]
        if isinstance(value, torch.Tensor) and given.kind != InputRole.USER and given.name in written:
            arguments[k] = value.clone()
    return arguments
