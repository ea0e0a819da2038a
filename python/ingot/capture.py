# SPDX-License-Identifier: Apache-2.0
"""FX graphs of ATen calls -> _core.Builder, one call per node. Interprets nothing: that is left to the importer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import _core, compat, composites, ranks
from ingot.dim_texts import dim_text, name_rounded
from ingot.errors import UnsupportedError
from ingot.kinds import ArgumentKind, InputRole, OutputRole, ValueKind
from ingot.source import source_of

# Values of ingot_dtype.
DTYPES = {
    torch.bool: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 4, torch.int32: 5, torch.int64: 6, torch.float16: 7,
    torch.bfloat16: 8, torch.float32: 9, torch.float64: 10, torch.uint16: 11, torch.uint32: 12, torch.uint64: 13,
    torch.float8_e4m3fn: 14, torch.float8_e5m2: 15, torch.complex64: 18, torch.complex128: 19,
}  # fmt: skip
TORCH_DTYPES = {number: dtype for dtype, number in DTYPES.items()}

LARGEST = 2**63 - 1  # the upper end of a range without one

ANY_SIGN = "ingot_any_sign"  # of a node that is an integer of calls: its range is not the one that torch notes for it

_WITH_GRAPHS = tuple(
    f"higher_order.{name}" for name in ("cond", "while_loop", "scan", "map_impl", "associative_scan")
)  # imported


@dataclass
class Input:
    """The role of a placeholder."""

    kind: InputRole = InputRole.USER
    name: str = ""
    data: torch.Tensor | None = None
    literal: object = None  # the value of a user input that is not a tensor
    is_saved: bool = True  # False: a buffer that state dicts leave out
    filled: torch.Tensor | None = None  # `data` with zeros up to the size of the largest part on any rank
    other_names: tuple[str, ...] = ()  # of the same tensor, in the state dict


@dataclass
class Output:
    """The role of an output: returned to the user, or the new value of the input called `target`."""

    kind: OutputRole = OutputRole.USER
    target: str | None = None


class Capture:
    """Fills a builder from one GraphModule.

    `inputs` has one entry per placeholder; `outputs` one per flat output (default: all for the user).
    """

    def __init__(
        self, origin: str, outer: Capture | None = None, groups: Mapping[str, str] | None = None
    ) -> None:
        """`outer`: of the graph around this one. `groups`: of ranks, that the program calls otherwise than torch does."""
        self.builder = outer.builder if outer is not None else _core.Builder(origin)
        self.ranges: dict[str, tuple[int, int]] = (
            outer.ranges if outer is not None else {}
        )  # of sizes' symbols
        self.groups: set[str] = set()  # of ranks, by the program's names
        self._group_names: Mapping[str, str] = outer._group_names if outer is not None else groups or {}
        self.nodes: list[Node] = []  # position in the builder's program -> FX node
        self._any_sign: set[str] = outer._any_sign if outer is not None else set()  # symbols of such integers
        # Rounded floats: sympy expression -> its symbol.
        self._rounded: dict[Any, Any] = outer._rounded if outer is not None else {}
        self._is_outermost = outer is None
        self._ids: dict[Node, int | list[int]] = {}
        self._graphs: dict[Node, int] = {}

    def graph(
        self, module: GraphModule, inputs: Sequence[Input], outputs: Sequence[Output] | None = None
    ) -> None:
        self.groups |= {self._group_name(name) for name in ranks.groups_in(module)}
        self._any_sign |= {
            str(node.meta["val"].node.expr) for node in module.graph.nodes if node.meta.get(ANY_SIGN)
        }
        if self._is_outermost:
            name_rounded(module, self._rounded)
            self._any_sign |= set(map(str, self._rounded.values()))
        placeholders = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, next(placeholders))
            elif node.op == "get_attr":
                self._attribute(node, module)
            elif node.op == "call_function":
                self._call(node, module)
            elif node.op == "output":
                self._outputs(node, outputs)
            else:
                raise UnsupportedError(
                    f"FX node {node.name} is a {node.op}", code="INGOT-N004", node=node.name
                )

    # ---- values ----
    def _value(self, name: str, example: Any) -> int:
        if isinstance(example, torch.Tensor):
            if example.dtype not in DTYPES or example.layout is not torch.strided:
                return self.builder.value(name, ValueKind.OTHER, 9, [], None)
            try:
                dims = [self.dim(size) for size in example.shape]
                strides = [self.dim(stride) for stride in example.stride()]
            except UnsupportedError:  # sizes without a text form: nodes that read them are unsupported
                return self.builder.value(name, ValueKind.OTHER, 9, [], None)
            return self.builder.value(name, ValueKind.TENSOR, DTYPES[example.dtype], dims, strides)
        if isinstance(example, (torch.SymBool, bool)):
            return self.builder.value(name, ValueKind.BOOL, 1, [], None)
        if isinstance(example, (torch.SymInt, int)):
            try:
                return self.builder.value(name, ValueKind.INTEGER, 6, [self.dim(example)], None)
            except UnsupportedError:  # no text form: the importer may know how it is computed
                return self.builder.value(name, ValueKind.INTEGER, 6, [], None)
        if isinstance(example, (torch.SymFloat, float)):
            return self.builder.value(name, ValueKind.FLOAT, 10, [], None)
        return self.builder.value(name, ValueKind.OTHER, 9, [], None)

    def dim(self, size: int | torch.SymInt) -> str:
        """A dim expression in our text form, whose symbols it declares."""
        if isinstance(size, int):
            return str(size)
        expression = size.node.expr.xreplace(self._rounded)
        environment = size.node.shape_env
        for symbol in expression.free_symbols:
            self._declare(symbol, environment)
        return dim_text(expression)

    def _declare(self, symbol: Any, environment: Any) -> None:
        name = str(symbol)
        if name in self.ranges:
            return
        bounds = environment.var_to_range.get(symbol)
        low, high = (_bound(bounds.lower), _bound(bounds.upper)) if bounds is not None else (0, LARGEST)
        hint = compat.sizes_seen(environment).get(symbol)
        if not getattr(hint, "is_Integer", True):  # of a nested tensor, whose rows have sizes of their own
            raise UnsupportedError(f"the size {name} is not a number", code="INGOT-N004")
        # torch traces with 2 or more; sizes that stay symbolic are valid for 1 too.
        low = 1 if low == 2 else low
        low, high = (-LARGEST, LARGEST) if name in self._any_sign else (low, high)
        self.ranges[name] = (low, high)
        self.builder.symbol(name, low, high, int(hint) if hint is not None else -1)

    # ---- nodes ----
    def _placeholder(self, node: Node, given: Input) -> None:
        example = node.meta.get("val", given.data)
        literal: list[tuple] = []
        if given.kind == InputRole.USER and not isinstance(example, (torch.Tensor, torch.SymInt)):
            literal = self._flat(given.literal if given.literal is not None else example)
        identifier = self._value(node.name, example)
        self._ids[node] = identifier
        data = on_host(given.data if given.filled is None else given.filled)
        self.builder.input(identifier, given.kind, given.name or node.name, data, literal, given.is_saved)

    def _attribute(self, node: Node, module: GraphModule) -> None:
        data = attribute_of(module, node.target)
        if isinstance(data, GraphModule):  # an operand of a higher-order operator
            if any(target_name(user.target) in _WITH_GRAPHS for user in node.users):
                self._graphs[node] = self._nested(data)
            return
        identifier = self._value(node.name, data)
        self._ids[node] = identifier
        self.builder.input(identifier, InputRole.CONSTANT, str(node.target), on_host(data), [])

    def _nested(self, module: GraphModule) -> int:
        """The number of a graph that a branch or loop runs. Its nodes have no positions of their own."""
        inner = Capture("", self)
        self.builder.begin_graph()
        count = sum(node.op == "placeholder" for node in module.graph.nodes)
        inner.graph(module, [Input()] * count)
        return self.builder.end_graph()

    def _call(self, node: Node, module: GraphModule) -> None:
        if getattr(node.target, "__name__", "") == "getitem" and isinstance(
            self._ids.get(node.args[0]), list
        ):
            self._ids[node] = self._ids[node.args[0]][node.args[1]]
            return
        arguments: list[tuple] = []
        for name, value in _named_arguments(node):
            if name in ranks.GROUP_ARGUMENTS:
                value = self._group_name(value) if isinstance(value, str) else [*map(self._group_name, value)]
            arguments += self._flat(value, name)
        example = node.meta.get("val")
        several = isinstance(example, (tuple, list))
        examples = list(example) if several else [] if example is None else [example]
        if target_name(node.target) in _WITH_CONDITIONS:
            examples = [item if index in _results_read(node) else None for index, item in enumerate(examples)]
        ids = [-1 if item is None else self._value(f"{node.name}.{i}" if several else node.name, item)
               for i, item in enumerate(examples)]  # fmt: skip
        self._ids[node] = ids if several else (ids[0] if ids else -1)
        self.builder.node(target_name(node.target), node.name, arguments, ids, several, source_of(node))
        self.nodes.append(node)

    def _outputs(self, node: Node, outputs: Sequence[Output] | None) -> None:
        values = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
        for value, what in zip(values, outputs or [Output()] * len(values), strict=True):
            self.builder.output(self._flat(value), what.kind, what.target)

    def _group_name(self, name: str) -> str:
        return self._group_names.get(name, name)

    # ---- arguments ----
    def _flat(self, value: Any, name: str = "") -> list[tuple]:
        """Rows (name, kind, count, integer, number, text) in prefix order."""
        if isinstance(value, Node):
            if value in self._graphs:
                return [(name, ArgumentKind.GRAPH, 0, self._graphs[value], 0.0, "")]
            if value not in self._ids:  # the graph of a higher-order operator
                return [(name, ArgumentKind.STRING, 0, 0, 0.0, value.name)]
            identifier = self._ids[value]
            if isinstance(identifier, list):
                return [
                    (name, ArgumentKind.LIST, len(identifier), 0, 0.0, ""),
                    *(("", ArgumentKind.VALUE, 0, i, 0.0, "") for i in identifier),
                ]
            return [(name, ArgumentKind.VALUE, 0, identifier, 0.0, "")]
        if isinstance(value, (tuple, list)):
            rows = [(name, ArgumentKind.LIST, len(value), 0, 0.0, "")]
            for item in value:
                rows += self._flat(item)
            return rows
        if isinstance(value, complex):
            return [
                (name, ArgumentKind.COMPLEX, 2, 0, 0.0, ""),
                *self._flat(value.real),
                *self._flat(value.imag),
            ]
        return [(name, *_scalar(value))]


def on_host(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """The values of `tensor` where the compiler can read them. Engines keep these, and not the parameter: so a module can end."""
    if not isinstance(tensor, torch.Tensor):
        return tensor
    with compat.with_real_tensors():
        return tensor.detach().cpu()


def _scalar(value: Any) -> tuple[int, int, int, float, str]:
    if value is None:
        return ArgumentKind.NONE, 0, 0, 0.0, ""
    if isinstance(value, bool):
        return ArgumentKind.BOOL, 0, int(value), 0.0, ""
    if isinstance(value, int):
        return ArgumentKind.INTEGER, 0, value, 0.0, ""
    if isinstance(value, float):
        return ArgumentKind.FLOAT, 0, 0, value, ""
    if isinstance(value, str):
        return ArgumentKind.STRING, 0, 0, 0.0, value
    if isinstance(value, torch.dtype):
        if value in DTYPES:
            return ArgumentKind.DTYPE, 0, DTYPES[value], 0.0, ""
        return ArgumentKind.STRING, 0, 0, 0.0, str(value)
    if isinstance(value, torch.device):
        return ArgumentKind.DEVICE, 0, 0, 0.0, str(value)
    return (
        ArgumentKind.STRING,
        0,
        0,
        0.0,
        str(value),
    )  # memory formats, layouts, and anything that only torch understands


def _named_arguments(node: Node) -> Iterable[tuple[str, Any]]:
    schema = getattr(node.target, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    for position, value in enumerate(node.args):
        yield (names[position] if position < len(names) else ""), value
    yield from node.kwargs.items()


def target_name(target: Callable | str) -> str:
    """ "aten.linear.default", "_operator.add", "higher_order.cond"."""
    if isinstance(target, torch._ops.OpOverload):
        namespace, name = target._schema.name.split("::")
        return f"{namespace}.{name}.{target._overloadname}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.name()}"
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', str(target))}"


def is_known(operator: Callable) -> bool:
    """Whether Ingot imports calls of that overload without decomposition, in programs without in-place writes."""
    return _core.imports_operator(target_name(operator))


def may_share(operator: Any) -> bool:
    """Whether calls of that overload may return their operand although their schema does not say so."""
    return operator in _MAY_SHARE


def is_imported(operator: Callable) -> bool:
    """Whether Ingot imports calls of that overload without decomposition."""
    return not may_share(operator) and is_known(operator)


# They may return their operand, which their schemas do not declare: torch would lose writes into it.
_MAY_SHARE = (
    torch.ops.aten.dropout.default,
    torch.ops.aten.feature_dropout.default,
    torch.ops.aten.type_as.default,
)


def decompositions() -> dict[Callable, Callable]:
    """torch's decompositions for everything that Ingot does not import."""
    return _decompositions(compat.operator_count())


@functools.lru_cache(maxsize=1)
def _decompositions(operator_count: int) -> dict[Callable, Callable]:
    """`operator_count`: grows as libraries are imported, which bring operators of their own."""
    return composites.decompositions(is_imported)


# Some of their results exist only under a condition on data, which is checked if something reads these.
_WITH_CONDITIONS = ("aten.linalg_lstsq.default",)


def _results_read(node: Node) -> set[int]:
    users = [user for user in node.users if getattr(user.target, "__name__", "") == "getitem"]
    return {user.args[1] for user in users if user.users}


def attribute_of(module: torch.nn.Module, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _bound(value: Any) -> int:
    """A bound of a symbol's range as an int64; torch's has infinities of two kinds."""
    if not getattr(value, "is_Integer", isinstance(value, int)):
        return LARGEST if value > 0 else -LARGEST
    return max(min(int(value), LARGEST), -LARGEST)
