# SPDX-License-Identifier: Apache-2.0
"""Torch's operator database (OpInfo), one sample at a time: run as a one-op program by Ingot and by eager, and compared."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import sys
import traceback
import types
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ingot
import torch
from accuracy import assert_accurate
from exact_functions import EXACT, exact_value
from ingot.torch_backend import backend
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

with contextlib.suppress(ImportError):
    import expecttest  # noqa: F401
if (
    "expecttest" not in sys.modules
):  # torch's test classes derive from its TestCase; the database does not need it
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

SLICE_DTYPES = (torch.float32, torch.int64, torch.bool)
LONG_DTYPES = (*SLICE_DTYPES, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8)
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in LONG_DTYPES}

_SLICE_SAMPLES = 3  # an op and dtype
_SLICE_FIRST = 24  # the slice is spread over this many samples

_PACKAGE = str(Path(ingot.__file__).parent)
_WHOLE = {"require_full_compilation": True, "random_seed": 0}
_DEFECTS = ("INGOT-N523",)  # errors that only our bugs cause

# Whose results are whatever the memory held.
_UNINITIALIZED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}

# Operators whose last result is indices of elements that may be equal: the position of `dim` among the arguments.
# Torch does not say which index `mode` gives, and its own kernel, an unstable sort, gives the last one up to some length only.
_PLACES = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "mode": 0}


@dataclass
class Outcome:
    """The outcome of one sample: `kind` is right, unsupported, wrong or error."""

    name: str
    dtype: str
    sample: str  # its label
    kind: str
    detail: str = ""


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def operators() -> dict[str, OpInfo]:
    return {full_name(op): op for op in op_db}


@dataclass
class Sample:
    """A call of an operator; its number is the position in the database."""

    number: int
    call: Callable[..., Any]
    given: Any
    label: str  # the number, with "!" for the in-place variant


def samples(op: OpInfo, dtype: torch.dtype, everything: bool) -> list[Sample]:
    """All, or a fixed slice; the first one in place as well."""
    if dtype not in op.supported_dtypes("cpu"):
        return []
    chosen = [Sample(number, op.op, given, str(number)) for number, given in _given(op, dtype, everything)]
    if op.inplace_variant is None or not chosen:
        return chosen
    first = chosen[0]
    inplace = Sample(first.number, _on_a_copy(op.inplace_variant), first.given, f"{first.label}!")
    return [first, inplace, *chosen[1:]]


def run_sample(op: OpInfo, dtype: torch.dtype, sample: Sample) -> Outcome:
    return _outcome(op, dtype, sample.label, sample.call, sample.given)


def _given(op: OpInfo, dtype: torch.dtype, everything: bool) -> list[tuple[int, Any]]:
    torch.manual_seed(0)
    random.seed(0)
    try:
        generated = op.sample_inputs("cpu", dtype, requires_grad=False)
        numbered = list(enumerate(itertools.islice(generated, None if everything else _SLICE_FIRST)))
    except RuntimeError:  # the database itself has no samples of that dtype
        return []
    if everything or len(numbered) <= _SLICE_SAMPLES:
        return numbered
    return [numbered[(k * len(numbered)) // _SLICE_SAMPLES + k % 2] for k in range(_SLICE_SAMPLES)]


def _on_a_copy(inplace: Callable[..., Any]) -> Callable[..., Any]:
    """x -> a copy of x after an in-place call, read through a view of it."""

    def run(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        changed = x.clone()
        seen = changed.view_as(changed)
        inplace(changed, *args, **kwargs)
        return seen

    return run


def _outcome(op: OpInfo, dtype: torch.dtype, number: str, call: Callable[..., Any], sample: Any) -> Outcome:
    def result(kind: str, detail: object = "") -> Outcome:
        text = str(detail).strip()
        return Outcome(
            full_name(op),
            str(dtype).removeprefix("torch."),
            number,
            kind,
            text.splitlines()[0] if text else "",
        )

    flat, tree = tree_flatten((sample.input, sample.args, sample.kwargs))
    try:
        eager = _run(call, flat, tree)
    except Exception as error:
        return result("unsupported", f"eager refuses: {error}")
    if not eager or not all(isinstance(value, torch.Tensor) for value in eager):
        return result("unsupported", "its results are not tensors alone")
    try:
        actual = _by_ingot(call, flat, tree)
    except ingot.UnsupportedError as error:
        is_defect = any(
            code in str(error) for code in _DEFECTS
        )  # also as the reason of a node that torch runs
        return result("error" if is_defect else "unsupported", _reason(error))
    except ingot.Error as error:
        return result("error", f"{type(error).__name__} {error.code}: {error}")
    except Exception as error:
        if _is_ours(error):
            return result("error", f"{type(error).__name__}: {error}")
        return result("unsupported", f"torch does not capture it: {type(error).__name__}")
    try:
        if _draws(call, flat, tree):
            _compare_draws(actual, eager)
        elif not _differs_in_ties(op, sample, actual, eager):
            _compare(op, actual, _judging(op, flat, eager), _exact(call, flat, tree, eager))
    except AssertionError as error:
        return result("wrong", error)
    return result("right")


def _is_ours(error: BaseException) -> bool:
    """Whether it was raised at or below a call of this package that torch made, or while an engine ran: then torch had its graph."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [file.startswith(_PACKAGE) for file in files]
    if True not in own:
        return False
    first = own.index(True)  # the backend, which asks torch for the graph
    left = next((k for k in range(first, len(own)) if not own[k]), len(own))
    return left == len(own) or True in own[left:]


