# SPDX-License-Identifier: Apache-2.0
"""Branches on values of tensors: `torch.cond`, or an assertion where one side raises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from ingot import compat

if TYPE_CHECKING:
    from ingot.torchscript.interpreter import Environment, Interpreter


def run(
    interpreter: Interpreter,
    node: torch._C.Node,
    condition: torch.SymBool,
    values: Environment,
    function: str,
) -> list[Any]:
    """The results of a `prim::If` whose condition only a run knows."""
    then, otherwise = node.blocks()
    for block, holds, other in ((then, torch.sym_not(condition), otherwise), (otherwise, condition, then)):
        if any(inner.kind() == "prim::RaiseException" for inner in block.nodes()):
            torch._check(holds, lambda: "an assertion of the TorchScript model failed")
            return interpreter.block(other, values, function)
    blocks = (then, otherwise)
    names = [name for name in dict.fromkeys(_read(blocks)) if isinstance(values.get(name), torch.Tensor)]
    weights = {id(weight): weight for weight in _weights_read(interpreter, blocks, values)}

    def side(block: torch._C.Block) -> Callable:
        def call(*operands: torch.Tensor) -> list[Any]:
            inner = {**values, **dict(zip(names, operands, strict=False))}
            with interpreter.replacing(dict(zip(weights, operands[len(names) :], strict=True))):
                results = interpreter.block(block, inner, function)
            if not all(isinstance(result, torch.Tensor) for result in results):
                raise interpreter.failure(
                    node, "it depends on the values of a tensor, and does not return tensors alone"
                )
            return [result.clone() for result in results]  # torch.cond takes no views of its operands

        return call

    operands = (*(values[name] for name in names), *weights.values())
    return list(compat.cond(condition, side(then), side(otherwise), operands))


def _nodes(blocks: Iterable[Any]) -> Iterator[torch._C.Node]:
    for block in blocks:
        for node in block.nodes():
            yield node
            yield from _nodes(node.blocks())


def _read(blocks: Iterable[torch._C.Block]) -> Iterator[str]:
    """The names of values that blocks read, their own among them."""
    for block in blocks:
        yield from (output.debugName() for output in block.outputs())
        for node in block.nodes():
            yield from (value.debugName() for value in node.inputs())
            yield from _read(node.blocks())


def _weights_read(
    interpreter: Interpreter, blocks: Iterable[Any], values: Environment
) -> Iterator[torch.Tensor]:
    """The tensors of modules that blocks read, in methods that they call too: torch.cond takes them as operands."""
    known = dict(values)
    for node in _nodes(blocks):
        if node.kind() == "prim::Constant":
            constant = interpreter.constant(node)
            if isinstance(constant, torch.Tensor):
                yield constant
        elif node.kind() == "prim::GetAttr":
            value = known[node.output().debugName()] = known[node.input().debugName()].attribute(
                node.s("name")
            )
            if isinstance(value, torch.Tensor):
                yield value
        elif node.kind() == "prim::CallMethod":
            owner, *_ = node.inputs()
            graph = known[owner.debugName()].method(node.s("name"))
            inputs = zip(graph.inputs(), node.inputs(), strict=True)
            inner = {own.debugName(): known.get(outer.debugName()) for own, outer in inputs}
            yield from _weights_read(interpreter, [graph], inner)
