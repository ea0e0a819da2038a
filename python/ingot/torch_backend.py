# SPDX-License-Identifier: Apache-2.0
"""The backend that `torch.compile(model, backend="ingot")` finds by its entry point. Changes no global configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ingot import _core, compat, composites, one_program
from ingot.capture import Input, Output, decompositions, is_imported, target_name
from ingot.carried_sizes import guard_signs
from ingot.effects import take_tokens
from ingot.equal_sizes import unify
from ingot.errors import Error, UnsupportedError, UserError, first_line
from ingot.fastest import compile_graph
from ingot.kinds import InputRole, OutputRole
from ingot.reporting import Report, ReportedNode, Segment
from ingot.settings import Settings
from ingot.staged_part import Sampled
from ingot.views import keep_orders, take_views

REPORTS = "ingot_reports"  # attribute of a torch.compile call: the reports of its graphs, in order
_log = logging.getLogger("ingot")


class _Reports(list):
    """Those of one torch.compile call. Copies of it call what it has compiled; pickles compile by themselves, and begin without."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _Reports:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _Reports, ()


def backend(module: GraphModule, example_inputs: Sequence[Any], *, mode: str | None = None,
            options: dict[str, Any] | None = None) -> Any:  # fmt: skip
    """Compiles one graph of Dynamo. `options` as in `ingot.compile`; unknown ones are errors that name the nearest.

    Parameters and buffers among the example inputs are bound once; a later call notices changed ones and refits.
    """
    call = compat.compile_call(depth=1)
    reports = vars(call).setdefault(REPORTS, _Reports()) if call is not None else []
    try:
        with one_program.calling([module, *example_inputs], options, one_program.JUST_IN_TIME):
            settings = Settings.parse({} if options is None else options)
            _check_mode(mode)
            keep_weights(settings)
            return _compile_aot(module, example_inputs, settings, reports)
    except Error as error:
        raise _as_torch_error(error) from error


def _compile_aot(
    module: GraphModule, example_inputs: Sequence[Any], settings: Settings, reports: list[Report]
) -> Any:
    from torch._dynamo.backends.common import aot_autograd

    captured: list[GraphModule] = []
    calls: list[Any] = []

    def lower(graph: GraphModule, _fake_inputs: Sequence[Any]) -> Any:
        captured.append(graph)
        calls.append(_lower(graph, [*compat.traced_parameters(), *example_inputs], settings, reports))
        return _boxed(calls[-1])

    def keep(graph: GraphModule, _fake_inputs: Sequence[Any]) -> Any:
        return _boxed(lambda arguments: graph(*arguments))

    def aot(table: dict[Any, Any]) -> Any:
        compiler = aot_autograd(fw_compiler=lower, bw_compiler=keep, inference_compiler=lower, decompositions=table,
                                keep_inference_input_mutations=True)  # fmt: skip
        return compiler(module, example_inputs)

    tensors = [value for value in example_inputs if isinstance(value, torch.Tensor)]

    def without_wrapper(compiled: Any) -> Any:
        is_plain = len(calls) == 1 and isinstance(calls[0], _Lowered) and calls[0].is_one_engine
        is_plain = is_plain and all(type(tensor) in (torch.Tensor, torch.nn.Parameter) for tensor in tensors)
        if not is_plain or not compat.only_passes_on(captured[0], len(example_inputs)):
            return compiled
        return calls[0].direct()

    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return aot({})  # torch runs the backward pass, and autograd must see every call of the forward pass
    with (
        composites.without_copying_references(),
        composites.writes_as_copies(),
        composites.traced_least_squares(),
        composites.keep_composites(is_imported),
    ):
        try:
            return without_wrapper(aot(decompositions()))
        except Error:
            raise
        except Exception as error:
            if captured or compat.restarts_tracing(error):
                raise  # our bug, since torch had captured its graph; or not an error
            # Not everything in torch's tables can be traced: what they decompose runs in torch.
            _log.info("recompiled without torch's decompositions: %s", error)
        try:
            return without_wrapper(aot({}))
        except Error:
            raise
        except Exception as error:
            if captured or compat.restarts_tracing(error):
                raise
            return _in_torch(module, settings, reports, error)


def _in_torch(
    module: GraphModule, settings: Settings, reports: list[Report], error: Exception
) -> Callable[..., Any]:
    """The graph as it is: torch cannot bring it into the form that backends get, one without writes and views."""
    cause = f"torch cannot trace the graph for a backend: {first_line(error)}"
    if settings.require_full_compilation:
        raise UnsupportedError(cause, code="INGOT-N001") from error
    _log.warning("torch runs a graph of the model: %s", error)
    calls = [node for node in module.graph.nodes if node.op.startswith("call_")]
    rows = (ReportedNode(node.name, target_name(node.target), "", cause, "", "") for node in calls)
    reports.append(Report([Segment("torch", tuple(rows))]))
    return module.forward


