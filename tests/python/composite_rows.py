# SPDX-License-Identifier: Apache-2.0
"""Rows of src/importers/aten/composites/composites.def as functions of torch.

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
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

TABLE = Path(__file__).resolve().parents[2] / "src/importers/aten/composites/composites.def"
_HEAD = re.compile(r"(?:(whole|complex|local) )?([\w.]+)\(([\w, ]*)\) =(.*)")
_STEP = re.compile(r"  \w+ = ")
_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i64": torch.int64,
    "bool": torch.bool,
}
_SAMPLE_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)

_FUNCTIONS: dict[str, Any] = {
    **_DTYPES,
    "axis": lambda x, dim: range(x.dim())[dim],
    "dtype_of": lambda x: x.dtype,
    "index_of": lambda value, values: values.index(value),
    "is_floating_point": lambda x: x.dtype.is_floating_point,
    "largest": lambda x: torch.finfo(x.dtype).max,
    "len": lambda x: len(x) if isinstance(x, list | tuple) else 1,
    "math": math,
    "max": max,
    "min": min,
    "numel": lambda x: x.numel(),
    "product": math.prod,
    "range": lambda count: list(range(count)),
    "rank": lambda x: x.dim(),
    "result_type": lambda *values: _result_type(values),
    "shape": lambda x: list(x.shape),
    "size": lambda x, dim: x.shape[dim],
}  # fmt: skip


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
        name, _, overload = self.name.partition(".")
        return getattr(getattr(torch.ops.aten, name), overload or "default")


def rows() -> Iterator[Row]:
    text = TABLE.read_text()
    lines = text[text.index("(\n") + 2 : text.rindex(")composites")].splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    starts = [i for i, line in enumerate(lines) if not line.startswith(" ")] + [len(lines)]
    for start, end in itertools.pairwise(starts):
        head = _HEAD.fullmatch(lines[start])
        assert head, lines[start]
        kind, name, parameters, rest = head.groups()
        body = [f"  {rest.strip()}"] * bool(rest.strip()) + lines[start + 1 : end]
        first = next(i for i, line in enumerate(body) if not _STEP.match(line))
        steps = "\n".join(line[2:] for line in body[:first])
        result = "return (\n" + "\n".join(body[first:]) + "\n)"
        source = f"def row({parameters}):\n" + textwrap.indent(f"{steps}\n{result}", "  ")
        yield Row(kind or "", name, tuple(parameters.split(", ")), source)


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
    values = {name: given[name] for name in row.parameters}
    return function(
        **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    )


# Operators of the database whose samples fit overloads of other names.
_LIKE = {
    "__and__": "bitwise_and", "__lshift__": "bitwise_left_shift", "__or__": "bitwise_or", "__rshift__": "bitwise_right_shift",
    "__xor__": "bitwise_xor", "_is_all_true": "all", "_is_any_true": "any", "_safe_softmax": "softmax", "clamp_max": "clamp_max",
    "divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "moveaxis": "movedim",
    "multiply": "mul", "native_channel_shuffle": "channel_shuffle", "not_equal": "ne", "subtract": "sub", "true_divide": "div",
}  # fmt: skip


def _vectors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(shape, generator=generator) for shape in shapes]


def _by_hand(name: str) -> list[tuple[Any, ...]]:
    """Arguments of overloads for which the database has none."""
    x, y, matrix, image, volume = _vectors((3, 4), (3, 4), (2, 3), (1, 2, 4, 5), (1, 2, 4, 5, 3))
    whole = torch.tensor([[True, False], [True, True]])
    return {
        "_conj_copy": [(torch.complex(x, y),)],
        "_is_all_true": [(whole,), (whole[:, 0],)],
        "_is_any_true": [(whole,), (~whole[:, 0],)],
        "_reshape_alias": [(x, [4, 3], [3, 1])],
        "_safe_softmax": [
            (torch.where(whole, 0.5, -math.inf) * torch.tensor([[1.0], [1.0]]), 1),
            (x, 0, torch.float64),
        ],
        "_unsafe_view": [(x, [2, 6])],
        "_weight_int8pack_mm": [
            (
                torch.rand(32, 64).bfloat16(),
                torch.randint(-9, 9, (32, 64), dtype=torch.int8),
                torch.rand(32).bfloat16(),
            )
        ],
        "cdist": [(x, y, 2.0, None), (x, matrix.new_ones(5, 4), 1.0)],
        "clip": [(x, 0.2, 0.6), (x, None, 0.5)],
        "frobenius_norm.dim": [(x, [1], True), (x, [0, 1])],
        "huber_loss": [(x, y), (x, 3 * y, 0, 0.5)],
        "kl_div": [(x.log(), y), (x.log(), y.log(), 2, True), (x, y * 0, 0)],
        "lift_fresh_copy": [(x,)],
        "matrix_H": [(x,)],
        "moveaxis.int": [(image, 1, -1)],
        "norm.ScalarOpt_dim_dtype": [(x, None, [1], False, torch.float64)],
        "norm.ScalarOpt_dtype": [(x, 3, torch.float64)],
        "numpy_T": [(x,), (image,)],
        "polar": [(x, y)],
        "reflection_pad1d": [(x, [1, 2])],
        "reflection_pad2d": [(image, [1, 2, 3, 0])],
        "reflection_pad3d": [(volume, [1, 2, 3, 0, 1, 1])],
        "replication_pad1d": [(x, [1, 2])],
        "replication_pad2d": [(image, [1, 2, 3, 0])],
        "replication_pad3d": [(volume, [1, 2, 3, 0, 1, 1])],
        "type_as": [(x, whole), (whole, x)],
        "unsafe_split_with_sizes": [(x, [1, 3], 1)],
    }.get(name, [])


def _of_database(row: Row) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Arguments of the operators of this name, and of the one that a `_copy` or an alias repeats."""
    base = row.name.partition(".")[0]
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
            for dtype in set(_SAMPLE_DTYPES) & op.supported_dtypes("cpu"):
                if dtype.is_complex == (row.kind == "complex"):
                    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                        yield (sample.input, *sample.args), dict(sample.kwargs)


