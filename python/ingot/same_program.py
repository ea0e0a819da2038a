# SPDX-License-Identifier: Apache-2.0
"""Whether two exported programs compute the same, so that weights of one fit the other."""

from __future__ import annotations

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
    lines = [text[position] if position < len(text) else "its end" for text in (own, other)]
    raise UserError(
        f"the new weights are those of another program: it has {lines[1]} where the compiled one has {lines[0]}",
        code="INGOT-U329",
        advice="compile the new program, or pass its state_dict if its weights are meant for the compiled one",
    )


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
