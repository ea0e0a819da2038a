# SPDX-License-Identifier: Apache-2.0
"""Sizes that torch has as sympy expressions, in the text form of dims."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import torch
from torch.fx import GraphModule

from ingot.errors import UnsupportedError

_ROUNDED = ("TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt")
_FINEST = 1 << 20  # torch multiplies sizes with floats in f64, which is exact for multiples of 1 / _FINEST


def _rounded_text(expression: Any) -> str:
    """A size times a float, rounded down."""
    import sympy

    product = expression.args[0]
    factors = product.args if isinstance(product, sympy.Mul) else (product,)
    sizes = [factor.args[0] for factor in factors if type(factor).__name__ == "ToFloat"]
    numbers = [float(factor) for factor in factors if isinstance(factor, sympy.Float)]
    scale = Fraction(math.prod(numbers))
    is_exact = len(sizes) == 1 and len(sizes) + len(numbers) == len(factors) and scale.denominator <= _FINEST
    if not is_exact or scale < 0 or not sizes[0].is_nonnegative:
        raise UnsupportedError(f"no dim expression for {expression}", code="INGOT-N005")
    return f"floordiv({scale.numerator}*{dim_text(sizes[0])}, {scale.denominator})"


def dim_text(expression: Any) -> str:
    """A sympy expression over integers in the text form of dims; UnsupportedError if there is none."""
    import sympy

    kind = type(expression).__name__
    if isinstance(expression, sympy.Symbol):
        return str(expression)
    if isinstance(expression, sympy.Integer):
        return str(int(expression))
    if kind in ("TruncToInt", "FloorToInt"):
        return _rounded_text(expression)
    operands = [dim_text(operand) for operand in expression.args]
    if isinstance(expression, sympy.Add):
        return "(" + " + ".join(operands) + ")"
    if isinstance(expression, sympy.Mul):
        return "(" + "*".join(operands) + ")"
    if isinstance(expression, sympy.Pow) and expression.exp.is_Integer and 0 < int(expression.exp) <= 8:
        return "(" + "*".join([operands[0]] * int(expression.exp)) + ")"
    functions = {
        "FloorDiv": "floordiv", "CleanDiv": "floordiv", "IntTrueDiv": "floordiv", "Mod": "mod", "PythonMod": "mod", "Max": "max",
        "Min": "min",
    }  # fmt: skip
    if kind in functions:
        text = operands[0]
        for operand in operands[1:]:
            text = f"{functions[kind]}({text}, {operand})"
        return text
    if kind == "CeilDiv":
        return f"floordiv({operands[0]} + {operands[1]} - 1, {operands[1]})"
    if kind == "ModularIndexing":
        return f"mod(floordiv({operands[0]}, {operands[1]}), {operands[2]})"
    if kind == "Identity":
        return operands[0]
    raise UnsupportedError(f"no dim expression for {expression}", code="INGOT-N005")


def name_rounded(module: GraphModule, names: dict[Any, Any]) -> None:
    """Names integers that nodes round from floats and that have no text form by symbols, which runs find: sizes may follow from them.

    names: sympy expression -> its symbol, to which they are added.
    """
    import sympy

    for node in module.graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt) or type(value.node.expr).__name__ not in _ROUNDED:
            continue
        try:
            dim_text(value.node.expr)
        except UnsupportedError:
            names.setdefault(value.node.expr, sympy.Symbol(f"rounded{len(names)}", integer=True))