def _reason(error: ingot.UnsupportedError) -> str:
    """The first unsupported node and why; the message lists them, one per line."""
    lines = str(error).splitlines()
    return lines[1].strip() if len(lines) > 1 else lines[0]


def _run(call: Callable[..., Any], flat: list, tree: Any) -> list[Any]:
    copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in flat]
    x, args, kwargs = tree_unflatten(copies, tree)
    with torch.no_grad():
        return tree_leaves(call(x, *args, **kwargs))


class _Draws(TorchDispatchMode):
    """Whether torch draws random numbers."""

    found = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_attention = "scaled_dot_product" in function.name()  # draws only with dropout, by other operators
        self.found |= torch.Tag.nondeterministic_seeded in function.tags and not is_attention
        return function(*args, **kwargs or {})


def _draws(call: Callable[..., Any], flat: list, tree: Any) -> bool:
    with _Draws() as mode:
        _run(call, flat, tree)
    return mode.found


def _by_ingot(call: Callable[..., Any], flat: list, tree: Any) -> list[torch.Tensor]:
    """The path of torch.compile from Dynamo's call of the backend on."""
    tensors = [value.clone() for value in flat if isinstance(value, torch.Tensor)]

    def one_op(*given: torch.Tensor) -> list[torch.Tensor]:
        remaining = iter(given)
        filled = [next(remaining) if isinstance(value, torch.Tensor) else value for value in flat]
        x, args, kwargs = tree_unflatten(filled, tree)
        return tree_leaves(call(x, *args, **kwargs))

    graph = torch.fx.Graph()
    placeholders = [graph.placeholder(f"x{i}") for i in range(len(tensors))]
    graph.output(graph.call_function(one_op, tuple(placeholders)))
    module = torch.fx.GraphModule({}, graph)
    with torch.no_grad():
        try:
            compiled = backend(module, tensors, options=_WHOLE)
        except ingot.UnsupportedError as error:
            if error.code != "INGOT-N001":
                raise
            with tracing(TracingContext(_fake_mode())):  # sizes follow from data
                compiled = backend(module, tensors, options=_WHOLE)
        return list(compiled(*tensors))


def _fake_mode() -> FakeTensorMode:
    """As Dynamo makes it with `capture_scalar_outputs` and `capture_dynamic_output_shape_ops`: sizes may follow from data."""
    sizes = ShapeEnv(
        allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True, assume_static_by_default=True
    )
    return FakeTensorMode(shape_env=sizes)


