# SPDX-License-Identifier: Apache-2.0
"""Rows of composites.def, kept.def and generated.def in src/importers/aten/composites as functions of torch.

    python tests/python/composite_rows.py [NAME ...]

compares each row, or those of the given overloads, with eager on the samples of torch's operator database: to be run when a
row changes, and for each release of torch. The table's language is a part of Python, so that a row is compiled as it is.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from composite_samples import by_hand
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

TABLES = Path(__file__).resolve().parents[2] / "src/importers/aten/composites"
_HEAD = re.compile(r"(?:(whole|both|complex|kept|local) )?([\w.]+)\(([\w, ]*)\) =(.*)")
_STEP = re.compile(r"  \w+ = ")
_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "u8": torch.uint8,
    "i64": torch.int64,
    "bool": torch.bool,
}
_SAMPLE_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)

_FUNCTIONS: dict[str, Any] = {
    **_DTYPES,
    "axis": lambda x, dim: range(x.dim())[dim],
    "broadcast": lambda shapes: list(torch.broadcast_shapes(*shapes)),
    "default_dtype": torch.get_default_dtype,
    "dtype_of": lambda x: x.dtype,
    "imag_of": lambda x: x.imag,
    "index_of": lambda value, values: values.index(value),
    "is_floating_point": lambda x: x.dtype.is_floating_point,
    "is_complex_number": lambda x: isinstance(x, complex),
    "known": lambda x: None if isinstance(x, torch.Tensor) else x,
    "largest": lambda x: torch.finfo(x.dtype).max,
    "letters": list,
    "len": lambda x: len(x) if isinstance(x, list | tuple) else 1,
    "math": math,
    "max": max,
    "min": min,
    "numel": lambda x: x.numel(),
    "product": math.prod,
    "range": lambda count: list(range(count)),
    "rank": lambda x: x.dim(),
    "real_of": lambda x: x.real,
    "refuse": lambda text: _refuse(text),
    "result_type": lambda *values: _result_type(values),
    "shape": lambda x: list(x.shape),
    "size": lambda x, dim: x.shape[dim],
    "total": sum,
}  # fmt: skip


class RefusedError(Exception):
    """What a row does not support."""


def _refuse(text: str) -> None:
    raise RefusedError(text)


def _result_type(values: tuple[Any, ...]) -> torch.dtype:
    dtype = torch.result_type(values[0], values[0])
    for value in values[1:]:
        dtype = torch.promote_types(dtype, torch.result_type(values[0], value))
    return dtype


@dataclass(frozen=True)
class Row:
    kind: str  # "", "whole", "complex" or "local"
    name: str  # "frac", "sum.dim_IntList"
    parameters: tuple[str, ...]
    source: str  # of a Python function

    @property
    def overload(self) -> torch._ops.OpOverload:
        if self.name.startswith("prims."):
            return getattr(torch.ops.prims, self.base).default
        name, _, overload = self.name.partition(".")
        return getattr(getattr(torch.ops.aten, name), overload or "default")

    @property
    def base(self) -> str:
        return self.name.removeprefix("prims.").partition(".")[0]


def rows() -> Iterator[Row]:
    """Of the tables in calls of torch's operators; those of core/*.def are nodes of ours."""
    for name in ("composites.def", "kept.def", "generated.def"):
        yield from rows_of((TABLES / name).read_text())


def rows_of(text: str) -> Iterator[Row]:
    lines = text[text.index("(\n") + 2 : text.rindex(")composites")].splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    starts = [i for i, line in enumerate(lines) if not line.startswith(" ")] + [len(lines)]
    for start, end in itertools.pairwise(starts):
        head = _HEAD.fullmatch(lines[start])
        assert head, lines[start]
        kind, name, parameters, rest = head.groups()
        body = [f"  {rest.strip()}"] * bool(rest.strip()) + lines[start + 1 : end]
        first = next(
            i for i, line in enumerate(body) if not _STEP.match(line) and not line.startswith("    ")
        )
        steps = "\n".join(line[2:] for line in body[:first])
        result = "return (\n" + "\n".join(body[first:]) + "\n)"
        source = f"def row({parameters}):\n" + textwrap.indent(f"{steps}\n{result}", "  ")
        yield Row("complex" if kind == "kept" else kind or "", name, tuple(parameters.split(", ")), source)


