# SPDX-License-Identifier: Apache-2.0
"""Which of torch's composite operators stay whole while it traces, and which are decomposed."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ingot.compat import NARROWING_DEVICES, find

# Composites that we do want decomposed: they become nothing or one simpler call.
_LOWERED = (
    "contiguous.default",
    "to.dtype",
    "to.device",
    "to.dtype_layout",
    "to.other",
    "reshape.default",
    "flatten.using_ints",
    "nonzero_numpy.default",  # torch's rule for fake tensors loses the one result for a tensor without dims
)

_OVERRIDE = "torch.export.exported_program._override_composite_implicit_decomp"

# torch's references of these write the parts of a new tensor, which AOT rejects.
_WRITING_REFERENCES = ("aten::complex", "aten::polar")


def decompositions(is_known: Callable[[Any], bool]) -> dict[Any, Callable]:
    """torch's own decompositions of the ATen overloads that Ingot does not import."""
    more = find("torch._decomp.decomposition_table")
    tables = [more if isinstance(more, Mapping) else {}, torch.export.default_decompositions()]
    # Not all Python references of composites can be traced (item): those come from the second table only.
    chosen = {
        operator: how
        for table in tables
        for operator, how in table.items()
        if _is_function(operator) and operator.name() not in _WRITING_REFERENCES
        if table is not more or not operator._can_decompose()
    }
    return {
        operator: how for operator, how in chosen.items() if not is_known(operator)
    } | _taken_apart_at_times()


def _taken_apart_at_times() -> dict[Any, Callable]:
    """The decomposition of those calls of an operator that need it; NotImplemented for others, which stay whole."""
    table = torch.export.default_decompositions()
    return {
        operator: _where(operator, table[operator], must)
        for operator, must in _AT_TIMES.items()
        if operator in table
    }


def must_decompose(node: torch.fx.Node) -> bool:
    """Whether a call of an operator that Ingot imports must be decomposed nevertheless."""
    must = _AT_TIMES.get(node.target)
    if must is None:
        return False
    examples = torch.fx.node.map_arg((node.args, node.kwargs), lambda given: given.meta["val"])
    names = [argument.name for argument in node.target._schema.arguments]
    return must(dict(zip(names, examples[0], strict=False)) | examples[1])


def _where(operator: Any, how: Callable, must: Callable[[dict[str, Any]], bool]) -> Callable:
    names = [argument.name for argument in operator._schema.arguments]

    def run(*arguments: Any, **named: Any) -> Any:
        values = dict(zip(names, arguments, strict=False)) | named
        return how(*arguments, **named) if must(values) else NotImplemented

    return run


def _writes_statistics(values: dict[str, Any]) -> bool:
    """Writes to an argument that the operator's schema does not declare."""
    return values["use_input_stats"] and values["running_mean"] is not None


def _has_one_term(values: dict[str, Any]) -> bool:
    """The result may be a view, which the operator's schema does not declare."""
    return len(values["tensors"]) == 1


def _is_of_floats(values: dict[str, Any]) -> bool:
    """For integers, torch's formula rounds intermediate values, unlike its kernel."""
    return next(iter(values.values())).is_floating_point()


_AT_TIMES = {
    torch.ops.aten.einsum.default: _has_one_term,
    torch.ops.aten.instance_norm.default: _writes_statistics,
    torch.ops.aten.upsample_bicubic2d.default: _is_of_floats,
    torch.ops.aten.upsample_bicubic2d.vec: _is_of_floats,
}


def _is_function(operator: Any) -> bool:
    """Whether its arguments alone determine its result, and it writes none of them."""
    return (
        isinstance(operator, torch._ops.OpOverload)
        and torch.Tag.nondeterministic_seeded not in operator.tags
        and not operator._schema.is_mutable
    )


@contextlib.contextmanager
def without_copying_references() -> Iterator[None]:
    """While active, these return their operand where torch's kernels do; torch's Python references copy it."""
    kernels_of = {
        torch.ops.aten.dropout.default: {_COMPOSITE: _dropout},
        torch.ops.aten.alpha_dropout.default: {_COMPOSITE: _alpha_dropout},
    }
    saved = {operator: operator.py_kernels.copy() for operator in kernels_of}
    try:
        for operator, kernels in kernels_of.items():
            _set_kernels(operator, kernels)
        yield
    finally:
        for operator, kernels in saved.items():
            _set_kernels(operator, kernels)


def _dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """torch's kernel, but for its draws: their functional form would draw in the order of the dims, not of the operand's memory."""
    if not train or p == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * torch.zeros((), dtype=x.dtype, device=x.device)
    return torch.ops.aten.native_dropout.default(x, p, train)[0]


