# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of composites mean what their overloads do: as Python against eager, and from .pt2 files in Ingot."""

from __future__ import annotations

from itertools import compress, islice
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from composite_rows import Row, compare, compare_mixed, fitting_samples, functions, refused_by_eager
from torch import nn
from torch.utils import _pytree as pytree

ROWS = [(row, function) for row, function in functions().items() if row.kind != "local"]
NAMES = [f"{row.kind} {row.name}".strip() for row, _ in ROWS]


@pytest.mark.parametrize(("row", "function"), ROWS, ids=NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_row_is_its_overload(row: Row, function: Any) -> None:
    assert compare(row, function) > 0, "no sample fits the overload: add one to composite_rows.py"
    if row.kind != "complex" and not row.name.startswith("prims."):
        compare_mixed(row, function)


REAL = [pair for pair in ROWS if pair[0].kind != "complex"]  # engines take and give no complex numbers


@pytest.mark.parametrize(("row", "function"), REAL, ids=[row.name for row, _ in REAL])
@pytest.mark.filterwarnings("ignore")
def test_a_row_runs_in_ingot(row: Row, function: Any, tmp_path: Path) -> None:
    samples = list(islice(fitting_samples(row, function), 3))
    calls = [(arguments, keywords) for arguments, keywords, _, _ in samples]
    is_computed = [
        leaf is not None for leaf in pytree.tree_leaves([expected for _, _, expected, _ in samples])
    ]
    leaves, tree = pytree.tree_flatten(calls)
    # The same tensor, given twice, is one input.
    inputs = {id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)}

    class Model(nn.Module):
        def forward(self, tensors: list[torch.Tensor]) -> list[Any]:
            by_identity = dict(zip(inputs, tensors, strict=True))
            given = [by_identity.get(id(leaf), leaf) for leaf in leaves]
            results = [row.overload(*args, **kwargs) for args, kwargs in pytree.tree_unflatten(given, tree)]
            return list(compress(pytree.tree_leaves(results), is_computed))

    tensors = [tensor.clone() for tensor in inputs.values()]
    program = torch.export.export(Model(), (tensors,))
    torch.export.save(program, tmp_path / "model.pt2")
    wanted, got = Model()(tensors), ingot.build(tmp_path / "model.pt2")(tensors)
    for one, other in zip(pytree.tree_leaves(got), pytree.tree_leaves(wanted), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


class _Call(nn.Module):
    """A call of tensors among other arguments."""

    def __init__(self, row: Row, arguments: tuple, keywords: dict[str, Any]) -> None:
        super().__init__()
        self.row = row
        self.leaves, self.tree = pytree.tree_flatten((arguments, keywords))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]

    def tensors(self) -> tuple[torch.Tensor, ...]:
        return tuple(self.leaves[i].clone() for i in self.places)

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = dict(zip(self.places, tensors, strict=True))
        leaves = [given.get(i, leaf) for i, leaf in enumerate(self.leaves)]
        arguments, keywords = pytree.tree_unflatten(leaves, self.tree)
        return self.row.overload(*arguments, **keywords)


def _is_taken(call: _Call, path: Path) -> bool:
    try:
        program = torch.export.export(call, call.tensors())
    except Exception:
        return False  # torch refuses it while it traces
    torch.export.save(program, path)
    try:
        ingot.build(path)
    except ingot.Error:
        return False
    return True


@pytest.mark.filterwarnings("ignore")
def test_what_eager_refuses_is_refused(tmp_path: Path) -> None:
    """Tensors of several dtypes, where torch's own trace does not look at them."""
    calls = [_Call(row, *given) for row, function in REAL for given in refused_by_eager(row, function)]
    assert len(calls) > 10
    assert [call.row.name for call in calls if _is_taken(call, tmp_path / "model.pt2")] == []
