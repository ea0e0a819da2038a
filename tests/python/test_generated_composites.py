# SPDX-License-Identifier: Apache-2.0
"""Rows that are generated say what traces of the installed torch say. test_composites.py compares them with eager."""

from __future__ import annotations

import sys

import pytest
import torch
from composite_rows import TABLES, rows_of

sys.path.insert(0, str(TABLES.parents[3] / "tools"))
import composite_traces
import generate_composites

TEXT = (TABLES / "generated.def").read_text()
ROWS = [row for row in rows_of(TEXT) if row.kind != "local"]


def test_rows_are_what_torch_traces() -> None:
    """Of the torch that they were made with; a newer one is a reason to make them again."""
    is_same = f"torch {torch.__version__.partition('+')[0]}:" in TEXT
    traced = {row.name: composite_traces.row_of(row.name, row.overload) for row in ROWS if is_same}
    assert [name for name, text in traced.items() if text not in TEXT] == []


def test_no_row_is_written_twice() -> None:
    assert {row.name for row in ROWS}.isdisjoint(generate_composites.covered())


@pytest.mark.parametrize(
    ("overload", "reason"),
    [
        (torch.ops.aten.pdist.default, "unknown formula"),  # its decomposition bakes in the number of rows
        (torch.ops.aten.squeeze.default, "depends on ranks"),
        (torch.ops.aten.gcd.default, "it calls prims.gcd"),
        (torch.ops.aten.fft_fft.default, "norm is"),
    ],
)
def test_traces_of_special_cases_make_no_row(overload: torch._ops.OpOverload, reason: str) -> None:
    with pytest.raises(composite_traces.NotGenericError, match=reason):
        composite_traces.row_of("operator", overload)