def _drawn_like(x: torch.Tensor, p: float) -> torch.Tensor:
    """Truth values that are true with probability p, drawn in the order of the memory of x as bernoulli_ draws them."""
    return torch.ops.aten.native_dropout.default(torch.empty_like(x, dtype=torch.float32), 1 - p, True)[1]


def _bernoulli(x: torch.Tensor, p: float = 0.5, *, generator: torch.Generator | None = None) -> torch.Tensor:
    """What bernoulli_ writes to x. A dropout with the probability 0 might draw nothing."""
    return (
        torch.bernoulli(x, p, generator=generator)
        if p in (0, 1) or generator is not None
        else _drawn_like(x, p)
    )


_SELU_LIMIT = 1.7580993408473766


def _alpha_dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """As _dropout. What is dropped becomes the value that SELU tends to; mean and variance stay."""
    if not train or p == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * torch.zeros((), dtype=x.dtype, device=x.device)
    scale = 1 / math.sqrt((_SELU_LIMIT * _SELU_LIMIT * p + 1) * (1 - p))
    noise = _drawn_like(x, 1 - p).to(x.dtype)
    offset = (noise - 1) * (_SELU_LIMIT * scale) + _SELU_LIMIT * scale * p
    return x * (noise * scale) + offset


@contextlib.contextmanager
def writes_as_copies() -> Iterator[None]:
    """While active, these are copies of what a function computes.

    torch finds no functional variant of polygamma_, whose arguments are swapped; that of bernoulli_ draws in the order of the dims.
    """
    functions = {
        torch.ops.aten.polygamma_.default: lambda x, n: torch.polygamma(n, x),
        torch.ops.aten.bernoulli_.float: _bernoulli,
    }
    saved = {operator: operator.py_kernels.copy() for operator in functions}

    def written(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda x, *arguments, **named: x.copy_(function(x, *arguments, **named))

    try:
        for operator, function in functions.items():
            _set_kernels(operator, saved[operator] | {_COMPOSITE: written(function)})
        yield
    finally:
        for operator, kernels in saved.items():
            _set_kernels(operator, kernels)


@contextlib.contextmanager
def traced_least_squares() -> Iterator[None]:
    """While active, linalg.lstsq has sizes where torch refuses to trace it: residuals, as of matrices of full rank."""
    rules: Any = find("torch._subclasses.fake_impls.op_implementations_dict")
    operator = torch.ops.aten.linalg_lstsq.default
    if rules is None or operator in rules:
        yield
        return
    rules[operator] = _least_squares
    try:
        yield
    finally:
        rules.pop(operator, None)


def _least_squares(
    mode: Any,
    operator: Any,
    a: torch.Tensor,
    b: torch.Tensor,
    rcond: Any = None,
    *,
    driver: str | None = None,
) -> Any:
    if a.device.type != "cpu" and driver is None:
        return NotImplemented  # another driver is the default there
    is_vector = b.dim() == 1 or (b.dim() + 1 == a.dim() and b.shape == a.shape[:-1])
    columns = b.unsqueeze(-1) if is_vector else b
    torch._check(a.dim() == columns.dim(), lambda: f"linalg.lstsq: a has {a.dim()} dims, b has {b.dim()}")
    torch._check(
        a.shape[-2] == columns.shape[-2],
        lambda: f"linalg.lstsq: a has {a.shape[-2]} rows, b has {columns.shape[-2]}",
    )
    batch = torch.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    x = a.new_empty([*batch, a.shape[-1], columns.shape[-1]])
    has_residuals = driver in ("gels", "gelsd", "gelss") and a.shape[-2] > a.shape[-1]
    residuals = [*batch, columns.shape[-1]] if has_residuals else [0]
    values = [*a.shape[:-2], min(a.shape[-2:])] if driver in ("gelsd", "gelss") else [0]
    real = a.real.dtype if a.is_complex() else a.dtype
    return (
        x.squeeze(-1) if is_vector else x,
        a.new_empty(residuals, dtype=real),
        a.new_empty([0] if driver == "gels" else a.shape[:-2], dtype=torch.int64),
        a.new_empty(values, dtype=real),
    )


@contextlib.contextmanager
def keep_composites(is_known: Callable[[Any], bool]) -> Iterator[None]:
    """While active, AOT does not decompose the composites that Ingot imports (linear, layer_norm, attention, matmul, conv ...)."""
    kernels, rules = _overrides(is_known)
    all_rules = find("torch._subclasses.fake_impls.op_implementations_dict") or {}
    saved = {operator: operator.py_kernels.copy() for operator in kernels}
    new_rules = {operator: rule for operator, rule in rules.items() if operator not in all_rules}
    try:
        for operator, added in kernels.items():
            kept = added | saved[operator] | {_COMPOSITE: _unless_distributed(operator, added[_COMPOSITE])}
            if _consists_of_narrowed_calls(operator):
                kept = {key: _unless_narrowed(operator, kernel) for key, kernel in kept.items()}
            _set_kernels(operator, kept)
        all_rules.update(new_rules)
        yield
    finally:
        for operator, kernels_before in saved.items():
            _set_kernels(operator, kernels_before)
        for operator in new_rules:
            all_rules.pop(operator, None)


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@functools.cache  # blocks within each other set the same kernel
def _unless_distributed(operator: Any, keep: Callable) -> Callable:
    """DTensor knows how to shard what the composite consists of, and asks for it where it does not know the whole."""
    if not _has_composite_kernel(operator):
        return keep

    def run(*arguments: Any, **named: Any) -> Any:
        sharded = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
        if sharded and any(isinstance(value, sharded) for value in tree_leaves((arguments, named))):
            return operator._op_dk(_COMPOSITE, *arguments, **named)
        return keep(*arguments, **named)

    return run


def _has_composite_kernel(operator: Any) -> bool:
    """Others are decomposed by rules alone; to call their kernel of this key ends the process."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")


_SAME_UNDER_AUTOCAST = ("norm", "softmax", "rrelu", "aten::bilinear")


def _consists_of_narrowed_calls(operator: Any) -> bool:
    """Whether torch.autocast chooses dtypes for the calls that the composite consists of, and not for itself."""
    if any(name in operator.name() for name in _SAME_UNDER_AUTOCAST) or not _has_composite_kernel(operator):
        return False
    return not torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "AutocastCPU")


@functools.cache
def _unless_narrowed(operator: Any, keep: Any) -> Any:
    if not callable(keep):
        return keep  # a name of another key's kernel

    def run(*arguments: Any, **named: Any) -> Any:
        tensors = (value for value in tree_leaves((arguments, named)) if isinstance(value, torch.Tensor))
        devices = {tensor.device.type for tensor in tensors}.intersection(NARROWING_DEVICES)
        if any(map(torch.is_autocast_enabled, devices)):
            return operator._op_dk(_COMPOSITE, *arguments, **named)
        return keep(*arguments, **named)

    return run


@contextlib.contextmanager
def narrowed_as_in_eager() -> Iterator[None]:
    """While active, `run_decompositions` decomposes composites in autocast regions, where the calls that they consist of are narrowed."""
    override: Any = find(_OVERRIDE)
    if override is None:
        yield
        return

    @contextlib.contextmanager
    def narrowed(composites: Mapping[Any, Callable]) -> Iterator[None]:
        with override(composites):
            for operator in filter(_consists_of_narrowed_calls, composites):
                kernels = {
                    key: _unless_narrowed(operator, kernel) for key, kernel in operator.py_kernels.items()
                }
                _set_kernels(operator, kernels)
            yield

    module: Any = torch.export.exported_program
    try:
        module._override_composite_implicit_decomp = narrowed
        yield
    finally:
        module._override_composite_implicit_decomp = override


def _set_kernels(operator: Any, kernels: dict[Any, Any]) -> None:
    operator.py_kernels.clear()
    operator.py_kernels.update(kernels)
    operator._dispatch_cache.clear()


@functools.cache
def _overrides(is_known: Callable[[Any], bool]) -> tuple[dict[Any, dict[Any, Any]], dict[Any, Callable]]:
    """The kernels and fake-tensor rules of torch's override of each composite, cached: computing them takes 20 ms."""
    override: Any = find(_OVERRIDE)
    rules = find("torch._subclasses.fake_impls.op_implementations_dict")
    composites = _composites(is_known)
    if override is None or rules is None or not composites:
        return {}, {}
    before = {operator: operator.py_kernels.copy() for operator in composites}
    with override(composites):
        kernels = {
            operator: {
                key: kernel
                for key, kernel in operator.py_kernels.items()
                if kernels_before.get(key) is not kernel
            }
            for operator, kernels_before in before.items()
        }
        return kernels, {operator: rules[operator] for operator in composites if operator in rules}


@functools.cache
def _composites(is_known: Callable[[Any], bool]) -> dict[Any, Callable]:
    """The composites that stay whole, with the overrides that torch requires; searches all of torch's operators."""
    split = find("torch.export.exported_program._split_decomp_table_to_cia_and_python_decomp")
    if split is None:
        return {}
    all_composites = split({})[0]
    composites = {operator: how for operator, how in all_composites.items() if is_known(operator)}
    composites |= {
        operator: how for operator, how in _taken_apart_at_times().items() if operator in all_composites
    }
    for name in _LOWERED:
        packet, overload = name.split(".")
        composites.pop(getattr(getattr(torch.ops.aten, packet), overload), None)
    return composites
