# SPDX-License-Identifier: Apache-2.0
"""Compiled modules from the torch programs that `ingot.save` wrote."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ingot import _core, gpus
from ingot.capture import Capture, Input
from ingot.conditions import Conditions
from ingot.dynamo import describe
from ingot.errors import UnsupportedError
from ingot.guards import Guards
from ingot.hybrid import Compiled
from ingot.kinds import InputRole
from ingot.module import CompiledModule
from ingot.reporting import Report
from ingot.running import PartEngine, WriteBack
from ingot.weight_names import Names

RECORD = "ingot.json"  # the file in the archive with everything that a torch program cannot hold


class LoadedModule(CompiledModule):
    """A compiled module that was read from a file."""

    def __init__(
        self,
        program: ExportedProgram,
        compiled: Compiled,
        inputs: Sequence[Input],
        names: Sequence[str],
        tied: Names,
        state: Mapping[str, torch.Tensor] | None,
        changed: Collection[int] = (),
        constants: list[str] | None = None,
    ) -> None:
        """names: of the model's state dict; tied: those of one tensor; state: its values, if the file holds them; changed: inputs
        that calls change; constants: of the program that was compiled, where the file has them."""
        super().__init__(program, compiled, inputs, changed=changed)
        self._model_names = list(names)
        self._tied = tied
        self.holds_state = state is not None
        self._constants = constants
        self._values = dict(state or {})

    @property
    def constants(self) -> list[str] | None:
        return self._constants

    def module(self) -> LoadedModule:
        """Itself: what torch.export.load returns has a module, and a program that calls it takes both."""
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        if self.holds_state:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            return
        raise UnsupportedError(
            "this module was loaded from a file without a state_dict: its engines hold the weights in prepared form",
            code="INGOT-N007",
            advice="write the file with ingot.save(module, path, state_dict=True), or take the state_dict of the model; "
            "refit accepts new values by name",
        )


def module_of(
    program: ExportedProgram,
    record: Mapping[str, Any],
    without_weights: bool = False,
    gpu: int | None = None,
) -> LoadedModule:
    """The module that was passed to `ingot.save`. without_weights: a refit gives those that its engines leave to a file. gpu: of
    engines for GPUs; None: the current one."""
    gpu = gpus.current() if gpu is None else gpu
    inputs, outputs = describe(program)
    graph = copy.deepcopy(program.graph_module)
    cores = [
        _take_engine(graph, node, inputs, number, without_weights, gpu)
        for number, node in enumerate(_run_nodes(graph))
    ]
    report = Report.of_rows(record["segments"], cores)
    names, tied = record.get("state"), record.get("tied", ())
    state = None if names is None else {name: program.state_dict[held] for name, held in names.items()}
    constants = record.get("constants")
    if record["whole"]:
        whole = Compiled(graph.engine_0.runner, report, cores)
        return LoadedModule(program, whole, [], record["names"], tied, state, constants=constants)
    inputs = _without_engines(graph, inputs)
    graph.recompile()
    named = [_named(given, record["weights"], record["names"]) for given in inputs]
    compiled = Compiled(WriteBack(graph, named, outputs), report, cores, graph)
    compiled.conditions = _conditions(graph, named)
    compiled.conditions.restore(record["conditions"])
    if record["guards"] is not None:
        compiled.guards = Guards(record["guards"]["rows"])
        compiled.guards.names = record["guards"]["names"]
    changed = [k for k, given in enumerate(inputs) if given.name in record.get("changed", ())]
    return LoadedModule(program, compiled, named, record["names"], tied, state, changed, constants)


def _run_nodes(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if node.target is torch.ops.ingot.run.default]


def _take_engine(
    graph: GraphModule, node: Node, inputs: Sequence[Input], number: int, without_weights: bool, gpu: int
) -> _core.Engine:
    """Opens the engine of the node, and replaces the node by a call of it."""
    arguments, blob, _ = node.args
    unused = [user for user in node.users if not user.users]
    for user in unused:  # among them the tensor that `ingot::run` returns for an engine without results
        graph.graph.erase_node(user)
    placeholders = [each for each in graph.graph.nodes if each.op == "placeholder"]
    core = _core.Engine.load_memory(
        inputs[placeholders.index(blob)].data, without_weights=without_weights, gpu=gpu
    )
    positions = list(range(len(arguments)))
    runner = _core.Runner(core, positions, [], torch.empty(0))
    name = f"engine_{number}"
    graph.add_submodule(name, PartEngine(runner, core, positions, False, {}, {}, None))
    with graph.graph.inserting_before(node):
        call = graph.graph.call_module(name, tuple(arguments))
    call.meta = dict(node.meta)
    node.replace_all_uses_with(call)
    graph.graph.erase_node(node)
    return core


def _without_engines(graph: GraphModule, inputs: Sequence[Input]) -> list[Input]:
    """The flat inputs without the engines' bytes."""
    kept = []
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, given in zip(placeholders, inputs, strict=True):
        if given.kind != InputRole.USER and not node.users:
            graph.graph.erase_node(node)
        else:
            kept.append(given)
    return kept


def _named(given: Input, names: Mapping[str, str], saved: Collection[str]) -> Input:
    """The input with its name in the model. saved: the names that state dicts have."""
    if given.kind != InputRole.BUFFER:
        return given
    name = names.get(given.name, "")
    if not name:
        return replace(given, kind=InputRole.CONSTANT)
    return replace(given, name=name, is_saved=name in saved)


class _Sizes(Capture):
    """Collects the ranges of sizes, without a builder: packages without the compiler have none."""

    def __init__(self) -> None:
        self.ranges, self._any_sign, self._rounded = {}, set(), {}
        self.builder = SimpleNamespace(symbol=lambda *declaration: None)


def _conditions(graph: GraphModule, inputs: Sequence[Input]) -> Conditions:
    """The sizes and dtypes that the program accepts."""
    capture = _Sizes()
    for node in [node for node in graph.graph.nodes if node.op == "placeholder"]:
        example = node.meta.get("val")
        for size in [example] if isinstance(example, torch.SymInt) else getattr(example, "shape", ()):
            capture.dim(size)
    return Conditions.of(graph, inputs, capture)
