# SPDX-License-Identifier: Apache-2.0
"""Where the errors of a compiled model come from, node by node: `print(ingot.compare(model, compiled, inputs))`."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.export._tree_utils import reorder_kwargs
from torch.fx import GraphModule, Node
from torch.utils import _pytree

from ingot import _core
from ingot.capture import target_name
from ingot.dynamo import describe, importable
from ingot.errors import UserError, kind_of, require
from ingot.fitting import given_inputs
from ingot.front import export
from ingot.kinds import InputRole, OutputRole
from ingot.module import CompiledModule
from ingot.quantization import batch_norms
from ingot.reporting import short_path
from ingot.wide_interpreter import WideInterpreter

_QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
_KEEPS_ORDER = ("aten.max_pool2d.default", "aten.relu.default", "aten.hardtanh.default", "aten.clamp.default")


@dataclass(frozen=True)
class NodeError:
    """What one step of an engine, or the whole program for an output, computed beside the reference.

    name: of the last node that the step computes; nodes: all of them. error: ||value - reference|| / ||reference||, infinite where
    one has numbers and the other has not. own_error: the same for this step alone, whose reference is computed from the values
    that the step read. largest: the largest difference of one element.
    """

    name: str
    nodes: tuple[str, ...]
    op: str
    source: str
    error: float
    own_error: float
    largest: float


@dataclass(frozen=True)
class Comparison:
    """The steps with the largest errors of their own come first; `str(comparison)` is a table.

    outputs: those of the whole program. unmatched: nodes whose values the reference does not have in these sizes (what a pass made),
    and which are left out. narrow: nodes that keep_precision can name.
    """

    nodes: tuple[NodeError, ...]
    outputs: tuple[NodeError, ...]
    unmatched: tuple[str, ...]
    narrow: frozenset[str]
    _predict: Callable[[frozenset[str]], float] = field(
        repr=False, compare=False
    )  # the error without those of nodes

    @property
    def error(self) -> float:
        """The largest of the outputs' errors."""
        return max((output.error for output in self.outputs), default=0.0)

    def suggest(self, limit: float) -> tuple[str, ...]:
        """The nodes to name in keep_precision, so that the outputs' error is expected to be at most `limit`.

        They run in a narrow dtype and have the largest effects on the outputs; no more than needed. Effects are found by runs in
        f64, one for each narrow node, that add the errors of steps as they were. All of them, if even that is not expected to suffice.
        """
        if self.error <= limit:
            return ()
        names = {name for node in self.nodes for name in node.nodes} & self.narrow
        effects = {name: self._predict(names - {name}) for name in sorted(names)}
        worst = sorted(names, key=lambda name: (-effects[name], name))
        counts = range(len(worst) + 1)
        enough = bisect_left(counts, True, key=lambda count: self._predict(frozenset(worst[:count])) <= limit)
        return tuple(worst[:enough])

    def __str__(self) -> str:
        return self.table()

    def table(self, top: int = 20) -> str:
        """The outputs, and the `top` worst steps."""
        lines = [f"{'error':>9} {'own':>9} {'largest':>9}  value"]
        for row in (*self.outputs, *self.nodes[:top]):
            own = "" if row in self.outputs else f"{row.own_error:.2e}"
            text = f"{row.error:9.2e} {own:>9} {row.largest:9.2e}  {row.name} ({row.op})  {short_path(row.source)}"
            lines.append(text.rstrip())
        if len(self.nodes) > top:
            lines.append(f"and {len(self.nodes) - top} steps with smaller errors of their own")
        return "\n".join(lines)


def compare(
    model: torch.nn.Module | torch.export.ExportedProgram,
    compiled: CompiledModule,
    inputs: Sequence[Any],
    *,
    kwarg_inputs: Mapping[str, Any] | None = None,
) -> Comparison:
    """The error of each value that the engines of `compiled` store, against `model` in f64.

    The plan, the kernels and the results of `compiled` are those of any other call; values inside of fused kernels are not stored,
    and their nodes are listed with the kernel's result. Quantized programs are compared with the numbers before rounding.

    model: what was compiled, or its original: in f32 for a compiled `model.half()`, not quantized for a program of
      `ingot.quantize`. Its nodes are found by their names.
    compiled: a result of `ingot.compile(ir="dynamo")`.
    inputs, kwarg_inputs: arguments of one call of `compiled`. State is written as by any call.

    Raises UserError (INGOT-U029) if `model` has no node in common with `compiled`.
    """
    if not isinstance(compiled, CompiledModule):
        raise UserError(
            f"compare takes a result of ingot.compile, not {kind_of(compiled)}",
            code="INGOT-U007",
            advice='compile with ir="dynamo"',
        )
    kinds = (torch.nn.Module, torch.export.ExportedProgram)
    require(model, kinds, "compare takes the model as a torch.nn.Module or an ExportedProgram")
    positional, kwargs = given_inputs(inputs, kwarg_inputs)
    args = tuple(positional)
    reference = _reference(model, compiled.program, args, kwargs)
    steps, results = _observed(compiled, args, kwargs)
    return _Comparing(reference, steps).run(results, _narrow_nodes(compiled))


