# SPDX-License-Identifier: Apache-2.0
"""Sizes that vary, as ranks show them to each other for rank="all": sums of products of symbols and functions of such sums.

4 * s and 3 * s on two ranks are 4 and 3, one coefficient per rank, times s; (s + 3) // 4 and (s + 2) // 4 are one quotient of sums.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from ingot.capture import ANY_SIGN

Form = tuple[tuple[Any, ...], ...]
"""Terms (coefficient, factors). A factor is a symbol's name, or a function's name and its arguments, which are sizes again."""
Size = int | Form
Sizes = Sequence[Size]  # one entry per rank that shows its trace
Term = tuple[list[int], list[Any]]
"""A coefficient per rank, and factors: a symbol's name, or a function's name and one vector of sizes per argument."""

_NAMES: Mapping[str, str] = {
    "FloorDiv": "floordiv", "CleanDiv": "floordiv", "IntTrueDiv": "floordiv", "Mod": "mod", "PythonMod": "mod", "Max": "max",
    "Min": "min",
}  # fmt: skip
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": torch.sym_max, "min": torch.sym_min,
}  # fmt: skip
_COMPUTE = (
    torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default, operator.add, operator.sub, operator.mul, operator.neg,
    operator.floordiv, operator.mod, operator.pow, torch.sym_max, torch.sym_min,
)  # fmt: skip


def is_computed_size(node: Node) -> bool:
    """Whether it computes a size of other sizes: what uses it has its expression, however it was computed."""
    is_call = node.op == "call_function" and node.target in _COMPUTE
    return is_call and isinstance(node.meta.get("val"), (int, torch.SymInt))


def is_size(node: Node) -> bool:
    """Likewise, or an input that is a size, or an integer of calls, which is found in a tensor."""
    is_input = node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt)
    return is_input or bool(node.meta.get(ANY_SIGN)) or is_computed_size(node)


def size_of(value: int | torch.SymInt) -> Size:
    return value if isinstance(value, int) else _size(value.node.expr)


def from_json(value: Any) -> Any:
    """What JSON made of a size or another scalar."""
    return tuple(from_json(each) for each in value) if isinstance(value, list) else value


def _size(expression: Any) -> Size:
    import sympy

    terms = []
    for product, coefficient in sympy.expand(expression).as_coefficients_dict().items():
        if not coefficient.is_Integer:
            return ((1, ((str(expression),),)),)
        factors = [factor for each in sympy.Mul.make_args(product) if each != 1 for factor in _factors(each)]
        terms.append((int(coefficient), tuple(sorted(factors, key=repr))))
    if all(not factors for _, factors in terms):
        return sum(coefficient for coefficient, _ in terms)
    return tuple(sorted(terms, key=repr))


def _factors(expression: Any) -> list[Any]:
    import sympy

    if isinstance(expression, sympy.Symbol):
        return [str(expression)]
    if isinstance(expression, sympy.Pow) and expression.exp.is_Integer and 0 < int(expression.exp) <= 8:
        return _factors(expression.base) * int(expression.exp)
    name = _NAMES.get(type(expression).__name__)
    if name is None:
        return [(str(expression),)]  # a function without arguments: equal to itself alone
    return [(name, *(_size(argument) for argument in expression.args))]


def text_of(size: Any) -> str:
    """For people."""
    if not isinstance(size, tuple):
        return str(size)
    return " + ".join(
        "*".join(map(_factor_text, factors if number == 1 and factors else (number, *factors)))
        for number, factors in size
    )


def _factor_text(factor: Any) -> str:
    return f"{factor[0]}({', '.join(map(text_of, factor[1:]))})" if isinstance(factor, tuple) else str(factor)


def is_constant(vector: Sizes) -> bool:
    return all(isinstance(size, int) for size in vector)


def terms_of(vector: Sizes) -> list[Term] | None:
    """The one form that the sizes of all ranks have; None if there is none, or they follow from data."""
    ranks = [((size, ()),) if isinstance(size, int) else size for size in vector]
    for key in (_kinds, lambda factors: factors):
        by_rank = [
            {key(factors): (coefficient, factors) for coefficient, factors in terms} for terms in ranks
        ]
        if all(len(known) == len(terms) for known, terms in zip(by_rank, ranks, strict=True)):
            break
    terms = []
    for kinds in dict.fromkeys(kinds for known in by_rank for kinds in known):
        found = [known.get(kinds) for known in by_rank]
        any_factors = next(each[1] for each in found if each is not None)
        factors = _joined([any_factors if each is None else each[1] for each in found])
        if factors is None:
            return None
        terms.append(([0 if each is None else each[0] for each in found], factors))
    return terms


def _kinds(factors: Sequence[Any]) -> tuple[str, ...]:
    return tuple(factor if isinstance(factor, str) else f"{factor[0]}()" for factor in factors)


def _joined(by_rank: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Factors of the same kinds, with one vector per argument."""
    joined: list[Any] = []
    for column in zip(*by_rank, strict=True):
        if isinstance(column[0], str):
            joined.append(column[0])
            continue
        name, lengths = column[0][0], {len(factor) for factor in column}
        if name not in FUNCTIONS or len(lengths) > 1:
            return None
        arguments = list(zip(*(factor[1:] for factor in column), strict=True))
        if any(terms_of(vector) is None for vector in arguments):
            return None
        joined.append((name, *arguments))
    return joined


def coefficients_in(vector: Sizes) -> list[list[int]]:
    """All vectors of whole numbers that the sizes are made of."""
    if is_constant(vector):
        return [list(vector)]
    found = []
    for coefficients, factors in terms_of(vector) or []:
        found.append(coefficients)
        for factor in factors:
            found += (
                [each for argument in factor[1:] for each in coefficients_in(argument)]
                if not isinstance(factor, str)
                else []
            )
    return found


def symbols_in(vector: Sizes) -> set[str]:
    names: set[str] = set()
    for _, factors in (terms_of(vector) or []) if not is_constant(vector) else []:
        for factor in factors:
            names |= {factor} if isinstance(factor, str) else set().union(*map(symbols_in, factor[1:]))
    return names
