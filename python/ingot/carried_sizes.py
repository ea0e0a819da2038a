# SPDX-License-Identifier: Apache-2.0
"""Integers that an engine does not find among the sizes of its tensors: an empty tensor of that size carries each to it, or a
tensor that holds it, if it may be negative."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import compat
from ingot.capture import ANY_SIGN, DTYPES, Capture
from ingot.integer_bounds import not_negative
from ingot.kinds import InputRole, ValueKind
from ingot.linear_sizes import LinearSize
from ingot.partition import HOLDS_INTEGER, PartCall, asserts_number, is_number

_CARRIES = "ingot_carries"  # of a node that is a carrier: the symbol
_IS_SIZE = "ingot_is_size"  # of an integer argument that cannot be negative
_IS_READ = "ingot_is_read"  # of one that the program of all ranks reads


def guard_signs(module: GraphModule) -> None:
    """Of a graph of torch.compile: makes torch guard that the integers which engines need are not negative, as they are now."""
    for node in _unbound(module).values():
        value = node.meta["val"]
        is_known = value.node.expr in compat.sizes_seen(value.node.shape_env)
        node.meta[_IS_SIZE] = _is_in_range(value) or (is_known and bool(value >= 0))
    _find_signed(module)


def trust_guards(module: GraphModule, guards: Iterable[str], read: Collection[int] = ()) -> None:
    """Of a program of torch.export: the same where its guards say so, which calls are checked for. The range that torch notes
    for an integer is that of a size, whatever its sign is in calls. `read`: placeholders that traces of other ranks read."""
    for position in read:
        _placeholders(module)[position].meta[_IS_READ] = True
    names = not_negative(guards)
    for node in _unbound(module).values():
        node.meta[_IS_SIZE] = node.name in names
    _find_signed(module)


def read_integers(module: GraphModule) -> list[int]:
    """The positions of the placeholders that are integers which calls of the graph read: n of `n * rank` on all ranks but the first."""
    return [k for k, node in enumerate(_placeholders(module)) if _symbol_of(node) and _is_read(node)]


def _find_signed(module: GraphModule) -> None:
    """Makes each other integer one that torch finds in a tensor: what engines need of such they compute (part_numbers)."""
    for number in _unbound(module).values():
        if not number.meta[_IS_SIZE]:
            tensor = _tensor_of(module, number, _placeholders(module)[-1], module)
            tensor.meta[HOLDS_INTEGER] = True
            node = _item_after(module, tensor, number)
            number.replace_all_uses_with(node, lambda user, tensor=tensor: user is not tensor)


def reads_signed(module: GraphModule) -> bool:
    """Whether calls of a graph read integers that may be negative."""
    return any(node.meta.get(ANY_SIGN) for node in module.graph.nodes)


def carried(module: GraphModule) -> list[str]:
    """The symbols of integer arguments that calls of a graph read and that no tensor argument has as a size."""
    return [symbol for symbol, node in _unbound(module).items() if node.meta.get(_IS_SIZE, False)]


def _unbound(module: GraphModule) -> dict[str, Node]:
    bound = _bound(module)
    read = [node for node in _placeholders(module) if node.meta.get(_IS_READ) or _is_read(node)]
    found = {_symbol_of(node): node for node in read}
    return {symbol: node for symbol, node in found.items() if symbol and symbol not in bound}


def declare(capture: Capture, symbols: Iterable[str]) -> None:
    """Says that engines of a captured graph's parts get these symbols."""
    for symbol in symbols:
        identifier = capture.builder.value(
            f"{symbol}_carrier", ValueKind.TENSOR, DTYPES[torch.float32], [symbol, "0"], None
        )
        capture.builder.input(identifier, InputRole.USER, f"{symbol}_carrier", None, [])


def carry(whole: GraphModule, call: PartCall) -> None:
    """Gives a part the symbols that its nodes use and its tensors do not have, as far as the graph around it has their values."""
    missing = _used(call.graph) - _bound(call.graph)
    if not missing:
        return
    placeholders = _placeholders(call.graph)
    known = _known_before(whole, call.node) | _passed(call)
    names = {_symbol_of(node): node.name for node in _placeholders(whole)}  # that errors of the engine have
    for symbol in sorted(missing & known.keys()):
        carrier = _carrier(whole, symbol, known[symbol], call.graph)
        is_free = symbol in names and all(node.target != names[symbol] for node in placeholders)
        name = names[symbol] if is_free and not _is_size(known[symbol]) else carrier.name
        with (
            call.graph.graph.inserting_after(placeholders[-1])
            if placeholders
            else call.graph.graph.inserting_before()
        ):
            placeholders.append(call.graph.graph.placeholder(name))
        placeholders[-1].meta["val"] = carrier.meta["val"]
        if not _is_size(known[symbol]):
            _item_after(call.graph, placeholders[-1], known[symbol])
        call.node.args = (*call.node.args, carrier)
    call.graph.recompile()


