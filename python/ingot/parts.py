# SPDX-License-Identifier: Apache-2.0
"""Engines of whole graphs and of their parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import _core, one_program, ranks, session, watching
from ingot.capture import Capture, Input
from ingot.device_contents import contents_of
from ingot.errors import InternalError, UnsupportedError, UserError
from ingot.kinds import InputRole
from ingot.partition import PartCall
from ingot.running import PartEngine, WithPlainOutputs
from ingot.settings import Settings
from ingot.slots import signature_of, tensor_positions
from ingot.speed import TooSlowError, measure, taken_slow
from ingot.staged_part import Sampled, StagedPart
from ingot.views import storage_orders


@dataclass
class Built:
    """`runner`: a callable from the flat argument list to the flat output list. `report`: of the build."""

    runner: Callable[[list], list]
    engine: _core.Engine
    report: dict[str, Any]
    staged: StagedPart | None = None  # of staged builds


def build_runner(capture: Capture, inputs: Sequence[Input], settings: Settings, like: torch.Tensor) -> Built:
    """like: results are on its device, or on a GPU if an argument is there."""
    ranks.connect_groups(sorted(capture.groups))
    options = settings.compiler
    if settings.first_level is not None:
        options = {**options, "optimization_level": str(settings.first_level)}
    engine, report = capture.builder.build(
        options,
        settings.progress,
        settings.metadata,
        session.current(),
        settings.custom_engine_cache,
    )
    settings.apply_to(engine)
    signature = signature_of(engine)
    users = [position for position, given in enumerate(inputs) if given.kind == InputRole.USER]
    tensors = [users[position] for position in tensor_positions(signature.inputs)]
    weights = [
        (given.name, given.data, position) for position, given in enumerate(inputs) if given.data is not None
    ]
    # Stages replace the engine, and not copies of it.
    one_set = {} if settings.first_level is None else {"most": 1}
    runner = _core.Runner(
        engine, tensors, weights, like, settings.check_weights, watching.tensors() if weights else None,
        contents_of([row[1] for row in weights], settings.check_weights), **one_set,
    )  # fmt: skip
    built = Built(runner, engine, json.loads(report))
    if settings.first_level is not None:
        _check_groups(engine, settings)
        built.staged = StagedPart(
            engine, capture.builder, settings.compiler, settings.metadata, session.current(),
            settings.custom_engine_cache, [row[:2] for row in weights], tensors, runner, built.report,
        )  # fmt: skip
        built.runner = Sampled(runner, built.staged)
    if not all(slot.is_tensor for slot in signature.outputs):
        built.runner = WithPlainOutputs(built.runner, signature.outputs)
    return built


def _check_groups(engine: _core.Engine, settings: Settings) -> None:
    """Of a staged build, whose ranks have to agree."""
    names = engine.group_names()
    if names and settings.staged == "same_bits":
        raise UserError(
            'staged="same_bits" is for engines without collectives: one rank alone cannot run an engine to compare its results',
            code="INGOT-U002",
            advice="pass staged=True, or choose an optimization_level",
        )
    for name in names:
        ranks.require_group(name)


def precisions_of(report: Mapping[str, Any]) -> dict[str, str]:
    """What each contraction is computed in where `enabled_precisions` allows narrower dtypes, by the node's name."""

    def text(row: Mapping[str, str]) -> str:
        if row["reason"]:
            return f"f32: {row['reason']}"
        same = row["operands"] == row["weight"]
        return row["operands"] if same else f"{row['operands']} with weights of {row['weight']}"

    return {row["node"]: text(row) for row in report["precisions"]}


def backends_of(report: Mapping[str, Any]) -> dict[str, str]:
    """What runs the nodes that do not simply follow the device, and why, by the node's name."""
    return {row["node"]: f"{row['backend']}: {row['reason']}" for row in report["backends"]}


@dataclass
class PartBuilder:
    """Engines of parts. When a node turns out to be unsupported late, only the engine that contained it is rebuilt."""

    settings: Settings
    like: torch.Tensor  # on the device of their results
    built: dict[tuple[Node, ...], PartEngine]  # by the nodes of the whole graph

    def build(self, call: PartCall, given: Mapping[Node, Input]) -> PartEngine:
        """The engine of a part. `given`: inputs of the whole graph that stay what they are, by the nodes of the split graph.

        Errors name nodes of the whole graph.
        """
        members = call.part.nodes
        if members not in self.built:
            names = {own.name: origin.name for own, origin in call.origins.items()}
            try:
                self.built[members] = _engine_of(call, given, self.settings, self.like)
            except TooSlowError as error:
                raise TooSlowError({call.origins[node]: why for node, why in error.nodes.items()}) from error
            except (UnsupportedError, InternalError) as error:
                error.node = names.get(error.node, error.node)
                raise
        return self.built[members].fresh()


def _engine_of(
    call: PartCall, given: Mapping[Node, Input], settings: Settings, like: torch.Tensor
) -> PartEngine:
    placeholders = [node for node in call.graph.graph.nodes if node.op == "placeholder"]
    inputs = [
        given[argument]
        if argument in given and given[argument].data is not None
        else Input(InputRole.USER, placeholder.name)  # its name in the whole graph
        for placeholder, argument in zip(placeholders, call.node.args, strict=True)
    ]
    capture = Capture(f"torch {torch.__version__}", groups=settings.groups)
    capture.graph(call.graph, inputs)
    settings = one_program.settings_of_part(settings, inputs)
    own_names = {what.name for what in inputs}
    for what in inputs:
        for name in sorted(set(what.other_names) - own_names):
            capture.builder.other_name(name, what.name)
    slow = taken_slow(call.graph, capture, settings)
    built = build_runner(capture, inputs, settings, like)
    times = measure(call.graph, inputs, built.runner) if settings.measures else None
    users = [position for position, what in enumerate(inputs) if what.kind == InputRole.USER]
    returned = next(node for node in call.graph.graph.nodes if node.op == "output").args[0]
    returns_one = not isinstance(returned, (tuple, list))
    results = [returned] if returns_one else returned
    orders = storage_orders(result.meta.get("val") for result in results)
    slow_origins = {call.origins[node].name: slowness for node, slowness in slow.items()}
    part = PartEngine(built.runner, built.engine, users, returns_one, orders, slow_origins, times)
    report = built.report
    part.names = {own.name: origin.name for own, origin in call.origins.items()}
    part.precisions = {part.names.get(name, name): text for name, text in precisions_of(report).items()}
    part.backends = {part.names.get(name, name): text for name, text in backends_of(report).items()}
    part.without_node = report["disabled_without_node"]
    part.build = report
    part.staged = built.staged
    return part


def forget_orders(split: GraphModule) -> None:
    """Only torch and the caller depend on strides: between engines, results are dense."""
    for node in [node for node in split.graph.nodes if node.op == "call_module"]:
        part = split.get_submodule(str(node.target))
        if not isinstance(part, PartEngine):
            continue
        results = {0: node} if part.returns_one else {user.args[1]: user for user in node.users}
        readers = {
            k: [user for user in result.users if user.op in ("call_module", "output")]
            for k, result in results.items()
        }
        part.orders = {
            k: order
            for k, order in part.orders.items()
            if any(
                user.op == "output" or not isinstance(split.get_submodule(str(user.target)), PartEngine)
                for user in readers.get(k, [])
            )
        }
