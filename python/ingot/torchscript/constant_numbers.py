# SPDX-License-Identifier: Apache-2.0
"""Constants of TorchScript that stand for tensors, and that count as Python numbers when dtypes are promoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

# Before it runs a graph, TorchScript makes numbers of constants of 0 dims that are the second operand of these.
_WITH_NUMBERS = {f"aten::{name}" for name in (
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide",
)}  # fmt: skip


def with_numbers(node: torch._C.Node, inputs: Sequence[Any]) -> list[Any]:
    """The operands of a node, with numbers in place of such constants: the 2.5 of `x * 2.5` is traced as a tensor of f64."""
    return [
        _number(each, value, position == 1 and _takes_number(node))
        for position, (each, value) in enumerate(zip(node.inputs(), inputs, strict=True))
    ]


def _number(source: torch._C.Value, value: Any, becomes_number: bool) -> Any:
    if source.node().kind() != "prim::Constant" or not isinstance(value, torch.Tensor):
        return value
    constant = source.toIValue()
    if not isinstance(constant, torch.Tensor):
        return constant  # torch marks those that were numbers when the model was traced, until it is saved
    # `item` would be an operator, which torch.export records.
    return constant.tolist() if becomes_number and constant.dim() == 0 else value


def _takes_number(node: torch._C.Node) -> bool:
    return node.kind() in _WITH_NUMBERS and "rounding_mode" not in node.schema()
