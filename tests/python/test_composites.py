# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of composites mean what their overloads do: as Python against eager, and from .pt2 files in Ingot."""

from __future__ import annotations

from itertools import compress, islice
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from composite_rows import Row, compare, fitting_samples, functions
from torch import nn
from torch.utils import _pytree as pytree

ROWS = [(row, function) for row, function in functions().items() if row.kind != "local"]
NAMES = [f"{row.kind} {row.name}".strip() for row, _ in ROWS]


@pytest.mark.parametrize(("row", "function"), ROWS, ids=NAMES)
@pytest.mark.filterwarnings("ignore")
def test_a_row_is_its_overload(row: Row, function: Any) -> None:
    assert compare(row, function) > 0, "no sample fits the overload: add one to composite_rows.py"


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