# torch's modes. All mean the default level: there is no autotuning yet for "max-autotune" to enable.
_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def _check_mode(mode: str | None) -> None:
    if mode is not None and mode not in _MODES:
        raise UserError(f'there is no mode "{mode}"; known are {", ".join(_MODES)}', code="INGOT-U002")


def keep_weights(settings: Settings) -> None:
    """What torch.compile returns has the weights of its model, also where the environment leaves them out of engines."""
    if settings.compiler.setdefault("strip_engine_weights", "false") != "false":
        raise UserError(
            'option "strip_engine_weights" is for engines that are saved',
            code="INGOT-U002",
            advice="leave it out, or use ingot.compile and ingot.save",
        )


def _lower(
    graph: GraphModule, values: Sequence[Any], settings: Settings, reports: list[Report]
) -> Callable[[list], list]:
    if tokens := take_tokens(graph):
        call_without = _lower(graph, values, settings, reports)
        return lambda arguments: [*arguments[:tokens], *call_without(arguments[tokens:])]
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    mutations = _take_mutations(graph, placeholders)
    views = take_views(graph, mutations)
    orders = keep_orders(graph, mutations)
    unify(graph)
    guard_signs(graph)
    inputs, outputs = _describe(graph, values, mutations)
    call: Callable[[list], list] = _Lowered(graph, inputs, outputs, settings, reports)
    if orders:
        call = _WithOrders(call, orders)
    return call if views is None else lambda arguments: list(views(*arguments, *call(arguments)))


@dataclass
class _WithOrders:
    """Gives results of a call the order of dims that they have in eager, without moving them."""

    call: Callable[[list], list]
    orders: dict[int, list[int]]

    def __call__(self, arguments: list) -> list:
        results = self.call(arguments)
        for k, order in self.orders.items():
            results[k] = results[k].permute(order)
        return results


class _Lowered:
    """Calls the compiled form of a graph."""

    def __init__(self, graph: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output], settings: Settings,
                 reports: list[Report]) -> None:  # fmt: skip
        self._graph, self._outputs, self._settings = graph, outputs, settings
        self._compile(inputs)
        reports.append(self._compiled.report)
        self._begin()

    def _compile(self, inputs: Sequence[Input]) -> None:
        self._compiled = compile_graph(self._graph, inputs, self._outputs, self._settings)
        # Without the weights, which would outlive their module. What they are, None: no weight.
        self._inputs = [replace(given, data=None) for given in inputs]
        self._dtypes = [None if given.data is None else given.data.dtype for given in inputs]

    @property
    def is_one_engine(self) -> bool:
        return isinstance(self._compiled.call, (_core.Runner, Sampled))

    def direct(self) -> Callable[..., list]:
        """A callable with the arguments themselves, if the graph is one engine."""
        if self._compiled.conditions is not None or self._compiled.staged is not None:
            return self._with_arguments
        return _core.DirectCall(self._compiled.call, self._recover)

    def _with_arguments(self, *arguments: Any) -> list:
        return self(arguments)

    def _recover(self, error: BaseException) -> Callable[..., list]:
        if not _shows_other_constants(error):
            raise error
        return self._with_arguments  # which meets the same error, with the arguments at hand

    def __call__(self, arguments: Sequence) -> list:
        staged = self._compiled.staged
        if staged is None or staged.is_finished:
            return self._call(arguments)
        with staged.call():
            return self._call(arguments)

    def _call(self, arguments: Sequence) -> list:
        if self._compiled.conditions is not None:
            self._compiled.conditions.check(arguments)
        try:
            return self._compiled.call(arguments)
        except UserError as error:
            if not _shows_other_constants(error):
                raise
            inputs = self._take_values(arguments)
            self._recompile(inputs if error.code == _OTHER_WEIGHTS else self._take_integers(inputs))
        return self._call(arguments)

    def _take_values(self, arguments: Sequence) -> list[Input]:
        """The inputs with the weights of now."""
        _log.info("recompiled, because weights have changed that engines hold as constants")
        return [
            given if dtype is None else replace(given, data=value)
            for given, dtype, value in zip(self._inputs, self._dtypes, arguments, strict=True)
        ]

    def _take_integers(self, inputs: Sequence[Input]) -> list[Input]:
        """A buffer of integers, which engines hold as a constant, has changed: from now on all such buffers are arguments."""
        return [
            Input(InputRole.USER, given.name) if dtype is not None and not dtype.is_floating_point else given
            for given, dtype in zip(inputs, self._dtypes, strict=True)
        ]

    def _recompile(self, inputs: Sequence[Input]) -> None:
        report, staged = self._compiled.report, self._compiled.staged
        if staged is not None:
            staged.stop("recompiled")
        self._compile(inputs)
        fresh = self._compiled.report
        report.segments[:], report.engines[:] = fresh.segments, fresh.engines
        report.builds[:] = fresh.builds
        report.trials = fresh.trials
        self._compiled.report = report
        self._begin()

    def _begin(self) -> None:
        compiled = self._compiled
        if compiled.staged is not None:
            compiled.staged.start(self, compiled.report, own_weights=False)
        for node in self._compiled.report.fallbacks:
            _log.info("torch runs %s (%s): %s %s", node.op, node.name, node.reason, node.source)


