# SPDX-License-Identifier: Apache-2.0
"""Sizes that vary and depend on the rank: one form for those of all ranks, with the value of each."""

import random
from typing import Any

import pytest
import sympy
from ingot import rank_expressions
from ingot.rank_expressions import FUNCTIONS, Size, from_json, is_constant, symbols_in, terms_of
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod

S, T = (sympy.Symbol(name, integer=True, positive=True) for name in ("s", "t"))
VALUES = {"s": 13, "t": 6}


def form(expression: Any) -> Size:
    return rank_expressions._size(sympy.sympify(expression))


def value_on(rank: int, vector: Any) -> int:
    """What the form of all ranks is on one of them."""
    if is_constant(vector):
        return vector[rank]
    total = 0
    for coefficients, factors in terms_of(vector):
        product = coefficients[rank]
        for factor in factors:
            product *= VALUES[factor] if isinstance(factor, str) else call(rank, *factor)
        total += product
    return total


def call(rank: int, name: str, *arguments: Any) -> int:
    first, *others = (value_on(rank, argument) for argument in arguments)
    for other in others:
        first = {"max": max, "min": min}.get(name, FUNCTIONS[name])(first, other)
    return first


def expected(expression: Any) -> int:
    return int(sympy.sympify(expression).subs({S: VALUES["s"], T: VALUES["t"]}))


def check(expressions: list[Any]) -> None:
    vector = from_json([[*size] if isinstance(size, tuple) else size for size in map(form, expressions)])
    assert [value_on(rank, vector) for rank in range(len(expressions))] == list(map(expected, expressions))


@pytest.mark.parametrize(
    "expressions",
    [
        [4 * S, 3 * S],
        [S + 2, S + 3, S],
        [0, FloorDiv(S, 2), S],
        [S * T + S, 2 * S * T, 7],
        [FloorDiv(S + 3, 4), FloorDiv(S + 2, 4), FloorDiv(S + 1, 4)],
        [FloorDiv(S + 1, 2) + FloorDiv(S, 2), FloorDiv(S + 1, 2)],  # two of a kind
        [Max(S, 2), 3 * Max(S, 4) - 1],
        [Mod(S, 4) * S**2, Mod(S + T, 5) * S**2],
        [Min(FloorDiv(S, 2), T), Min(FloorDiv(S, 3), 2 * T)],
    ],
    ids=str,
)
def test_all_ranks_have_one_form(expressions: list[Any]) -> None:
    check(expressions)


def test_random_sizes() -> None:
    """A form for each rank that is right there, or none."""
    rng = random.Random(1)
    unified = 0
    for _ in range(300):
        expressions = [random_size(rng, 2) for _ in range(rng.choice([2, 4]))]
        if terms_of([form(each) for each in expressions]) is not None:
            check(expressions)
            unified += 1
    assert unified > 100


def random_size(rng: random.Random, depth: int) -> Any:
    terms = []
    for _ in range(rng.randint(1, 2)):
        factors = [rng.choice([S, T, 1]) for _ in range(rng.randint(0, 2))]
        if depth and rng.random() < 0.4:
            kind = rng.choice([FloorDiv, Mod, Max, Min])
            second = random_size(rng, 0) if kind in (Max, Min) else rng.randint(2, 5)
            factors.append(kind(S + T + random_size(rng, depth - 1), second))
        terms.append(rng.randint(1, 4) * sympy.Mul(*factors))
    return sympy.Add(*terms)


def test_what_has_no_form() -> None:
    assert terms_of([form(sympy.sqrt(S)), form(2 * S)]) is None
    assert terms_of([form(S), form(S)]) is not None
    assert symbols_in([form(FloorDiv(S, 2) + 1), form(T)]) == {"s", "t"}
