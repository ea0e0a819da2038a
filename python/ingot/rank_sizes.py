# SPDX-License-Identifier: Apache-2.0
"""Sizes that depend on the rank, for rank="all": sums of symbols, of which a table has one value per rank.

Sizes of a program are vectors with one entry per rank that shows its trace: (8, 8, 8, 7) rows of a weight, (2, 2, 2, 1) heads. All of
them are whole combinations of a few vectors, of which each becomes a symbol; equal sizes then are equal expressions: 8 * (1 + s) and
8 + 8 * s.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import Node

from ingot import rank_operators  # noqa: F401
from ingot.rank_places import Places, Vector


class Basis:
    """Vectors of which all others are whole combinations, up to a constant."""

    def __init__(self, vectors: Iterable[Vector]) -> None:
        self._rows: list[list[int]] = []  # in echelon form: differences from rank 0's entry
        for vector in vectors:
            self._add(_differences(vector))
        self.tables = [self._table(row) for row in self._rows]  # none of them has negative entries

    def combination(self, vector: Vector) -> tuple[int, list[int]]:
        """A constant, and one coefficient per table."""
        left = _differences(vector)
        coefficients = []
        for row in self._rows:
            pivot = _pivot(row)
            coefficients.append(left[pivot] // row[pivot])
            left = [a - coefficients[-1] * b for a, b in zip(left, row, strict=True)]
        constant = vector[0] - sum(c * table[0] for c, table in zip(coefficients, self.tables, strict=True))
        return constant, coefficients

    def _add(self, vector: list[int]) -> None:
        """Euclid's algorithm, entry by entry."""
        while any(vector):
            pivot = _pivot(vector)
            row = next((row for row in self._rows if _pivot(row) == pivot), None)
            if row is None:
                self._rows.append(vector)
                self._rows.sort(key=_pivot)
                return
            if abs(row[pivot]) > abs(vector[pivot]):  # the row goes on with what is left of it
                self._rows[self._rows.index(row)], vector, row = vector, row, vector
            factor = vector[pivot] // row[pivot]
            vector = [a - factor * b for a, b in zip(vector, row, strict=True)]

    def _table(self, row: list[int]) -> list[int]:
        lowest = min(0, *row)
        return [entry - lowest for entry in (0, *row)]


def _differences(vector: Vector) -> list[int]:
    return [entry - vector[0] for entry in vector[1:]]


def _pivot(row: Sequence[int]) -> int:
    return next(k for k, entry in enumerate(row) if entry)


class Symbols:
    """One per vector of the basis, for all graphs of a program."""

    def __init__(self, vectors: Iterable[Vector], fake: Any, places: Places) -> None:
        self.basis, self.places = Basis(vectors), places
        self.values = [new_size(fake) for _ in self.basis.tables]


def new_size(fake: Any) -> torch.SymInt:
    value = fake.shape_env.create_unbacked_symint()
    torch._check(value >= 0)
    return value


class Sizes:
    """The sizes of a graph, as expressions and as nodes that compute them before `first`."""

    def __init__(self, symbols: Symbols, first: Node, fake: Any) -> None:
        self._basis, self._places = symbols.basis, symbols.places
        self._first, self._fake = first, fake
        self._nodes: dict[tuple[int, ...], Node] = {}
        self._symbols = [
            self._symbol(*entry) for entry in zip(self._basis.tables, symbols.values, strict=True)
        ]

    def expression(self, vector: Vector) -> int | torch.SymInt:
        constant, coefficients = self._basis.combination(vector)
        terms = zip(coefficients, self._symbols, strict=True)
        return sum((c * symbol.meta["val"] for c, symbol in terms if c), start=constant)

    def node(self, vector: Vector) -> Node | int:
        if len(set(vector)) == 1:
            return vector[0]
        if tuple(vector) not in self._nodes:
            self._nodes[tuple(vector)] = self._sum(*self._basis.combination(vector))
        return self._nodes[tuple(vector)]

    def tensor(self, like: torch.Tensor, shape: Sequence[Vector]) -> torch.Tensor:
        """`like` with these sizes: dense, its dims in memory in the same order. Sizes that vary are those of `like`."""
        sizes = [
            self.expression(vector) if isinstance(vector[0], int) else own
            for vector, own in zip(shape, like.shape, strict=True)
        ]
        order = sorted(range(len(sizes)), key=lambda dim: _order_of(like, dim))
        strides: list[Any] = [0] * len(sizes)
        reached: Any = 1
        for dim in order:
            strides[dim] = reached
            reached = reached * sizes[dim]
        with self._fake:
            return torch.empty_strided(sizes, strides, dtype=like.dtype, device=like.device)

    def _symbol(self, table: list[int], value: torch.SymInt) -> Node:
        node = self._call(torch.ops.ingot.size_of_rank.default, *self._places.table(table))
        node.meta["val"] = value
        return node

    def _sum(self, constant: int, coefficients: Sequence[int]) -> Node:
        total: Node | None = None
        for coefficient, symbol in zip(coefficients, self._symbols, strict=True):
            if coefficient == 0:
                continue
            term = symbol if coefficient == 1 else self._computed(operator.mul, symbol, coefficient)
            total = term if total is None else self._computed(operator.add, total, term)
        return total if constant == 0 else self._computed(operator.add, total, constant)

    def _computed(self, function: Any, a: Any, b: Any) -> Node:
        node = self._call(function, a, b)
        node.meta["val"] = function(a.meta["val"], b.meta["val"] if isinstance(b, Node) else b)
        return node

    def _call(self, target: Any, *arguments: Any) -> Node:
        with self._first.graph.inserting_before(self._first):
            return self._first.graph.call_function(target, arguments)


def _order_of(tensor: torch.Tensor, dim: int) -> tuple[int, int]:
    stride = tensor.stride(dim)
    return (stride if isinstance(stride, int) else 1, -dim)