def functions() -> dict[Row, Callable[..., Any]]:
    names: dict[str, Any] = dict(_FUNCTIONS)
    found = {}
    for row in rows():
        tree = ast.parse(row.source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id not in names and hasattr(torch.ops.aten, node.id):
                names[node.id] = getattr(torch.ops.aten, node.id)
        defined: dict[str, Any] = {}
        exec(compile(tree, row.name, "exec"), names, defined)
        found[row] = defined["row"]
        if row.kind == "local":
            names[row.name] = defined["row"]
    return found


def evaluated(row: Row, function: Callable[..., Any], arguments: tuple, keywords: dict[str, Any]) -> Any:
    """The row's result for a call of its overload; arguments that are left out have the schema's defaults."""
    schema = row.overload._schema.arguments
    given = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    given |= {argument.name: value for argument, value in zip(schema, arguments, strict=False)} | keywords
    lengths = {argument.name: argument.N for argument in schema}
    return function(**{name: _as_list(given[name], lengths[name]) for name in row.parameters})


def _as_list(value: Any, length: int | None) -> Any:
    """Tuples are lists, as is one number where the schema has a list of a given length."""
    if length and isinstance(value, int):
        return [value] * length
    return list(value) if isinstance(value, tuple) else value


# Operators of the database whose samples fit overloads of other names.
_LIKE = {
    "__and__": "bitwise_and", "__lshift__": "bitwise_left_shift", "__or__": "bitwise_or", "__rshift__": "bitwise_right_shift",
    "__xor__": "bitwise_xor", "_is_all_true": "all", "_is_any_true": "any", "_safe_softmax": "softmax", "clamp_max": "clamp_max",
    "divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "moveaxis": "movedim",
    "multiply": "mul", "native_channel_shuffle": "channel_shuffle", "not_equal": "ne", "subtract": "sub", "true_divide": "div",
}  # fmt: skip


def _of_database(row: Row) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Arguments of the operators of this name, and of the one that a `_copy` or an alias repeats."""
    base = row.base
    names = {
        base,
        base.removesuffix("_copy"),
        base.removeprefix("_"),
        base.removeprefix("special_"),
        _LIKE.get(base, base),
    }
    for op in op_db:
        aliases = {alias.name.rpartition(".")[2] for alias in op.aliases or ()}
        if names & {op.name, op.aten_name, op.name.rpartition(".")[2], *aliases}:
            for dtype in _SAMPLE_DTYPES:
                if dtype in op.supported_dtypes("cpu") and dtype.is_complex == (row.kind == "complex"):
                    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                        yield (sample.input, *sample.args), dict(sample.kwargs)


def samples(row: Row) -> Iterator[tuple[tuple, dict[str, Any]]]:
    schema = row.overload._schema.arguments
    for given, keywords in _of_database(row):
        numbers = {argument.name for argument in schema if _is_number(argument)}
        arguments = tuple(
            _number(value) if argument.name in numbers else value
            for value, argument in zip(given, schema, strict=False)
        )
        keywords = {name: _number(value) if name in numbers else value for name, value in keywords.items()}
        tensors = [
            argument
            for argument, value in zip(schema, arguments, strict=False)
            if isinstance(value, torch.Tensor)
        ]
        if all("Tensor" in str(argument.type) for argument in tensors):
            yield arguments, keywords
    for arguments in by_hand(row.name):
        names = [argument.name for argument in row.overload._schema.arguments if argument.kwarg_only]
        positional = len(row.overload._schema.arguments) - len(names)
        yield arguments[:positional], dict(zip(names, arguments[positional:], strict=False))


def _is_number(argument: torch._C.Argument) -> bool:
    return str(argument.type).removeprefix("Optional[").removesuffix("]") in ("number", "float")


def _number(value: Any) -> Any:
    return value.flatten()[0].item() if isinstance(value, torch.Tensor) and value.numel() > 0 else value


def fitting_samples(
    row: Row, function: Callable[..., Any]
) -> Iterator[tuple[tuple, dict[str, Any], Any, Any]]:
    """Arguments, eager's result and the row's: of samples that the overload takes and the row does not refuse."""
    for arguments, keywords in samples(row):
        try:
            expected = row.overload(*arguments, **keywords)
        except (RuntimeError, TypeError, IndexError, ValueError, AssertionError):
            continue  # of another overload, or of torch.nn.functional
        if row.name.startswith("prims.") and _promotes(arguments, expected):
            continue  # torch's references convert integers before; prims record the operands' dtype
        with contextlib.suppress(RefusedError):
            yield arguments, keywords, expected, evaluated(row, function, arguments, keywords)


def _with_a_double(row: Row) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """A call of several f32 tensors, each of which is f64 in turn."""
    for arguments, keywords in itertools.islice(samples(row), 12):
        leaves, tree = pytree.tree_flatten((arguments, keywords))
        places = [i for i, leaf in enumerate(leaves) if getattr(leaf, "dtype", None) == torch.float32]
        if len(places) < 2 or not _runs(row.overload, arguments, keywords):
            continue
        for place in places:
            changed = [leaf.double() if i == place else leaf for i, leaf in enumerate(leaves)]
            yield pytree.tree_unflatten(changed, tree)
        return


def refused_by_eager(row: Row, function: Callable[..., Any]) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Calls of mixed dtypes that eager refuses, although the row would compute something."""
    for call in _with_a_double(row):
        if not _runs(row.overload, *call) and _runs(evaluated, (row, function, *call), {}):
            yield call


def compare_mixed(row: Row, function: Callable[..., Any]) -> None:
    """AssertionError if the row's result has another dtype than eager's for a call of mixed dtypes."""
    for arguments, keywords in _with_a_double(row):
        if _runs(row.overload, arguments, keywords) and _runs(
            evaluated, (row, function, arguments, keywords), {}
        ):
            expected = _tensors(row.overload(*arguments, **keywords))
            actual = _tensors(evaluated(row, function, arguments, keywords))
            assert [x.dtype for x in actual] == [x.dtype for x in expected]


def _runs(function: Callable[..., Any], arguments: tuple, keywords: dict[str, Any]) -> bool:
    try:
        function(*arguments, **keywords)
    except (
        RuntimeError,
        TypeError,
        IndexError,
        ValueError,
        AssertionError,
        NotImplementedError,
        RefusedError,
    ):
        return False
    return True


def _promotes(arguments: tuple, result: Any) -> bool:
    dtypes = {value.dtype for value in pytree.tree_leaves(arguments) if isinstance(value, torch.Tensor)}
    return bool(dtypes) and isinstance(result, torch.Tensor) and result.dtype not in {*dtypes, torch.bool}


def _tensors(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(result) if leaf is not None]


def compare(row: Row, function: Callable[..., Any]) -> int:
    """The number of samples; AssertionError if the row's result differs for one."""
    count = 0
    for arguments, keywords, expected, actual in fitting_samples(row, function):
        if not _errs_no_more(row, (arguments, keywords), expected, actual):
            torch.testing.assert_close(_tensors(actual), _tensors(expected), equal_nan=True)
        count += 1
    return count


def _errs_no_more(row: Row, call: tuple[tuple, dict[str, Any]], eager: Any, actual: Any) -> bool:
    """Whether the row is a complex power as near to eager's result in c128 as eager in c64, which errs by more than a rounding."""
    is_power = row.kind == "complex" and row.name.startswith("pow.")
    if (
        not is_power
        or eager.dtype != torch.complex64
        or actual.dtype != eager.dtype
        or not eager.numel()
        or not torch.isfinite(eager).all()
    ):
        return False
    arguments, keywords = pytree.tree_map(
        lambda leaf: leaf.to(torch.complex128) if getattr(leaf, "dtype", None) == torch.complex64 else leaf,
        call,
    )
    exact = row.overload(*arguments, **keywords)
    return bool(((actual - exact).abs() <= 1.5 * (eager - exact).abs().max()).all())


def main() -> int:
    wanted, wrong = set(sys.argv[1:]), 0
    for row, function in functions().items():
        if row.kind == "local" or (wanted and row.name not in wanted):
            continue
        try:
            print(f"{row.name}: {compare(row, function)} samples")
        except Exception as error:
            wrong += 1
            print(f"{row.name}: {type(error).__name__}: {error}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
