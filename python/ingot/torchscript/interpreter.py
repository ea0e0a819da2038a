# SPDX-License-Identifier: Apache-2.0
"""Runs a TorchScript graph with `torch.ops`, so that torch.export can trace it. Everything but tensors is a Python value."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import traceback

from ingot import compat
from ingot.errors import Error, UnsupportedError
from ingot.operators import overload
from ingot.source import innermost
from ingot.torchscript import branches
from ingot.torchscript.builtins import ARITHMETIC, BUILTINS, DTYPES, MEMORY_FORMATS, PROPERTIES, QUERIES
from ingot.torchscript.constant_numbers import with_numbers
from ingot.torchscript.lines import frames_of

Environment = dict[str, Any]  # by the name of a value


class Interpreter:
    """One run of a model. `constants`: the tensors of the module in place of constants, by the identity of the constant."""

    def __init__(self, constants: dict[int, torch.Tensor]) -> None:
        self._constants = constants
        self._frames: list[str] = []  # of the calls around the current node
        self._line: list[str] = []  # the frames of the node itself
        self._replaced: dict[
            int, torch.Tensor
        ] = {}  # in a branch: its operands, by the identity of the tensor outside

    def call(self, graph: torch._C.Graph, arguments: Sequence[Any], function: str) -> Any:
        """The result of a method or function, a tuple for several."""
        names = [value.debugName() for value in graph.inputs()]
        results = self.block(graph, dict(zip(names, arguments, strict=True)), function)
        return results[0] if len(results) == 1 else tuple(results)

    def block(self, block: torch._C.Block, values: Environment, function: str) -> list[Any]:
        """Runs a block, whose own values are added to `values`; returns its outputs."""
        for node in block.nodes():
            self._line = (
                frames_of(node, function) or self._line
            )  # some nodes have none: that of the node before
            traceback.set_stack_trace([*self._frames, *self._line])
            try:
                self._node(node, values, function)
            except Error:
                raise
            except Exception as error:
                raise self._failure(node, error) from error
        return [self.value(output, values) for output in block.outputs()]

    def value(self, value: torch._C.Value, values: Environment) -> Any:
        return values[value.debugName()]

    def constant(self, node: torch._C.Node) -> Any:
        """The value of a `prim::Constant`; the node itself for a function."""
        if node.output().type().kind() == "FunctionType":
            return node
        value = node.output().toIValue()
        return self._constants.get(id(value), value)

    @contextlib.contextmanager
    def replacing(self, tensors: dict[int, torch.Tensor]) -> Iterator[None]:
        """Reads these instead of the tensors of that identity."""
        outer = self._replaced
        self._replaced = {**outer, **tensors}
        try:
            yield
        finally:
            self._replaced = outer

    def failure(self, node: torch._C.Node, why: str) -> UnsupportedError:
        return UnsupportedError(
            f"{_name(node)} of the TorchScript model cannot be traced: {why}",
            code="INGOT-N008",
            node=_name(node),
            source=innermost([*self._frames, *self._line]),
        )

    def _failure(self, node: torch._C.Node, error: Exception) -> UnsupportedError:
        if compat.is_data_dependence(error):
            return self.failure(node, "it depends on the values of a tensor")
        return self.failure(node, str(error).strip().split("\n")[0] or type(error).__name__)

    def _node(self, node: torch._C.Node, values: Environment, function: str) -> None:
        inputs = [self.value(each, values) for each in node.inputs()]
        special = _SPECIAL.get(node.kind())
        if special is not None:
            results = special(self, node, inputs, values, function)
        elif node.hasAttribute("Subgraph"):  # prim::fork and what torch fuses
            results = [self._nested(node.g("Subgraph"), inputs, node, function)]
        else:
            results = [_operator(node, inputs)]
            if node.outputsSize() == 0:
                return
            if node.outputsSize() > 1:
                results = list(results[0])
        for output, result in zip(node.outputs(), results, strict=True):
            values[output.debugName()] = result

    def _nested(
        self, graph: torch._C.Graph, inputs: Sequence[Any], node: torch._C.Node, function: str
    ) -> Any:
        around, line = self._frames, self._line
        self._frames, self._line = [*around, *line], []
        result = self.call(graph, inputs, node.s("name") if node.hasAttribute("name") else function)
        self._frames, self._line = around, line
        return result

    def _constant(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        value = self.constant(node)
        return [self._replaced.get(id(value), value)]

    def _get_attribute(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        value = None if inputs[0] is None else inputs[0].attribute(node.s("name"))  # None: see _create
        return [self._replaced.get(id(value), value)]

    def _set_attribute(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        holder, value = inputs
        if holder is None:  # see _create
            return []
        old = holder.attribute(node.s("name"))
        if not isinstance(old, torch.Tensor) or not isinstance(value, torch.Tensor):
            raise self.failure(node, f"a call changes the attribute {node.s('name')}, which is not a tensor")
        if value.shape != old.shape or value.dtype != old.dtype:
            raise self.failure(node, f"a call changes the shape or dtype of {node.s('name')}")
        old.copy_(value)
        return []

    def _call_method(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        if inputs[0] is None:  # see _create
            return [None]
        return [self._nested(inputs[0].method(node.s("name")), inputs, node, function)]

    def _create(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        """`with torch.no_grad()` means nothing here; other classes are the user's."""
        kind = str(node.output().type())
        if not kind.startswith("__torch__.torch.autograd.grad_mode"):
            raise self.failure(node, f"it makes an object of the class {kind.removeprefix('__torch__.')}")
        return [None]

    def _enter(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        return [None] * node.outputsSize()

    def _call_function(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        return [self._nested(_body(node, inputs[0]), inputs[1:], node, function)]

    def _if(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        then, otherwise = node.blocks()
        if not compat.is_data_dependent(inputs[0]):
            return self.block(then if inputs[0] else otherwise, values, function)
        return branches.run(self, node, inputs[0], values, function)

    def _loop(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        count, goes_on, *carried = inputs
        (body,) = node.blocks()
        names = [value.debugName() for value in body.inputs()]
        turn = 0
        while True:
            if isinstance(count, torch.SymInt) or isinstance(goes_on, torch.SymBool):
                raise self.failure(
                    node, "the number of its turns depends on a dynamic size or on the values of a tensor"
                )
            if not goes_on or turn >= count:
                return carried
            values.update(zip(names, [turn, *carried], strict=True))
            goes_on, *carried = self.block(body, values, function)
            turn += 1

    def _raise(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        raise self.failure(node, f"for these inputs the model raises {inputs[0]!r}")

    def _fill(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        """With a constant as a number: read from a tensor it would be data."""
        target, value = inputs
        value = value.item() if type(value) is torch.Tensor else value
        return [target.fill_(value)]

    def _unpack(self, node: torch._C.Node, inputs: list, values: Environment, function: str) -> list:
        return list(inputs[0])


_SPECIAL = {
    "prim::Constant": Interpreter._constant, "prim::GetAttr": Interpreter._get_attribute, "prim::SetAttr": Interpreter._set_attribute,
    "prim::CallMethod": Interpreter._call_method, "prim::CallFunction": Interpreter._call_function, "prim::If": Interpreter._if,
    "prim::Loop": Interpreter._loop, "prim::RaiseException": Interpreter._raise, "prim::ListUnpack": Interpreter._unpack,
    "prim::TupleUnpack": Interpreter._unpack, "aten::fill_": Interpreter._fill,
    "prim::CreateObject": Interpreter._create, "prim::Enter": Interpreter._enter, "prim::Exit": Interpreter._enter,
}  # fmt: skip


def _name(node: torch._C.Node) -> str:
    return f"{node.kind()} -> %{next(node.outputs()).debugName()}" if node.outputsSize() else node.kind()


def _operator(node: torch._C.Node, inputs: list) -> Any:
    """The result of an operator; of several results, a sequence."""
    kind = node.kind()
    if kind.startswith("prim::") and kind[6:] in PROPERTIES:
        return getattr(inputs[0], kind[6:])
    text = node.schema()
    schema = None if text == "(no schema)" else _schema(text)
    if kind in QUERIES or (kind in ARITHMETIC and not _has_tensor(inputs)):
        return BUILTINS[kind](*inputs)
    if schema is not None and len(inputs) == len(schema.arguments):  # not format("{}", ...)
        inputs = [_named(value, argument) for value, argument in zip(inputs, schema.arguments, strict=True)]
    is_torch = schema is not None and not kind.startswith("prim::")
    if is_torch and compat.dispatcher_has(schema.name, schema.overload_name):
        tensors = [
            as_tensor(value) if _takes_tensor(a) else value
            for value, a in zip(inputs, schema.arguments, strict=True)
        ]
        return _call(schema, with_numbers(node, tensors))
    if kind not in BUILTINS:
        raise NotImplementedError("Ingot does not know this operator of TorchScript")
    return BUILTINS[kind](*inputs)


def _call(schema: torch._C.FunctionSchema, inputs: list) -> Any:
    positional, named = [], {}
    for value, argument in zip(inputs, schema.arguments, strict=True):
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return overload(schema.name, schema.overload_name)(*positional, **named)


def _takes_tensor(argument: torch._C.Argument) -> bool:
    return str(argument.real_type) in ("Tensor", "Optional[Tensor]")


@functools.cache
def _schema(text: str) -> torch._C.FunctionSchema:
    return torch._C.parse_schema(text)


def _has_tensor(values: Iterable[Any]) -> bool:
    return any(
        isinstance(value, torch.Tensor) or (isinstance(value, (list, tuple)) and _has_tensor(value))
        for value in values
    )


def _named(value: Any, argument: torch._C.Argument) -> Any:
    """The dtype, memory format or layout for which TorchScript has a number."""
    kind = str(argument.real_type)
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if "ScalarType" in kind or argument.name == "dtype":
        return DTYPES[value]
    if "MemoryFormat" in kind:
        return MEMORY_FORMATS[value]
    return torch.strided if "Layout" in kind else value


def as_tensor(value: Any) -> Any:
    """A 0-d tensor of a number; anything else as it is."""
    if isinstance(value, bool):
        return torch.scalar_tensor(value, dtype=torch.bool)
    if isinstance(value, (int, torch.SymInt)):
        return torch.scalar_tensor(value, dtype=torch.int64)
    return (
        torch.scalar_tensor(value, dtype=torch.float64)
        if isinstance(value, (float, torch.SymFloat))
        else value
    )


def _body(call: torch._C.Node, constant: torch._C.Node) -> torch._C.Graph:
    """The graph of a function that a node calls: torch gives it to nobody, but inlines it."""
    graph = torch._C.Graph()
    function = graph.insertNode(graph.create("prim::Constant", 1))
    function.copyAttributes(constant)
    function.output().setType(constant.output().type())
    arguments = []
    for value in list(call.inputs())[1:]:
        arguments.append(graph.addInput())
        arguments[-1].setType(value.type())
    inner = graph.insertNode(
        graph.create("prim::CallFunction", [function.output(), *arguments], call.outputsSize())
    )
    for own, outer in zip(inner.outputs(), call.outputs(), strict=True):
        own.setType(outer.type())
        graph.registerOutput(own)
    torch._C._jit_pass_inline(graph)
    return graph
