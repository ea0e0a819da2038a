# SPDX-License-Identifier: Apache-2.0
"""Traces of torch's decompositions as rows in the language of composites.def, for tools/generate_composites.py."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.fx.experimental.proxy_tensor import make_fx

_SIZES = ((3, 5, 7), (4, 6, 8), (9, 11, 13))  # one for each of the numbers below
_DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)
_NUMBERS = (
    0.7310585,
    1.9142135,
    0.3217506,
)  # none follows from another by a formula that a decomposition has
_INTEGERS = (2, 3, 4)
_MOST_FLAGS = 5
_DTYPE_NAMES = {
    torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool",
    torch.float16: "f16", torch.bfloat16: "bf16",
}  # fmt: skip
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
_IDLE = {"clone", "detach", "alias", "lift_fresh_copy"}
_UNSEEN = {"device", "layout", "pin_memory", "memory_format", "non_blocking"}


class NotGenericError(Exception):
    """Traces that one row cannot describe."""


@dataclass
class Trace:
    """What a decomposition did for one call."""

    facts: dict[str, str]  # a condition of the language, and its value here: "True", "False"
    body: str


def row_of(name: str, overload: torch._ops.OpOverload) -> str:
    if "batch_norm" in name:
        raise NotGenericError("it updates running statistics")
    if any(str(result.type) != "Tensor" for result in overload._schema.returns):
        raise NotGenericError("not all of its results are tensors")
    arguments = [argument for argument in overload._schema.arguments if argument.name not in _UNSEEN]
    choices = [_choices(argument) for argument in arguments]
    flags = [choice for choice in choices if len(choice) > 1]
    if len(flags) > _MOST_FLAGS:
        raise NotGenericError("too many flags")
    traces = []
    for given in itertools.product(*choices):
        traces += _traces(overload, arguments, given)
    if not any(trace.body for trace in traces):
        raise NotGenericError("no call of it could be traced")
    parameters = ", ".join(argument.name for argument in arguments)
    return _Row(name, parameters).text(traces)


def _choices(argument: torch.Argument) -> list[str]:
    """Kinds of values that a decomposition may distinguish."""
    kind = str(argument.type)
    inner = kind.removeprefix("Optional[").removesuffix("]")
    if inner == "bool":
        return ["True", "False"]
    if argument.name == "reduction":
        return ["0", "1", "2"]
    known = {"Tensor": "tensor", "float": "float", "number": "float", "int": "integer"}
    if inner not in known:
        raise NotGenericError(f"{argument.name} is a {kind}")
    return [known[inner], "None"] if kind.startswith("Optional") else [known[inner]]


def _traces(overload: torch._ops.OpOverload, arguments: list, given: tuple[str, ...]) -> list[Trace]:
    """One for each dtype, if ranks and numbers make no difference."""
    facts = {}
    for argument, choice in zip(arguments, given, strict=True):
        if choice in ("True", "False"):
            facts[argument.name] = choice
        elif choice in ("0", "1", "2"):
            facts |= {f"{argument.name} == {k}": str(choice == str(k)) for k in range(3)}
        elif str(argument.type).startswith("Optional"):
            facts[f"{argument.name} is None"] = str(choice == "None")
    traces = []
    for dtype in _DTYPES:
        bodies = [_body(overload, arguments, given, dtype, rank) for rank in (1, 2, 3)]
        taken = [body for body in bodies if body is not None]
        if not taken:
            continue
        if len(set(taken)) > 1:
            raise NotGenericError(f"it depends on ranks: {taken[0]!r}, {taken[-1]!r}")
        floating = f"is_floating_point({arguments[0].name})"
        traces.append(Trace(facts | {floating: str(dtype.is_floating_point)}, taken[0]))
    return traces


def _body(
    overload: Any, arguments: list, given: tuple[str, ...], dtype: torch.dtype, rank: int
) -> str | None:
    """Steps and result; None if eager refuses the call."""
    texts = []
    for sizes, number, integer in zip(_SIZES, _NUMBERS, _INTEGERS, strict=True):
        shape = sizes[:rank]
        values = {
            argument.name: _value(choice, dtype, shape, number + 3 * place, integer + 10 * place)
            for place, (argument, choice) in enumerate(zip(arguments, given, strict=True))
        }
        if not _eager_takes(overload, arguments, values):
            return None
        texts.append(_Text(_graph(overload, arguments, values), values, dtype, shape))
    return _unified([text.words() for text in texts], [text.numbers for text in texts])


def _value(choice: str, dtype: torch.dtype, shape: tuple[int, ...], number: float, integer: int) -> Any:
    made: dict[str, Callable[[], Any]] = {
        "tensor": lambda: torch.ones(shape, dtype=dtype),
        "float": lambda: number,
        "integer": lambda: integer,
    }
    if choice in made:
        return made[choice]()
    return {"True": True, "False": False, "None": None}[choice] if not choice.isdigit() else int(choice)


def _call(function: Callable[..., Any], arguments: list, values: dict[str, Any]) -> Any:
    places = [values[argument.name] for argument in arguments if not argument.kwarg_only]
    names = {argument.name: values[argument.name] for argument in arguments if argument.kwarg_only}
    return function(*places, **names)


def _eager_takes(overload: Any, arguments: list, values: dict[str, Any]) -> bool:
    try:
        _call(overload, arguments, values)
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        return False
    return True


def _graph(overload: Any, arguments: list, values: dict[str, Any]) -> torch.fx.Graph:
    names = [name for name, value in values.items() if isinstance(value, torch.Tensor)]

    def decomposed(*tensors: torch.Tensor) -> Any:
        given = values | dict(zip(names, tensors, strict=True))
        return _call(decomposition_table[overload], arguments, given)

    try:
        graph = make_fx(decomposed)(*[values[name] for name in names]).graph
    except Exception as error:
        raise NotGenericError(f"its decomposition fails: {str(error).splitlines()[0][:80]}") from error
    graph.eliminate_dead_code()
    return graph


class _Text:
    """A graph as steps and a result. Numbers are left open, as "#0", until several traces are compared."""

    def __init__(
        self, graph: torch.fx.Graph, values: dict[str, Any], dtype: torch.dtype, shape: tuple[int, ...]
    ) -> None:
        self.numbers = {name: value for name, value in values.items() if type(value) in (int, float)}
        names = [name for name, value in values.items() if isinstance(value, torch.Tensor)]
        self.first = names[0] if names else ""
        self.shape, self.dtype = list(shape), dtype
        self.numbers |= {f"size({self.first}, {dim})": size for dim, size in enumerate(shape) if self.first}
        self.expressions: dict[torch.fx.Node, str] = {}
        self.open: list[float] = []
        self.lines: list[str] = []
        placeholders = iter(names)
        for node in graph.nodes:
            if node.op == "placeholder":
                self.expressions[node] = next(placeholders)
            elif node.op == "output":
                leaves = node.args[0] if isinstance(node.args[0], tuple | list) else [node.args[0]]
                self.lines.append(", ".join(self.result(leaf) for leaf in leaves))
            else:
                self.add(node)

    def result(self, leaf: Any) -> str:
        text = self.argument(leaf)
        if re.fullmatch(r"\w+", text):
            return f"alias({text})"
        return _without_parentheses(text)

    def words(self) -> tuple[str, list[float]]:
        return "\n".join(self.lines), self.open

    def add(self, node: torch.fx.Node) -> None:
        text = self.call(node)
        is_step = len(node.users) > 1 and ("(" in text or " " in text)
        if is_step:
            step = f"step_{len(self.lines) + 1}"
            self.lines.append(f"{step} = {_without_parentheses(text)}")
            text = step
        self.expressions[node] = text

    def call(self, node: torch.fx.Node) -> str:
        if not isinstance(node.target, torch._ops.OpOverload):
            if node.target.__name__ != "getitem":
                raise NotGenericError(f"it computes {node.target.__name__} of sizes")
            return f"{self.argument(node.args[0])}[{node.args[1]}]"
        name, kind = node.target._opname, node.target._overloadname
        keywords = {key: value for key, value in node.kwargs.items() if key not in _UNSEEN}
        if node.target.namespace != "aten":
            raise NotGenericError(f"it calls {node.target}")
        if name in _IDLE and not keywords:
            return self.argument(node.args[0])
        if name == "_to_copy":
            return self.converted(node.args[0], keywords["dtype"])
        values = [self.argument(value) for value in node.args]
        if name in _OPERATORS and len(values) == 2 and not keywords:
            return f"({values[0]} {_OPERATORS[name]} {values[1]})"
        values += [f"{key}={self.argument(value)}" for key, value in keywords.items()]
        return f"{name if kind == 'default' else f'{name}.{kind}'}({', '.join(values)})"

    def converted(self, value: Any, dtype: torch.dtype) -> str:
        if dtype == torch.float32 and not self.dtype.is_floating_point:
            return f"floating({self.argument(value)})"
        return f"to.dtype({self.argument(value)}, {self.argument(dtype)})"

    def argument(self, value: Any) -> str:
        if isinstance(value, torch.fx.Node):
            return self.expressions[value]
        if isinstance(value, torch.dtype):
            is_own = value == self.dtype and self.first
            return f"dtype_of({self.first})" if is_own else _DTYPE_NAMES.get(value, str(value))
        if isinstance(value, list | tuple):
            is_shape = len(value) > 0 and list(value) == self.shape
            return (
                f"shape({self.first})"
                if is_shape
                else f"[{', '.join(self.argument(item) for item in value)}]"
            )
        if isinstance(value, bool | None):
            return str(value)
        if isinstance(value, int | float):
            self.open.append(value)
            return f"#{len(self.open) - 1}"
        raise NotGenericError(f"a {type(value).__name__} is an argument of a call")


def _without_parentheses(text: str) -> str:
    """Without those around the whole."""
    depth = list(itertools.accumulate({"(": 1, ")": -1}.get(letter, 0) for letter in text))
    return text[1:-1] if text.startswith("(") and 0 not in depth[:-1] else text


def _unified(traces: list[tuple[str, list[float]]], numbers: list[dict[str, float]]) -> str:
    """The text of all traces, with each number as itself or in terms of the arguments."""
    texts = {text for text, _ in traces}
    if len(texts) > 1:
        raise NotGenericError("it depends on a number")
    text = texts.pop()
    for place in reversed(range(len(traces[0][1]))):
        literal = _formula([found[place] for _, found in traces], numbers)
        text = re.sub(rf"#{place}\b", literal, text)
    return text


def _formula(values: list[float], numbers: list[dict[str, float]]) -> str:
    if len({(type(value), value) for value in values}) == 1:
        return (
            "math.inf"
            if values[0] == float("inf")
            else "-math.inf"
            if values[0] == -float("inf")
            else repr(values[0])
        )
    forms: dict[str, Callable[[float], float]] = {
        "{}": lambda p: p, "-{}": lambda p: -p, "0.5 * {}": lambda p: 0.5 * p, "1 / {}": lambda p: 1 / p,
        "1 - {}": lambda p: 1 - p, "{} - 1": lambda p: p - 1, "{} + 1": lambda p: p + 1,
    }  # fmt: skip
    for name in numbers[0]:
        for form, function in forms.items():
            if all(
                given[name] and function(given[name]) == value
                for given, value in zip(numbers, values, strict=True)
            ):
                text = form.format(name)
                return f"({text})" if " " in text else text
    raise NotGenericError(f"numbers that follow from arguments by an unknown formula: {values}")


class _Row:
    """A row from traces: one body, or a choice between local rows."""

    def __init__(self, name: str, parameters: str) -> None:
        self.name, self.parameters = name, parameters
        self.locals: dict[str, str] = {}

    def text(self, traces: list[Trace]) -> str:
        _merge_promotions(traces)
        facts = list(dict.fromkeys(fact for trace in traces for fact in trace.facts))
        if len({trace.body for trace in traces}) == 1:
            return self.row(self.name, traces[0].body)
        result = self.choice(traces, facts)
        parts = [self.row(f"local {name}", body) for body, name in self.locals.items()]
        return "\n".join([*parts, self.row(self.name, result)])

    def row(self, head: str, body: str) -> str:
        start = f"{head}({self.parameters}) ="
        return (
            f"{start} {body}"
            if "\n" not in body
            else start + "".join(f"\n  {line}" for line in body.splitlines())
        )

    def choice(self, traces: list[Trace], facts: list[str]) -> str:
        bodies = {trace.body for trace in traces}
        if len(bodies) == 1:
            return self.part(bodies.pop())
        for place, fact in enumerate(facts):
            yes = [trace for trace in traces if trace.facts[fact] == "True"]
            no = [trace for trace in traces if trace.facts[fact] == "False"]
            if yes and no:
                rest = facts[:place] + facts[place + 1 :]
                first, second = self.choice(yes, rest), self.choice(no, rest)
                if first == second:
                    return first
                return f"{f'({first})' if ' if ' in first else first} if {fact} else {second}"
        raise NotGenericError("it depends on dtypes")

    def part(self, body: str) -> str:
        if "\n" not in body:
            return body
        name = self.locals.setdefault(body, f"{self.name.replace('.', '_')}_{len(self.locals) + 1}")
        return f"{name}({self.parameters})"


def _merge_promotions(traces: list[Trace]) -> None:
    """Integers that become f32 first: floating(x) is x where it is floating."""
    bodies = {
        re.sub(r"floating\((\w+)\)", r"\1", trace.body): trace.body
        for trace in traces
        if "floating(" in trace.body
    }
    for trace in traces:
        trace.body = bodies.get(trace.body, trace.body)
