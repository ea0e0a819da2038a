# SPDX-License-Identifier: Apache-2.0
"""Products with constant matrices, such as those of GPT-2's layers, become linear layers, whose weights are quantized."""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from ingot.quantization.batch_norms import add_constant
from ingot.quantization.sites import attribute

_aten = torch.ops.aten
_PRODUCTS = (_aten.mm.default, _aten.matmul.default)


def restore(module: GraphModule) -> None:
    """In place; nodes keep their names. A matrix that several products share still is one."""
    transposed: dict[str, Node] = {}
    for node in list(module.graph.nodes):
        operands = _operands(node)
        if operands is None:
            continue
        value, matrix, bias = operands
        if not _is_weight(module, matrix) or not _is_bias(module, bias, matrix):
            continue
        name = str(matrix.target)
        if name not in transposed:
            with module.graph.inserting_before(matrix):
                weight = attribute(module, name).detach().t().contiguous()
                transposed[name] = add_constant(module, f"{name.replace('.', '_')}_transposed", weight)
        node.target = _aten.linear.default
        node.kwargs = {}
        node.args = (value, transposed[name]) if bias is None else (value, transposed[name], bias)


def _operands(node: Node) -> tuple[Node, Node, Node | None] | None:
    """What is multiplied, the matrix, and what is added."""
    if node.target in _PRODUCTS:
        return (*node.args[:2], None)
    if node.target is _aten.addmm.default and all(
        node.kwargs.get(name, 1) == 1 for name in ("beta", "alpha")
    ):
        bias, value, matrix = node.args
        return value, matrix, bias
    return None


def _is_weight(module: GraphModule, matrix: object) -> bool:
    if not isinstance(matrix, Node) or matrix.op != "get_attr":
        return False
    tensor = attribute(module, str(matrix.target))
    return tensor.dim() == 2 and tensor.is_floating_point()


def _is_bias(module: GraphModule, bias: object, matrix: Node) -> bool:
    if bias is None:
        return True
    if not isinstance(bias, Node) or bias.op != "get_attr":
        return False
    return attribute(module, str(bias.target)).shape == attribute(module, str(matrix.target)).shape[1:]
