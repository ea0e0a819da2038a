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

from ingot import rank_expressions, rank_operators  # noqa: F401
from ingot.rank_expressions import Size
from ingot.rank_places import Places, Vector
from ingot.rank_traces import sizes_of_inputs


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
        self._nodes: dict[tuple[Size, ...], Node] = {}
        self._varying_nodes: dict[str, Node] = {}
        self._symbols = [
            self._symbol(*entry) for entry in zip(self._basis.tables, symbols.values, strict=True)
        ]

    def expression(self, vector: Sequence[Size]) -> int | torch.SymInt:
        if not rank_expressions.is_constant(vector):
            return self.node(vector).meta["val"]
        constant, coefficients = self._basis.combination(vector)
        terms = zip(coefficients, self._symbols, strict=True)
        return sum((c * symbol.meta["val"] for c, symbol in terms if c), start=constant)

    def node(self, vector: Sequence[Size]) -> Any:
        """A node, or a number that is the same on all ranks."""
        is_constant = rank_expressions.is_constant(vector)
        if is_constant and len(set(vector)) == 1:
            return vector[0]
        if tuple(vector) not in self._nodes:
            made = self._sum(*self._basis.combination(vector)) if is_constant else self._sum_of_terms(vector)
            self._nodes[tuple(vector)] = made
        return self._nodes[tuple(vector)]

    def added(self, a: Any, b: Any) -> Any:
        """Of nodes or numbers."""
        if not isinstance(a, Node) and not isinstance(b, Node):
            return a + b
        return self._computed(operator.add, *((a, b) if isinstance(a, Node) else (b, a)))

    def tensor(self, like: torch.Tensor, shape: Sequence[Vector]) -> torch.Tensor:
        """`like` with these sizes: dense, its dims in memory in the same order. Sizes that vary are those of `like`."""
        sizes = [
            self.expression(vector) if len(set(vector)) > 1 else own
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

    def _sum_of_terms(self, vector: Sequence[Size]) -> Node:
        """Of symbols that inputs have, with coefficients of each rank's own."""
        total: Any = 0
        for coefficients, factors in rank_expressions.terms_of(vector) or []:
            term = self.node(coefficients)
            for factor in factors:
                value = self._varying(factor) if isinstance(factor, str) else self._function(*factor)
                term = value if term == 1 else self._computed(operator.mul, value, term)
            total = term if total == 0 else self._computed(operator.add, term, total)
        return total

    def _varying(self, name: str) -> Node:
        """The symbol of an input's size."""
        if name not in self._varying_nodes:
            given, dim, linear = sizes_of_inputs(self._first.graph)[name]
            node = given
            if dim is not None:
                node = self._call(torch.ops.aten.sym_size.int, given, dim)
                node.meta["val"] = given.meta["val"].shape[dim]
            if linear.offset:
                node = self._computed(operator.sub, node, linear.offset)
            if linear.factor > 1:
                node = self._computed(operator.floordiv, node, linear.factor)
            self._varying_nodes[name] = node
        return self._varying_nodes[name]

    def _function(self, name: str, *arguments: Sequence[Size]) -> Any:
        first, *others = (self.node(vector) for vector in arguments)
        for other in others:
            first = self._computed(rank_expressions.FUNCTIONS[name], first, other)
        return first

    def _computed(self, function: Any, a: Any, b: Any) -> Node:
        node = self._call(function, a, b)
        node.meta["val"] = function(
            *(each.meta["val"] if isinstance(each, Node) else each for each in (a, b))
        )
        return node

    def _call(self, target: Any, *arguments: Any) -> Node:
        with self._first.graph.inserting_before(self._first):
            return self._first.graph.call_function(target, arguments)


def _order_of(tensor: torch.Tensor, dim: int) -> tuple[int, int]:
    stride = tensor.stride(dim)
    return (stride if isinstance(stride, int) else 1, -dim)
