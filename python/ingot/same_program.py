# SPDX-License-Identifier: Apache-2.0
"""Whether two programs compute the same, so that weights of one fit the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ingot.errors import UserError


def refuse_another_program(compiled: ExportedProgram, given: ExportedProgram) -> None:
    """UserError INGOT-U329 that names the first operation in which they differ."""
    own, other = _text_of(compiled), _text_of(given)
    if own == other:
        return
    length = min(len(own), len(other))
    position = next((k for k in range(length) if own[k] != other[k]), length)
    raise _another_program(*(text[position] if position < len(text) else "its end" for text in (own, other)))


def _another_program(own: str, other: str) -> UserError:
    return UserError(
        f"the new weights are those of another program: it has {other} where the compiled one has {own}",
        code="INGOT-U329",
        advice="compile the new program, or pass its state_dict if its weights are meant for the compiled one",
    )


def refuse_other_constants(compiled: Sequence[str], given: torch.nn.Module) -> None:
    """UserError INGOT-U329 if graphs of the module have a constant that the compiled program lacks: the range of an activation that
    was quantized, for one, which no weight holds.

    compiled: `constants_of` the program. Only graphs are compared, since the code of other modules is not read."""
    for graph in [each for each in given.modules() if isinstance(each, GraphModule)]:
        rest = iter(compiled)
        for row in constants_of(graph):
            passed = []
            if not any(own == row or passed.append(own) for own in rest):
                like = [own for own in passed if own.split("(")[0] == row.split("(")[0]]
                raise _another_program(like[0] if like else "its end", row)


def constants_of(module: GraphModule) -> list[str]:
    """The calls of a graph that have floating-point constants, in order: "operator(numbers)"."""
    rows = []
    for node in module.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload) and node.users:
            numbers = _numbers(node)
            if any(isinstance(number, float) for number in numbers):
                rows.append(f"{node.target}({', '.join(map(str, numbers))})")
        if node.op == "get_attr" and isinstance(getattr(module, str(node.target), None), GraphModule):
            rows += constants_of(getattr(module, str(node.target)))
    return rows


def _numbers(node: Node) -> list[float | int]:
    """Without sizes, which may be symbols in one program and integers in another."""
    numbers: list[float | int] = []
    for position, argument in enumerate(node.target._schema.arguments):
        given = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
        kind = str(argument.real_type)
        if "SymInt" in kind:
            continue
        for value in (
            given
            if isinstance(given, (list, tuple))
            else [argument.default_value if given is None else given]
        ):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers.append(float(value) if "float" in kind or "number" in kind else value)
    return numbers


def _text_of(program: ExportedProgram) -> list[str]:
    names = {spec.arg.name: f"{spec.kind.name} {spec.target}" for spec in program.graph_signature.input_specs}
    return _Text(names).graph(program.graph_module)


class _Text:
    """A program's operations, one per line, with values and symbols numbered: what torch called them does not matter."""

    def __init__(self, inputs: dict[str, str]) -> None:
        self._inputs = inputs
        self._values: dict[Node, str] = {}
        self._symbols: dict[str, str] = {}

    def graph(self, module: GraphModule) -> list[str]:
        lines = []
        for node in module.graph.nodes:
            self._values[node] = f"%{len(self._values)}"
            lines.append(f"{self._operation(module, node)} : {self._type(node.meta.get('val'))}")
            if node.op == "get_attr" and isinstance(getattr(module, str(node.target), None), GraphModule):
                lines += self.graph(getattr(module, str(node.target)))
        return lines

    def _operation(self, module: GraphModule, node: Node) -> str:
        if node.op == "placeholder":
            return self._inputs.get(node.name, "input")
        if node.op == "get_attr":
            return "attribute"
        return f"{node.target}({self._argument(node.args)}, {self._argument(node.kwargs)})"

    def _argument(self, value: Any) -> str:
        if isinstance(value, Node):
            return self._values[value]
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self._argument, value)) + "]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key}: {self._argument(each)}" for key, each in value.items()) + "}"
        if isinstance(value, slice):
            return self._argument([value.start, value.stop, value.step])
        return str(value)

    def _type(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}[{', '.join(map(self._size, value.shape))}]"
        if isinstance(value, (list, tuple)):
            return ", ".join(map(self._type, value))
        return type(value).__name__

    def _size(self, size: Any) -> str:
        if isinstance(size, int):
            return str(size)
        return self._symbols.setdefault(str(size), f"s{len(self._symbols)}")