def samples(row: Row) -> Iterator[tuple[tuple, dict[str, Any]]]:
    schema = row.overload._schema.arguments
    for given, keywords in _of_database(row):
        is_number = [argument.type.kind() == "NumberType" for argument in schema]
        arguments = tuple(
            _number(value) if number else value for value, number in zip(given, is_number, strict=False)
        )
        tensors = [
            argument
            for argument, value in zip(schema, arguments, strict=False)
            if isinstance(value, torch.Tensor)
        ]
        if all("Tensor" in str(argument.type) for argument in tensors):
            yield arguments, keywords
    for arguments in _by_hand(row.name):
        names = [argument.name for argument in row.overload._schema.arguments if argument.kwarg_only]
        positional = len(row.overload._schema.arguments) - len(names)
        yield arguments[:positional], dict(zip(names, arguments[positional:], strict=False))


def _number(value: Any) -> Any:
    return value.flatten()[0].item() if isinstance(value, torch.Tensor) and value.numel() > 0 else value


def fitting_samples(row: Row) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Those of the overload, and not of another one or of torch.nn.functional."""
    for arguments, keywords in samples(row):
        with contextlib.suppress(RuntimeError, TypeError, IndexError, ValueError):
            row.overload(*arguments, **keywords)
            yield arguments, keywords


def compare(row: Row, function: Callable[..., Any]) -> int:
    """The number of samples that fit the overload; AssertionError if the row's result differs for one."""
    count = 0
    for arguments, keywords in fitting_samples(row):
        expected = pytree.tree_leaves(row.overload(*arguments, **keywords))
        actual = pytree.tree_leaves(evaluated(row, function, arguments, keywords))
        torch.testing.assert_close(actual, expected, equal_nan=True)
        count += 1
    return count


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