def _item_after(module: GraphModule, tensor: Node, number: Node) -> Node:
    """The value of an integer, found in the tensor that holds it."""
    with module.graph.inserting_after(tensor):
        node = module.graph.call_function(torch.ops.aten._local_scalar_dense.default, (tensor,))
    node.meta["val"] = number.meta["val"]
    node.meta[ANY_SIGN] = number.op == "placeholder" or number.meta.get(ANY_SIGN, False)
    return node


def _placeholders(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _symbol_of(node: Node) -> str:
    """The symbol that a node is the value of; "" if it is none."""
    value = node.meta.get("val")
    return str(value.node.expr) if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol else ""


def _is_size(node: Node) -> bool:
    """Whether an integer cannot be negative."""
    if node.op == "placeholder":
        return bool(node.meta.get(_IS_SIZE, False))
    return not node.meta.get(ANY_SIGN) and _is_in_range(node.meta["val"])


def _is_in_range(value: torch.SymInt) -> bool:
    return bool(value.node.shape_env.bound_sympy(value.node.expr).lower >= 0)


def _is_read(node: Node) -> bool:
    """Whether a call that does not compute a number reads the number, or one that follows from it."""
    return any(
        _is_read(user) if is_number(user) else user.op == "call_function" and not asserts_number(user)
        for user in node.users
    )


def _values(node: Node) -> list:
    value = node.meta.get("val")
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _bound(module: GraphModule) -> set[str]:
    shapes = [
        value.shape
        for node in _placeholders(module)
        for value in _values(node)
        if isinstance(value, torch.Tensor)
    ]
    sizes = [size for shape in shapes for size in shape if isinstance(size, torch.SymInt)]
    return {linear.symbol for size in sizes if (linear := LinearSize.of(size.node.expr)) is not None}


def _used(module: GraphModule) -> set[str]:
    used: set[str] = set()
    for node in module.graph.nodes:
        for value in _values(node):
            sizes = value.shape if isinstance(value, torch.Tensor) else [value]
            expressions = [
                size.node.expr for size in sizes if isinstance(size, (torch.SymInt, torch.SymFloat))
            ]
            used |= {str(symbol) for expression in expressions for symbol in expression.free_symbols}
    return used


def _known_before(whole: GraphModule, call: Node) -> dict[str, Node]:
    known: dict[str, Node] = {}
    for node in whole.graph.nodes:
        if node is call:
            break
        if (name := _symbol_of(node)) and (_is_size(node) or node.op != "placeholder"):
            known.setdefault(name, node)
    return known


def _passed(call: PartCall) -> dict[str, Node]:
    """The integers that other parts compute and pass to this one."""
    passed: dict[str, Node] = {}
    for placeholder, argument in zip(_placeholders(call.graph), call.node.args, strict=True):
        if isinstance(argument, Node) and argument.op != "placeholder" and (name := _symbol_of(placeholder)):
            argument.meta["val"] = placeholder.meta["val"]
            argument.meta[ANY_SIGN] = placeholder.meta.get(ANY_SIGN, False)
            passed[name] = argument
    return passed


def _fake_mode(*modules: GraphModule) -> Any:
    values = [value for module in modules for node in module.graph.nodes for value in _values(node)]
    return next(mode for value in values if (mode := getattr(value, "fake_mode", None)) is not None)


def _carrier(whole: GraphModule, symbol: str, number: Node, reader: GraphModule) -> Node:
    """The call that makes the tensor, one per symbol."""
    for node in whole.graph.nodes:
        if node.meta.get(_CARRIES) == symbol:
            return node
    after = _placeholders(whole)[-1] if number.op == "placeholder" else number
    if _is_size(number):
        with whole.graph.inserting_after(after):
            node = whole.graph.call_function(
                torch.ops.aten.empty.memory_format, ([number, 0],), {"dtype": torch.float32}
            )
        value = number.meta["val"]
        with compat.without_guards(value.node.shape_env), _fake_mode(whole, reader):
            node.meta["val"] = torch.empty((value, 0), dtype=torch.float32)
    elif number.meta.get(ANY_SIGN) and number.target is torch.ops.aten._local_scalar_dense.default:
        node = number.all_input_nodes[0]
    else:
        node = _tensor_of(whole, number, after, reader)
    node.meta[_CARRIES] = symbol
    return node


def _tensor_of(module: GraphModule, number: Node, after: Node, reader: GraphModule) -> Node:
    """An i64 tensor without dims that holds the integer. `reader`: of a graph with tensors."""
    with module.graph.inserting_after(after):
        node = module.graph.call_function(
            torch.ops.aten.scalar_tensor.default, (number,), {"dtype": torch.int64}
        )
    with compat.without_guards(number.meta["val"].node.shape_env), _fake_mode(module, reader):
        node.meta["val"] = torch.empty((), dtype=torch.int64)
    return node