def _exact(call: Callable[..., Any], flat: list, tree: Any, eager: list[torch.Tensor]) -> list[torch.Tensor]:
    """Eager's results in fp64, as far as its dtypes can hold them; eager's own where there is no such run."""

    def wide(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.double()
        return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value

    try:
        exact = _run(call, [wide(value) for value in flat], tree)
    except Exception:
        return eager
    fits = len(exact) == len(eager) and all(a.shape == b.shape for a, b in zip(exact, eager, strict=True))
    if not fits:
        return eager
    return [_within(value, like.dtype) for value, like in zip(exact, eager, strict=True)]


def _judging(op: OpInfo, flat: list, eager: list[torch.Tensor]) -> list[torch.Tensor]:
    """Eager's results; fp64 by mpmath where torch's own are not exact enough to judge others by."""
    name = full_name(op)
    if name not in EXACT or "polynomial" in name or eager[0].dtype != torch.float64:
        return eager
    operands = torch.broadcast_tensors(*(torch.as_tensor(value, dtype=torch.float64) for value in flat))
    rows = zip(
        eager[0].flatten().tolist(), *(operand.flatten().tolist() for operand in operands), strict=True
    )
    exact = [exact_value(name, *values) if math.isfinite(given) else given for given, *values in rows]
    return [torch.tensor(exact, dtype=torch.float64).reshape(eager[0].shape)]


def _within(exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """With infinities where `dtype` overflows."""
    rounded = exact.to(dtype)
    if not dtype.is_floating_point or not exact.is_floating_point():
        return rounded
    return torch.where(torch.isinf(rounded), rounded.double(), exact.double())


def _rebuilt_eigen(values: torch.Tensor, vectors: torch.Tensor) -> list[torch.Tensor]:
    return [values, (vectors * values.unsqueeze(-2)) @ vectors.mT, vectors.mT @ vectors]


def _rebuilt_singular(u: torch.Tensor, s: torch.Tensor, vh: torch.Tensor) -> list[torch.Tensor]:
    k = s.shape[-1]
    return [s, (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], u.mT @ u, vh @ vh.mT]


def _in_order(values: torch.Tensor) -> torch.Tensor:
    """Each row by its real parts, equal ones (of conjugates) by the others."""
    rows = []
    for row in torch.atleast_2d(values).flatten(0, -2):
        scale = max(row.abs().tolist(), default=1.0) or 1.0
        rows.append(sorted(row.tolist(), key=lambda value: (round(value.real / scale, 3), value.imag)))
    return torch.tensor(rows, dtype=values.dtype).reshape(values.shape)


def _rebuilt_general(values: torch.Tensor, vectors: torch.Tensor) -> list[torch.Tensor]:
    rebuilt = (vectors * values.unsqueeze(-2)) @ torch.linalg.inv(vectors)
    return [_in_order(values), rebuilt, vectors.abs().square().sum(-2)]


# Vectors whose sign is free, and whose basis is where values are equal, and values in any order: what does not depend
# on that.
_INVARIANTS: dict[str, Callable[..., list[torch.Tensor]]] = {
    "linalg.eig": _rebuilt_general,
    "linalg.eigvals": lambda values: [_in_order(values)],
    "linalg.eigh": _rebuilt_eigen,
    "linalg.svd": _rebuilt_singular,
    "svd": lambda u, s, v: _rebuilt_singular(u, s, v.mT),
}


def _compare(
    op: OpInfo, actual: list[torch.Tensor], eager: list[torch.Tensor], exact: list[torch.Tensor]
) -> None:
    assert len(actual) == len(eager), f"{len(actual)} results for {len(eager)}"
    if invariants := _INVARIANTS.get(op.name):
        actual, eager, exact = (invariants(*results) for results in (actual, eager, exact))
    for ours, theirs, best in zip(actual, eager, exact, strict=True):
        assert ours.dtype == theirs.dtype, f"{ours.dtype} for {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{list(ours.shape)} for {list(theirs.shape)}"
        if theirs.is_complex():
            ours, theirs, best = (torch.view_as_real(value.resolve_conj()) for value in (ours, theirs, best))
        if op.name in _UNINITIALIZED or _equal(ours, theirs):
            continue
        if not theirs.is_floating_point():
            raise AssertionError(f"{int((ours != theirs).sum())} of {ours.numel()} elements differ")
        finite = torch.isfinite(theirs)
        if not torch.equal(
            finite, torch.isfinite(best)
        ):  # eager overflows on the way; Ingot does as well, or not
            if torch.equal(finite, torch.isfinite(ours)):
                best = theirs.double()
            else:
                theirs = best.to(theirs.dtype)
        assert_accurate(ours, theirs, best)


def _compare_draws(actual: list[torch.Tensor], eager: list[torch.Tensor]) -> None:
    """Engines draw other numbers than torch: test_random_draws.py tests their distributions."""
    assert len(actual) == len(eager), f"{len(actual)} results for {len(eager)}"
    for ours, theirs in zip(actual, eager, strict=True):
        assert ours.dtype == theirs.dtype, f"{ours.dtype} for {theirs.dtype}"
        assert ours.shape == theirs.shape, f"{list(ours.shape)} for {list(theirs.shape)}"
        assert ours.isfinite().all() or not theirs.isfinite().all(), "infinities or NaN where torch has none"


def _differs_in_ties(op: OpInfo, sample: Any, actual: list[torch.Tensor], eager: list[torch.Tensor]) -> bool:
    """Whether only indices of equal elements differ: values are the same, and no element is taken twice."""
    x, position = sample.input, _PLACES.get(op.name)
    if (
        position is None
        or x.dim() == 0
        or actual[-1].dtype != torch.int64
        or actual[-1].shape != eager[-1].shape
    ):
        return False
    dim = sample.kwargs.get("dim", sample.args[position] if len(sample.args) > position else -1)
    places = [
        (value if value.dim() == x.dim() else value.unsqueeze(dim)) for value in (actual[-1], eager[-1])
    ]
    ours, theirs = (torch.take_along_dim(x, value, dim) for value in places)
    taken_once = bool((places[0].sort(dim).values.diff(dim=dim) > 0).all())
    values_are_right = all(_equal(a, b) for a, b in zip(actual[:-1], eager[:-1], strict=True))
    return values_are_right and taken_once and _equal(ours, theirs)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.is_floating_point():
        return bool(torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(0), b.nan_to_num(0)))
    return torch.equal(a, b)