@dataclass(frozen=True)
class _Reference:
    graph: GraphModule
    leaves: Sequence[Any]  # its flat inputs, weights included
    is_result: Sequence[bool]  # of its outputs: the others are new values of buffers and arguments

    def run(self, see: Callable[[Node, Any], Any]) -> list[Any]:
        outputs = WideInterpreter(self.graph, see).run_flat(self.leaves)
        return [value for value, is_result in zip(outputs, self.is_result, strict=True) if is_result]


@dataclass
class _Step:
    """What a step of an engine wrote."""

    value: torch.Tensor
    records: Sequence[Mapping[str, str]]  # of the nodes that it computes
    node: str = ""  # that has this value, if it is not the last of them
    difference: torch.Tensor | None = None  # from its reference: the error of its own
    error: float = math.inf
    own_error: float = math.inf
    largest: float = math.inf
    is_found: bool = False

    @property
    def name(self) -> str:
        """Of the last node that it computes, or for integers of the one that was quantized."""
        return self.node or self.records[-1]["name"]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(record["name"] for record in self.records)

    def is_of(self, reference: torch.Tensor) -> bool:
        """Whether it has the node's whole value. Of complex numbers inside of an engine, a step has one part, or pairs of both."""
        if reference.is_complex() and self.value.shape == (*reference.shape, 2):
            self.value = torch.view_as_complex(self.value.contiguous())
        return self.value.shape == reference.shape and self.value.is_complex() == reference.is_complex()

    def row(self) -> NodeError:
        last = self.records[-1]
        return NodeError(
            self.name, self.nodes, last["op"], last["source"], self.error, self.own_error, self.largest
        )


class _Comparing:
    """Two runs of the reference: from the inputs alone, and with each value replaced by the engine's once it is computed."""

    def __init__(self, reference: _Reference, steps: Sequence[_Step]) -> None:
        self._reference = reference
        self._steps: dict[str, _Step] = {}
        for step in steps:  # of the steps for one node the last has its value, in whatever layout
            if step.records[-1]["op"] != "relayout" or step.name not in self._steps:
                self._steps[step.name] = step

    def run(self, results: Sequence[Any], narrow: frozenset[str]) -> Comparison:
        self._exact = self._reference.run(self._see)
        found = [step for step in self._steps.values() if step.is_found]
        if not found:
            raise UserError(
                "the model and the compiled module have no node in common",
                code="INGOT-U029",
                advice="pass the model that was compiled, or its original in f32",
            )
        self._reference.run(self._replace)
        nodes = sorted((step.row() for step in found), key=lambda row: (-row.own_error, -row.error))
        unmatched = tuple(step.name for step in self._steps.values() if not step.is_found)
        outputs = tuple(_output_errors(results, self._exact))
        return Comparison(tuple(nodes), outputs, unmatched, narrow, self._error_without)

    def _step_of(self, node: Node, value: Any) -> _Step | None:
        step = self._steps.get(node.name)
        return step if step is not None and isinstance(value, torch.Tensor) and step.is_of(value) else None

    def _see(self, node: Node, value: Any) -> Any:
        step = self._step_of(node, value)
        if step is not None:
            step.error, step.largest = _distance(step.value, value)
            step.is_found = True
        return value

    def _replace(self, node: Node, value: Any) -> Any:
        step = self._step_of(node, value)
        if step is None:
            return value
        step.own_error, _ = _distance(step.value, value)
        step.difference = step.value.to(value.dtype) - value if _is_continuous(value) else None
        return step.value.to(value.dtype)

    def _error_without(self, nodes: frozenset[str]) -> float:
        """The largest error of an output if the steps of these nodes made none, and the others those that they made."""

        def add(node: Node, value: Any) -> Any:
            step = self._step_of(node, value)
            if step is None or step.difference is None or nodes.intersection(step.nodes):
                return value
            return value + step.difference

        return max((row.error for row in _output_errors(self._reference.run(add), self._exact)), default=0.0)


