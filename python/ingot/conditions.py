# SPDX-License-Identifier: Apache-2.0
"""The conditions on the arguments of a program that runs in parts: those of a single engine, checked before anything runs."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule

from ingot import _core
from ingot.calling import check_value
from ingot.capture import LARGEST, Capture, Input
from ingot.errors import UserError, kind_of
from ingot.guards import compile_guard, names_in, python_text
from ingot.kinds import InputRole
from ingot.linear_sizes import LinearSize

_VARYING = (torch.Tensor, torch.SymInt, torch.SymBool, torch.SymFloat)
Sizes = dict[str, int]  # of the symbols


@dataclass(frozen=True)
class _Argument:
    """A tensor argument: its sizes are integers, symbols, or expressions over symbols."""

    position: int
    name: str
    dtype: torch.dtype
    texts: tuple[str, ...]
    sizes: tuple[int | LinearSize | Callable[[Sizes], int], ...]

    def linear(self, are_alone: bool) -> list[tuple[int, LinearSize]]:
        """The dims that decide a symbol: those that are one, or the others."""
        return [
            (dim, size)
            for dim, size in enumerate(self.sizes)
            if isinstance(size, LinearSize) and size.is_alone == are_alone
        ]

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')}[{','.join(self.texts)}]"

    def tensor_of(self, arguments: Sequence[Any]) -> torch.Tensor:
        value = arguments[self.position]
        if isinstance(value, torch.Tensor):
            return value
        raise UserError(
            f"input '{self.name}' is {kind_of(value)}, but a module that torch runs in part takes a tensor",
            code="INGOT-U309",
        )

    def refuse(self, code: str, dim: int, cause: str) -> UserError:
        return UserError(f"dim {dim} of input '{self.name}' ({self}) {cause}", code=code)


@dataclass(frozen=True)
class _Condition:
    """A condition of an engine, over symbols."""

    holds: Callable[[Sizes], bool]
    text: str  # as reported, in names of arguments
    symbols: tuple[str, ...]
    node: str
    source: str


@dataclass
class Conditions:
    """Evaluated once per new shapes of the arguments."""

    arguments: list[_Argument]
    ranges: Mapping[str, tuple[int, int]]
    places: dict[str, str]  # symbol -> "x.shape[0]"
    numbers: dict[int, str]  # position of an argument that is a symbol
    fixed: dict[int, tuple[str, Any]]  # position of an argument that the build fixed: its name and value
    conditions: list[_Condition] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)  # of the conditions, as engines list them
    _known: set[tuple] = field(default_factory=set)

    @staticmethod
    def of(module: GraphModule, inputs: Sequence[Input], capture: Capture) -> Conditions:
        """`capture`: of the whole module."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        arguments, places, numbers, fixed = [], {}, {}, {}
        for position, (node, given) in enumerate(zip(placeholders, inputs, strict=True)):
            example = node.meta.get("val")
            if given.kind != InputRole.USER:
                continue
            if isinstance(example, torch.SymInt) and str(example.node.expr) in capture.ranges:
                numbers[position] = str(example.node.expr)
                places.setdefault(numbers[position], given.name or node.name)
            if not isinstance(example, _VARYING):
                fixed[position] = given.name or node.name, given.literal
            if isinstance(example, torch.Tensor):
                argument = _argument(position, given.name or node.name, example)
                arguments.append(argument)
        for are_alone in (True, False):
            for argument in arguments:
                for dim, size in argument.linear(are_alone):
                    places.setdefault(size.symbol, size.spelled(f"{argument.name}.shape[{dim}]"))
        return Conditions(arguments, capture.ranges, places, numbers, fixed)

    def add(self, engine: _core.Engine, names: Mapping[str, str]) -> None:
        """Those of an engine whose symbols are the module's; conditions on symbols that no argument has stay with the engine.

        `names`: of its nodes in the whole graph.
        """
        for row in json.loads(engine.inspect())["conditions"]:
            self._add({**row, "node": names.get(row["node"], row["node"])})

    def _add(self, row: Mapping[str, str]) -> None:
        condition = _condition(row, self.places)
        if condition is not None and condition.text not in [known.text for known in self.conditions]:
            self.conditions.append(condition)
            self.rows.append({key: row[key] for key in ("kind", "message", "over_symbols", "node", "source")})

    def record(self) -> dict[str, Any]:
        """All state that does not follow from the program, as JSON."""
        ranges = {symbol: self.ranges[symbol] for symbol in self.places if symbol in self.ranges}
        return {"places": self.places, "ranges": ranges, "rows": self.rows}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Uses the record with another export of the program, whose symbols have other names."""
        here = {place: symbol for symbol, place in self.places.items()}
        names = {symbol: here[place] for symbol, place in record["places"].items() if place in here}
        ranges = {names[symbol]: tuple(span) for symbol, span in record["ranges"].items() if symbol in names}
        self.ranges = {**self.ranges, **ranges}
        for row in record["rows"]:
            if all(symbol in names for symbol in names_in(row["over_symbols"])):
                self._add({**row, "over_symbols": _renamed(row["over_symbols"], names)})

    @property
    def number_names(self) -> list[str]:
        """The arguments that are integers, which calls choose."""
        return [self.places[symbol] for symbol in self.numbers.values()]

    def check(self, arguments: Sequence[Any]) -> None:
        """`arguments`: the flat inputs of the module. UserError for the first invalid one."""
        for position, (name, value) in self.fixed.items():
            check_value(name, value, arguments[position])
        numbers = {
            symbol: self._number(symbol, arguments[position]) for position, symbol in self.numbers.items()
        }
        tensors = [each.tensor_of(arguments) for each in self.arguments]
        shapes = [(tensor.shape, tensor.dtype) for tensor in tensors]
        key = (*shapes, *numbers.values())
        if key in self._known:
            return
        sizes = self._bind(arguments, numbers)
        for condition in self.conditions:
            if not condition.holds(sizes):
                raise self._refusal(condition, sizes)
        if len(self._known) > 1000:
            self._known.clear()
        self._known.add(key)

    def _number(self, symbol: str, value: Any) -> int:
        try:
            return operator.index(value)
        except TypeError:
            raise UserError(
                f"argument {self.places[symbol]} is {kind_of(value)}, but the model takes an integer",
                code="INGOT-U308",
            ) from None

    def _bind(self, arguments: Sequence[Any], numbers: Sizes) -> Sizes:
        sizes = dict(numbers)
        for each in self.arguments:
            self._bind_one(each, arguments[each.position], sizes)
        for each in self.arguments:
            for dim, size in each.linear(are_alone=False):
                actual = arguments[each.position].shape[dim]
                if size.symbol not in sizes:
                    sizes[size.symbol] = size.symbol_of(actual)
                    self._check_range(each, dim, size, sizes[size.symbol], actual)
        for each in self.arguments:
            for dim, (size, actual) in enumerate(
                zip(each.sizes, arguments[each.position].shape, strict=True)
            ):
                expected = size if isinstance(size, int) else size(sizes)
                if expected != actual:
                    raise each.refuse("INGOT-U303", dim, f"is {actual}, but the model expects {expected}")
        return sizes

    def _bind_one(self, each: _Argument, tensor: torch.Tensor, sizes: Sizes) -> None:
        if tensor.dim() != len(each.sizes):
            raise UserError(
                f"input '{each.name}' has {tensor.dim()} dims, but the model takes {each}", code="INGOT-U301"
            )
        if tensor.dtype != each.dtype:
            raise UserError(
                f"input '{each.name}' is {tensor.dtype}, but the model takes {each}",
                code="INGOT-U302",
                advice="convert the tensor before the call",
            )
        for dim, size in each.linear(are_alone=True):
            symbol, actual = size.symbol, tensor.shape[dim]
            if sizes.setdefault(symbol, actual) != actual:
                cause = f"is {actual}, but {self.places[symbol]} is {sizes[symbol]}: both are {symbol}"
                raise each.refuse("INGOT-U304", dim, cause)
            self._check_range(each, dim, size, actual, actual)

    def _check_range(self, each: _Argument, dim: int, size: LinearSize, value: int, actual: int) -> None:
        low, high = self.ranges.get(size.symbol, (0, LARGEST))
        if low <= value <= high:
            return
        low, high = size.size_of(low), high if high == LARGEST else size.size_of(high)
        span = f"at least {low}" if high == LARGEST else f"{low}..{high}"
        cause = f"is {actual}, outside of the range {span} that the module was built for"
        raise each.refuse("INGOT-U305", dim, cause)

    def _refusal(self, condition: _Condition, sizes: Sizes) -> UserError:
        here = ", ".join(f"{self.places[symbol]} is {sizes[symbol]}" for symbol in condition.symbols)
        return UserError(
            f"{condition.text}; here {here}", code="INGOT-U312", node=condition.node, source=condition.source
        )


def _argument(position: int, name: str, example: torch.Tensor) -> _Argument:
    return _Argument(
        position,
        name,
        example.dtype,
        tuple(map(str, example.shape)),
        tuple(_size(size) for size in example.shape),
    )


def _size(size: int | torch.SymInt) -> int | LinearSize | Callable[[Sizes], int]:
    if isinstance(size, int):
        return size
    return LinearSize.of(size.node.expr) or compile_guard(python_text(size.node.expr))


def _condition(row: Mapping[str, str], places: Mapping[str, str]) -> _Condition | None:
    """None if it uses a symbol that no argument has."""
    symbols = tuple(dict.fromkeys(names_in(row["over_symbols"])))
    if any(symbol not in places for symbol in symbols):
        return None
    text = _renamed(row["over_symbols"], places)
    return _Condition(
        compile_guard(row["over_symbols"]), _told(row, text), symbols, row["node"], row["source"]
    )


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), text)


def _told(row: Mapping[str, str], condition: str) -> str:
    """Reported as engines do."""
    if row["kind"] == "bounds":
        return f"'{row['message']}' needs {condition}"
    if row["kind"] == "assertion":
        own = f" ({row['message']})" if row["message"] else ""
        return f"the program asserts {condition}{own}"
    return f"the program was traced for {condition}"
