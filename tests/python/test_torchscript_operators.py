# SPDX-License-Identifier: Apache-2.0
"""Traces of torch's operator database, run by the interpreter of TorchScript, give what TorchScript gives."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import torch
from ingot.fronts import FRONTS
from operator_database import full_name
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree

_STEP = 1 if os.environ.get("INGOT_LONG") == "1" else 5  # each fifth operator of the database
_SAMPLE = 3  # the first ones are often empty or 0-d


def sample_of(op: OpInfo) -> SampleInput | None:
    samples = list(itertools.islice(op.sample_inputs("cpu", torch.float32), _SAMPLE))
    return samples[-1] if samples else None


def traced(op: OpInfo, sample: SampleInput) -> tuple[Any, tuple[torch.Tensor, ...]] | None:
    """The trace of a call, and its inputs; None for what torch.jit.trace does not take."""
    leaves, structure = _pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [position for position, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = tuple(leaves[position].detach() for position in places)

    def call(*given: torch.Tensor) -> Any:
        held = dict(zip(places, given, strict=True))
        values = [held.get(position, leaf) for position, leaf in enumerate(leaves)]
        first, args, kwargs = _pytree.tree_unflatten(values, structure)
        return op.op(first, *args, **kwargs)

    try:
        trace = torch.jit.trace(call, tuple(tensor.clone() for tensor in tensors), check_trace=False)
        seeded(trace, tensors)
    except (RuntimeError, TypeError, AssertionError):  # the last: operators of GPUs alone
        return None
    return trace, tensors


def seeded(function: Callable, tensors: tuple[torch.Tensor, ...]) -> list[Any]:
    torch.manual_seed(0)
    return _pytree.tree_leaves(function(*(tensor.clone() for tensor in tensors)))


def difference(trace: Any, tensors: tuple[torch.Tensor, ...]) -> str:
    expected = seeded(trace, tensors)
    try:
        actual = seeded(FRONTS["ts"](trace), tensors)
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except (Exception, AssertionError) as error:  # each operator is reported
        return str(error).splitlines()[0]
    return ""


def test_each_operator_of_the_database() -> None:
    dense = [
        op
        for op in op_db
        if op.supports_dtype(torch.float32, "cpu") and "sparse" not in op.name and "empty" not in op.name
    ]
    tried, wrong = 0, {}
    with torch.no_grad():
        for op in dense[::_STEP]:
            sample = sample_of(op)
            found = traced(op, sample) if sample is not None else None
            tried += found is not None
            if found is not None and (why := difference(*found)):
                wrong[full_name(op)] = why
    assert wrong == {}
    assert tried >= 500 // _STEP