_OTHER_INTEGERS, _OTHER_WEIGHTS = "INGOT-U325", "INGOT-U327"


def _shows_other_constants(error: BaseException) -> bool:
    return isinstance(error, UserError) and error.code in (_OTHER_INTEGERS, _OTHER_WEIGHTS)


def _boxed(call: Any) -> Any:
    def run(arguments: list) -> list:
        results = call(arguments)
        arguments.clear()
        return results

    run._boxed_call = True
    return run


def _describe(
    graph: GraphModule, values: Sequence[Any], mutations: dict[Node, Node]
) -> tuple[list[Input], list[Output]]:
    """The role of each placeholder and each output."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    roles = [
        (_kind(value) if isinstance(part, torch.Tensor) else InputRole.USER, part)
        for value in values
        for part in _parts(value)
    ]
    if len(roles) != len(placeholders):  # AOT merged aliased arguments: then positions do not identify them
        roles = [(InputRole.USER, None)] * len(placeholders)
    inputs = []
    for node, (role, value) in zip(placeholders, roles, strict=True):
        kind = InputRole.USER if node in mutations or _has_symbols(node) else role
        inputs.append(Input(kind, node.name, value if kind != InputRole.USER else None))
    users = next(node for node in graph.graph.nodes if node.op == "output").args[0]
    count = len(users) - len(mutations)
    outputs = [Output()] * count + [Output(OutputRole.INPUT_MUTATION, node.name) for node in mutations]
    return inputs, outputs


def _has_symbols(node: Node) -> bool:
    """Whether Dynamo gave a size a symbol: also of a buffer, whose size it found to equal that of an argument."""
    example = node.meta.get("val")
    return isinstance(example, torch.Tensor) and any(not isinstance(size, int) for size in example.shape)


def _parts(value: Any) -> list[Any]:
    """What AOT passes in place of an argument: of a wrapper, such as a DTensor, the tensors and objects in it, in its own order."""
    if not is_traceable_wrapper_subclass(value):
        return [value]
    names = value.__tensor_flatten__()[0]
    return [part for name in names for part in _parts(getattr(value, name))]


def _kind(value: Any) -> InputRole:
    if not isinstance(value, torch.Tensor) or value.is_meta:  # without values there is nothing to keep
        return InputRole.USER
    if isinstance(value, torch.nn.Parameter):
        return InputRole.PARAMETER
    return (
        InputRole.BUFFER if getattr(value, "_dynamo_static_input_type", None) is not None else InputRole.USER
    )


def _take_mutations(graph: GraphModule, placeholders: Sequence[Node]) -> dict[Node, Node]:
    """Turns the `copy_(placeholder, value)` nodes at the end into outputs; returns the placeholders in output order."""
    mutations: dict[Node, Node] = {}
    for node in list(graph.graph.nodes):
        if node.target is torch.ops.aten.copy_.default and node.args[0] in placeholders:
            mutations[node.args[0]] = node.args[1]
            node.replace_all_uses_with(node.args[1])
            graph.graph.erase_node(node)
    output = next(node for node in graph.graph.nodes if node.op == "output")
    output.args = ((*output.args[0], *mutations.values()),)
    return mutations


def _as_torch_error(error: Error) -> BaseException:
    """An exception of ours that torch shows unchanged."""
    shorten = compat.shorten_traceback_class()
    if shorten is None:
        return error

    kind = type(type(error).__name__, (type(error), shorten), {})
    raised = kind.__new__(kind)  # without __init__, of which torch's class has another one
    raised.args = (str(error),)
    raised.__dict__.update(error.__dict__)
    raised.first_useful_frame = None
    return raised