def _is_continuous(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _distance(value: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
    """The relative error in the Euclidean norm, and the largest difference."""
    wide = torch.complex128 if value.is_complex() or reference.is_complex() else torch.float64
    value, reference = value.detach().cpu().to(wide), reference.detach().cpu().to(wide)
    same = (value == reference) | (value.isnan() & reference.isnan())
    difference = torch.where(same, 0.0, (value - reference).abs())  # infinities of one sign are equal
    if value.numel() == 0:
        return 0.0, 0.0
    if not bool(difference.isfinite().all()):
        return math.inf, math.inf
    norm = reference[reference.isfinite()].norm().item()
    error = difference.norm().item()
    return (error / norm if norm > 0 else math.inf if error > 0 else 0.0), difference.max().item()


def _output_errors(results: Sequence[Any], exact: Sequence[Any]) -> Iterator[NodeError]:
    for position, (value, reference) in enumerate(zip(results, exact, strict=True)):
        if isinstance(value, torch.Tensor) and isinstance(reference, torch.Tensor):
            error, largest = _distance(value, reference)
            yield NodeError(f"output_{position}", (), "output", "", error, error, largest)


def _reference(
    model: torch.nn.Module | torch.export.ExportedProgram,
    program: torch.export.ExportedProgram,
    args: tuple,
    kwargs: Mapping[str, Any],
) -> _Reference:
    """The model as a graph with the nodes that the engines of `program` were built from, and its flat inputs."""
    if isinstance(model, torch.nn.Module):
        own, others = _dtype_of(model.parameters()), _dtype_of(program.parameters())
        if own is not None and own != others:
            args, kwargs = _pytree.tree_map(
                lambda leaf: leaf.to(own) if _has_dtype(leaf, others) else leaf, (args, kwargs)
            )
        model = export(model, args, kwargs)
    if _is_quantized(program) and not _is_quantized(model):
        module = model.module()
        batch_norms.fold(module)  # as ingot.quantize does
        model = export(module, args, kwargs)
    model, graph = importable(model)
    users = iter(_pytree.tree_leaves((args, reorder_kwargs(dict(kwargs), model.call_spec.in_spec))))
    given, outputs = describe(model)
    leaves = [next(users) if each.kind == InputRole.USER else each.data for each in given]
    return _Reference(graph, leaves, [each.kind == OutputRole.USER for each in outputs])


def _dtype_of(tensors: Iterable[torch.Tensor]) -> torch.dtype | None:
    return next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), None)


def _has_dtype(leaf: Any, dtype: torch.dtype | None) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype == dtype


def _is_quantized(program: torch.export.ExportedProgram) -> bool:
    return any(
        "quantized_decomposed." in target_name(node.target)
        for node in program.graph.nodes
        if node.op == "call_function"
    )


def _observed(
    compiled: CompiledModule, args: tuple, kwargs: Mapping[str, Any]
) -> tuple[list[_Step], list[Any]]:
    """What the steps of a call computed, and its flat results."""
    engines = list(compiled.compiled.engines)
    reports = [json.loads(engine.inspect()) for engine in engines]
    steps: list[_Step] = []

    def observer(report: Mapping[str, Any]) -> Callable[[int, str, torch.Tensor], None]:
        def observe(position: int, _name: str, value: torch.Tensor) -> None:
            records = [report["nodes"][index] for index in report["main"]["steps"][position]["nodes"]]
            if records:
                steps.append(_Step(value, records))

        return observe

    own = _pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, (args, dict(kwargs))
    )
    with _observers(engines, [observer(report) for report in reports]):
        results = compiled(*own[0], **own[1])
    nodes = {node.name: node for node in compiled.program.graph.nodes}
    return [_with_numbers(step, nodes) for step in steps], _pytree.tree_leaves(results)


def _with_numbers(step: _Step, nodes: Mapping[str, Node]) -> _Step:
    """A step that stores quantized integers has the numbers that they stand for."""
    quantization = nodes.get(step.name)
    if (
        quantization is None
        or step.value.is_floating_point()
        or target_name(quantization.target) != _QUANTIZE
    ):
        return step
    node, scale, zero_point = quantization.args[:3]
    # Passes quantize before what keeps the order of numbers.
    while node.meta["val"].shape != step.value.shape and target_name(node.target) in _KEEPS_ORDER:
        node = node.args[0]
    return replace(step, value=(step.value.double() - zero_point) * scale, node=node.name)


@contextmanager
def _observers(engines: Sequence[_core.Engine], observers: Sequence[Callable[..., None]]) -> Iterator[None]:
    for engine, observe in zip(engines, observers, strict=True):
        engine.set_observer(observe)
    try:
        yield
    finally:
        for engine in engines:
            engine.set_observer(None)


def _narrow_nodes(compiled: CompiledModule) -> frozenset[str]:
    """The nodes that run in a dtype that enabled_precisions or a quantized program chose."""
    nodes = [node for segment in compiled.report.segments for node in segment.nodes]
    return frozenset(node.name for node in nodes if node.precision and not node.precision.startswith("f32:"))
