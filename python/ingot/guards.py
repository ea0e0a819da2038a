# SPDX-License-Identifier: Apache-2.0
"""The conditions on sizes for which torch.export traced a program."""

from __future__ import annotations

import ast
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from ingot import _core, compat
from ingot.errors import UnsupportedError, UserError


def guard_texts(program: torch.export.ExportedProgram) -> list[str]:
    """The program's guards as a builder takes them with, if torch still knows them, the lines that ask for them."""
    texts = compat.guards_of(program)
    for guard, frame in compat.traced_guards(program):
        text = _condition_text(guard)
        if text is not None and frame is not None:
            texts.append(f"{text}  # {_origin(frame)} {frame.filename}:{frame.lineno} in {frame.name}")
    return texts


def _origin(frame: Any) -> str:
    if not compat.is_of_torch(frame.filename):
        return "user"
    if frame.name in compat.LAYOUT_FUNCTIONS:
        return "layout"
    # torch's call of a module stands for lines without a file: code in a string, an interactive session.
    return "user" if frame.name in ("_call_impl", "forward") else "torch"


_RELATIONS = {
    "Equality": "==", "Unequality": "!=", "StrictLessThan": "<", "LessThan": "<=", "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}  # fmt: skip


def _condition_text(guard: Any) -> str | None:
    """A sympy relation as Python over symbols; None if it has no such form."""
    sign = _RELATIONS.get(type(guard).__name__)
    if sign is None:
        return None
    try:
        return f"({python_text(guard.lhs)}) {sign} ({python_text(guard.rhs)})"
    except ValueError:
        return None


def python_text(expression: Any) -> str:
    """A sympy expression over integers as Python over symbols; ValueError if it has no such form."""
    import sympy

    kind = type(expression).__name__
    if isinstance(expression, (sympy.Symbol, sympy.Integer)):
        return str(expression)
    operands = [f"({python_text(operand)})" for operand in expression.args]
    signs = {
        "Add": " + ",
        "Mul": "*",
        "FloorDiv": " // ",
        "CleanDiv": " // ",
        "Mod": " % ",
        "PythonMod": " % ",
    }
    if kind in signs:
        return signs[kind].join(operands)
    if kind in ("Max", "Min"):
        return f"{kind.lower()}({', '.join(operands)})"
    if isinstance(expression, sympy.Pow) and expression.exp.is_Integer and int(expression.exp) > 0:
        return f"{operands[0]} ** {int(expression.exp)}"
    raise ValueError(kind)


@dataclass(frozen=True)
class _Condition:
    holds: Callable[[Mapping[str, Any]], bool]
    text: str
    source: str


class Guards:
    """The guards of a program that torch runs in part: checked once per new shapes and numbers, before anything runs."""

    def __init__(self, rows: Sequence[Mapping[str, str]]) -> None:
        self.names: list[str] = []  # of the positional arguments
        self.rows = [{key: row[key] for key in ("guard", "condition", "source")} for row in rows]
        self._conditions = [
            _Condition(compile_guard(row["guard"]), row["condition"] or row["guard"], row["source"])
            for row in rows
        ]
        self._reads_layouts = any(
            method in row["guard"] for row in rows for method in (".stride(", ".storage_offset(")
        )
        self._known: set[tuple] = set()

    @staticmethod
    def of(builder: _core.Builder) -> Guards | None:
        """None if the program has none."""
        rows = json.loads(builder.guards())
        return Guards(rows) if rows else None

    def begin(self, names: Sequence[str], examples: tuple[Sequence[Any], Mapping[str, Any]] | None) -> None:
        """`names`: of the positional arguments. UnsupportedError if the guards cannot be evaluated for the example."""
        self.names = list(names)
        if examples is None:
            return
        try:
            self.check(*examples)
        except (LookupError, TypeError, ValueError, UserError) as error:
            raise UnsupportedError(
                f"the program's guards cannot be checked: {error}", code="INGOT-N524"
            ) from None

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """UserError for the first guard that these arguments break."""
        known = tuple(self._key(leaf) for leaf in _pytree.tree_leaves((args, dict(kwargs))))
        if known in self._known:
            return
        inputs = self._by_name(args, kwargs)
        for condition in self._conditions:
            if not condition.holds(inputs):
                raise UserError(
                    f"the program was traced for {condition.text}, which is false here",
                    code="INGOT-U312",
                    source=condition.source,
                    advice="for other sizes, export the model with an example of such a size",
                )
        if len(self._known) > 1000:
            self._known.clear()
        self._known.add(known)

    def _key(self, leaf: Any) -> Any:
        """All that a guard may read of an argument."""
        if isinstance(leaf, torch.Tensor):
            layout = (leaf.stride(), leaf.storage_offset()) if self._reads_layouts else ()
            return (leaf.shape, *layout)
        return leaf if isinstance(leaf, (int, float)) else None

    def _by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by the names that guards use; torch calls those of `*rest` rest_0, rest_1 ..., but guards rest[0] ..."""
        inputs = dict(zip(self.names, args, strict=False)) | dict(kwargs)
        for position, name in enumerate(self.names):
            base = name.removesuffix("_0")
            if base != name and base not in inputs:
                inputs[base] = tuple(args[position:])
        return inputs

    def assume(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """For torch.export, which traces these arguments: states the guards again."""
        inputs = self._by_name(args, kwargs)
        for condition in self._conditions:
            torch._check(condition.holds(inputs))


_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}  # fmt: skip
_COMPARISONS = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS = {
    "math.trunc": torch.sym_int, "math.floor": math.floor, "math.ceil": math.ceil, "math.sqrt": torch._sym_sqrt,
    "torch.sym_float": torch.sym_float, "torch.sym_int": torch.sym_int, "torch._sym_sqrt": torch._sym_sqrt,
    "torch.sym_max": torch.sym_max, "torch.sym_min": torch.sym_min,  # from torch 2.14 on
    "max": torch.sym_max, "min": torch.sym_min, "float": torch.sym_float, "int": torch.sym_int, "round": round,
    "abs": abs,
}  # fmt: skip


def compile_guard(text: str) -> Callable[[Mapping[str, Any]], Any]:
    """A function from the arguments by name to the guard's value. Only evaluates arithmetic, whatever the text contains."""
    tree = ast.parse(text, mode="eval").body
    return lambda inputs: _evaluate(tree, inputs)


def names_in(text: str) -> list[str]:
    """The symbols of a condition over symbols."""
    words = [node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]
    return [word for word in words if word not in _FUNCTIONS]


def _evaluate(node: ast.AST, inputs: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in inputs:  # a symbol
        return inputs[node.id]
    if isinstance(node, ast.BoolOp):
        values = (_evaluate(value, inputs) for value in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp):
        value = _evaluate(node.operand, inputs)
        return (not value) if isinstance(node.op, ast.Not) else -value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_evaluate(node.left, inputs), _evaluate(node.right, inputs))
    if isinstance(node, ast.Compare):
        return _compare(node, inputs)
    if isinstance(node, ast.Call):
        return _call(node, inputs)
    if isinstance(node, ast.Subscript):
        key = _evaluate(node.slice, inputs)
        is_arguments = isinstance(node.value, ast.Name) and node.value.id == "L"
        return inputs[key] if is_arguments else _evaluate(node.value, inputs)[key]
    if isinstance(node, ast.Attribute):
        return _field(node, inputs)
    raise UserError(f"the guard contains {ast.dump(node)[:80]}, which is not supported", code="INGOT-U312")


def _field(node: ast.Attribute, inputs: Mapping[str, Any]) -> Any:
    """Of a named tuple, or an object of a class that is registered with pytree: those are arguments whose fields are arguments."""
    owner = _evaluate(node.value, inputs)
    is_tree = type(owner) in _pytree.SUPPORTED_NODES or _pytree.is_namedtuple_class(type(owner))
    if is_tree and not node.attr.startswith("_"):
        return getattr(owner, node.attr)
    raise UserError(f"the guard reads {ast.unparse(node)[:80]}, which is not supported", code="INGOT-U312")


def _compare(node: ast.Compare, inputs: Mapping[str, Any]) -> Any:
    values = [_evaluate(value, inputs) for value in (node.left, *node.comparators)]
    signs = [_COMPARISONS[type(sign)] for sign in node.ops]
    results = [sign(a, b) for sign, a, b in zip(signs, values, values[1:], strict=False)]
    return results[0] if len(results) == 1 else all(results)


def _call(node: ast.Call, inputs: Mapping[str, Any]) -> Any:
    name = ast.unparse(node.func)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*(_evaluate(value, inputs) for value in node.args))
    methods = {
        "size": lambda x: x.size(),
        "stride": lambda x: x.stride(),
        "storage_offset": lambda x: x.storage_offset(),
    }
    if isinstance(node.func, ast.Attribute) and node.func.attr in methods and not node.args:
        tensor = _evaluate(node.func.value, inputs)
        if isinstance(tensor, torch.Tensor):
            return methods[node.func.attr](tensor)
    raise UserError(f"the guard calls {name[:80]}, which is not supported", code="INGOT-U312")
