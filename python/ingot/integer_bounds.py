# SPDX-License-Identifier: Apache-2.0
"""The integer arguments that the guards of an exported program bound from below by 0."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

# The smallest value of (left - right), of integers, where the comparison holds; of <= and <, that of (right - left).
_AT_LEAST = {ast.GtE: 0, ast.Gt: 1, ast.Eq: 0}
_AT_MOST = {ast.LtE: 0, ast.Lt: 1, ast.Eq: 0}


class _Linear(NamedTuple):
    """factor * argument + term; `argument` is "" where the factor is 0."""

    argument: str
    factor: Fraction
    term: Fraction


def not_negative(guards: Iterable[str]) -> set[str]:
    """The arguments, by name. A guard such as `1 + L['n'] >= 2` says it of n; one over several arguments of none."""
    parsed = (ast.parse(guard.strip(), mode="eval").body for guard in guards)
    return {name for guard in parsed for name, lowest in _lower_bounds(guard) if lowest >= 0}


def _lower_bounds(guard: ast.expr) -> Iterator[tuple[str, Fraction]]:
    if isinstance(guard, ast.BoolOp) and isinstance(guard.op, ast.And):
        for part in guard.values:
            yield from _lower_bounds(part)
    if not isinstance(guard, ast.Compare):
        return
    operands = [_linear(each) for each in (guard.left, *guard.comparators)]
    for left, sign, right in zip(operands, guard.ops, operands[1:], strict=False):
        for larger, smaller, least in (
            (left, right, _AT_LEAST.get(type(sign))),
            (right, left, _AT_MOST.get(type(sign))),
        ):
            difference = _sum(larger, _scaled(smaller, Fraction(-1)))
            if least is not None and difference is not None and difference.factor > 0:
                # ">= -k" of a fraction above -1 is ">= 0" of an integer
                yield difference.argument, Fraction(-((difference.term - least) // difference.factor))


def _linear(node: ast.expr) -> _Linear | None:
    """None for what is not linear in one integer argument."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _Linear("", Fraction(0), Fraction(node.value))
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        is_argument = isinstance(node.value, ast.Name) and isinstance(node.slice.value, str)
        return _Linear(node.slice.value, Fraction(1), Fraction(0)) if is_argument else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _scaled(_linear(node.operand), Fraction(-1))
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _linear(node.left), _linear(node.right)
    if isinstance(node.op, ast.Add):
        return _sum(left, right)
    if isinstance(node.op, ast.Sub):
        return _sum(left, _scaled(right, Fraction(-1)))
    if isinstance(node.op, ast.Mult) and left is not None and right is not None:
        known, other = (left, right) if not left.argument else (right, left)
        return None if known.argument else _scaled(other, known.term)
    return None


def _sum(a: _Linear | None, b: _Linear | None) -> _Linear | None:
    if a is None or b is None or (a.argument and b.argument and a.argument != b.argument):
        return None
    return _Linear(a.argument or b.argument, a.factor + b.factor, a.term + b.term)


def _scaled(a: _Linear | None, factor: Fraction) -> _Linear | None:
    return None if a is None else _Linear(a.argument, a.factor * factor, a.term * factor)
