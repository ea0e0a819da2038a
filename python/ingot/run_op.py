# SPDX-License-Identifier: Apache-2.0
"""The operators of engines inside torch programs, also in saved ones.

ingot::run(Tensor[] inputs, Tensor engine, str meta) -> Tensor[]: `engine` holds the bytes of an engine file (uint8), `meta` is JSON
with the dims of inputs and outputs, so that shapes are known without opening the engine, and the ranges of sizes that a run finds.

ingot::run_program(Tensor[] inputs, Tensor program) -> Tensor[]: `program` holds the bytes of a .pt2 of `ingot.save`, for TorchScript of a
program that torch runs in part. Inputs and results are the tensors among the program's arguments and results, in order.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import operator
import re
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from ingot import _core, compat, ranks
from ingot.capture import DTYPES, LARGEST, TORCH_DTYPES
from ingot.errors import UserError
from ingot.linear_sizes import LinearSize

# The output of engines without results: torch cannot read files with nodes that have none.
_NOTHING = [DTYPES[torch.float32], ["0"]]

_library = torch.library.Library("ingot", "DEF")
_library.define("run(Tensor[] inputs, Tensor engine, str meta) -> Tensor[]")
_library.define("run_program(Tensor[] inputs, Tensor program) -> Tensor[]")

# Engines and programs by the memory that they were opened from; an entry is removed with its tensor.
_opened: dict[int, tuple[Any, Any]] = {}


def meta_of(engine: _core.Engine) -> str:
    inputs = [list(dims) for _, _, dims, _ in engine.inputs()]
    outputs = [[dtype, list(dims)] for _, dtype, dims, _ in engine.outputs()] or [_NOTHING]
    meta: dict[str, Any] = {"inputs": inputs, "outputs": outputs}
    if found := _found_sizes(engine):
        meta["found"] = found
    if engine.group_names():
        symbols = json.loads(engine.inspect())["main"]["symbols"]
        meta["ranks"] = {name: known["by_rank"] for name, known in symbols.items() if "by_rank" in known}
    return json.dumps(meta)


def _found_sizes(engine: _core.Engine) -> dict[str, tuple[int, int]]:
    """The dims of outputs that only a run knows, with their ranges: symbols, and expressions of symbols that are not such a dim."""
    bound = set().union(*(_symbols_of(dim) for _, _, dims, _ in engine.inputs() for dim in dims))
    ranges = {
        dim: span for _, _, dims, spans in engine.outputs() for dim, span in zip(dims, spans, strict=True)
    }
    symbols = {dim for dim in ranges if dim.isidentifier()}
    return {dim: span for dim, span in ranges.items() if _symbols_of(dim) - bound - (symbols - {dim})}


def _symbols_of(dim: str) -> set[str]:
    parts = ast.walk(ast.parse(dim, mode="eval"))
    return {part.id for part in parts if isinstance(part, ast.Name)} - set(_FUNCTIONS)


def _opened_from(blob: torch.Tensor, load: Callable[[torch.Tensor], Any]) -> Any:
    key = blob.data_ptr()
    if key not in _opened:
        held = load(
            blob.detach()
        )  # an engine in place keeps its tensor, which must not be the one that is watched
        forget = functools.partial(_opened.pop, key)  # module globals may be gone at interpreter shutdown
        _opened[key] = (weakref.ref(blob, lambda _: forget(None)), held)
    return _opened[key][1]


@torch.library.impl(_library, "run", "CPU")
def _run(inputs: list[torch.Tensor], engine: torch.Tensor, meta: str) -> list[torch.Tensor]:
    return _opened_from(engine, _core.Engine.load_memory).run(inputs) or [torch.empty(0)]


@torch.library.impl(_library, "run_program", "CPU")
def _run_program(inputs: list[torch.Tensor], program: torch.Tensor) -> list[torch.Tensor]:
    module = _opened_from(program, _load_program)
    given = iter(inputs)
    args, kwargs = _pytree.tree_map_only(torch.Tensor, lambda _: next(given), module.program.example_inputs)
    return [leaf for leaf in _pytree.tree_leaves(module(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]


def _load_program(content: torch.Tensor) -> Any:
    from ingot.saving import load_program  # imports this file

    with compat.without_own_deprecations():
        return load_program(io.BytesIO(content.numpy().tobytes()))


@torch.library.register_fake("ingot::run", lib=_library)
def _run_fake(inputs: list[torch.Tensor], engine: torch.Tensor, meta: str) -> list[torch.Tensor]:
    known = json.loads(meta)
    sizes: dict[str, Any] = {
        name: ranks.size_of_rank(table["groups"], table["groups"].values(), table["sizes"])
        for name, table in known.get("ranks", {}).items()
    }
    given = [
        (size, linear)
        for tensor, dims in zip(inputs, known["inputs"], strict=True)
        for size, dim in zip(tensor.shape, dims, strict=True)
        if (linear := LinearSize.parse(dim)) is not None
    ]
    for size, linear in sorted(given, key=lambda pair: not pair[1].is_alone):
        sizes.setdefault(linear.symbol, linear.symbol_of(size))
    found = known.get("found", {})
    for dim, (low, high) in found.items():
        if low >= 0:
            sizes[dim] = torch.library.get_ctx().new_dynamic_size(
                min=low, max=None if high == LARGEST else high
            )
    of_any_sign = [dim for dim, (low, _) in found.items() if low < 0]
    for dim in dict.fromkeys(dim for _, dims in known["outputs"] for dim in dims):
        # An expression is of any sign as far as its range says, such as `s0 - min(s0, 1)`.
        if any(dim == each or re.search(rf"\b{re.escape(each)}\b", dim) for each in of_any_sign):
            sizes[dim] = torch.library.get_ctx().new_dynamic_size()  # torch makes no number of any sign here
    outputs = []
    for dtype, dims in known["outputs"]:
        shape = [sizes[dim] if dim in sizes else evaluate_dim(dim, sizes) for dim in dims]
        outputs.append(inputs[0].new_empty(shape, dtype=TORCH_DTYPES[dtype]) if inputs else
                       torch.empty(shape, dtype=TORCH_DTYPES[dtype]))  # fmt: skip
    return outputs


def evaluate_dim(text: str, sizes: dict[str, Any]) -> Any:
    """The value of a dim expression; sizes may be SymInts."""
    return _evaluate(ast.parse(text, mode="eval").body, sizes)


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": torch.sym_max, "min": torch.sym_min}


def _evaluate(part: ast.expr, sizes: dict[str, Any]) -> Any:
    match part:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if name in sizes:
            return sizes[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, sizes)
        case ast.BinOp(op=kind) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_evaluate(part.left, sizes), _evaluate(part.right, sizes))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_evaluate(left, sizes), _evaluate(right, sizes))
    raise UserError(f"the engine's sizes contain {ast.unparse(part)}", code="INGOT-U105")
