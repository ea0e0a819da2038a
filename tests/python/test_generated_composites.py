# SPDX-License-Identifier: Apache-2.0
"""Generated tables are what the installed torch says. test_composites.py compares the rows with eager."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from composite_rows import TABLES, rows_of

sys.path.insert(0, str(TABLES.parents[3] / "tools"))
import composite_traces
import generate_aten_schemas
import generate_composites

TEXT = (TABLES / "generated.def").read_text()
ROWS = [row for row in rows_of(TEXT) if row.kind != "local"]


def test_rows_are_what_torch_traces() -> None:
    """Of the torch that they were made with; a newer one is a reason to make them again."""
    is_same = f"torch {torch.__version__.partition('+')[0]}:" in TEXT
    traced = {row.name: composite_traces.row_of(row.name, row.overload) for row in ROWS if is_same}
    assert [name for name, text in traced.items() if text not in TEXT] == []


def test_schemas_are_torchs() -> None:
    """Of each torch that is supported: another one has nothing to add, and changes no overload."""
    table = generate_aten_schemas.TABLE.read_text()
    without_head = re.compile(r"^.* from torch .*\n", re.MULTILINE)
    assert without_head.sub("", generate_aten_schemas.table(table)) == without_head.sub("", table)


def test_words_of_schemas_are_torchs() -> None:
    """Of the torch that the table was made with first."""
    table = generate_aten_schemas.TABLE.read_text()
    if f" from torch {torch.__version__.partition('+')[0]}" in table:
        assert set(generate_aten_schemas.schemas()) - set(table.splitlines()) == set()


@pytest.mark.parametrize(
    ("newer", "is_taken"),
    [
        ("f(Tensor self, int n=1, *, bool b=False) -> Tensor", True),
        ("f(Tensor self, int n=1, *, bool b=False, float? scale=None) -> Tensor", True),
        ("f(Tensor self, int n=1, int m=2, *, bool b=False) -> Tensor", True),
        ("f(Tensor self, int n=2, *, bool b=False) -> Tensor", False),
        ("f(Tensor self, int n=1, *, bool b=True) -> Tensor", False),
        ("f(Tensor self, int n=1, *, bool b=False, float scale) -> Tensor", False),
        ("f(Tensor self, int m=1, *, bool b=False) -> Tensor", False),
        ("f(Tensor self, *, bool b=False) -> Tensor", False),
        ("f(Tensor self, int n=1, *, bool b=False) -> (Tensor, Tensor)", False),
    ],
)
def test_one_table_serves_torches_that_read_calls_alike(newer: str, is_taken: bool) -> None:
    older = "f(Tensor self, int n=1, *, bool b=False) -> Tensor | default"
    if is_taken:
        assert generate_aten_schemas.merged([older], [newer]) == [f"{newer} | default"]
    else:
        with pytest.raises(SystemExit, match="differently"):
            generate_aten_schemas.merged([older], [newer])


def _users(names: set[str], rows: list) -> set[str]:
    """The local rows among `names`, and those that call them."""
    calls = re.compile(rf"\b({'|'.join(map(re.escape, names))})\(")
    found = names | {row.name for row in rows if row.kind == "local" and calls.search(row.source)}
    return found if found == names else _users(found, rows)


def test_rows_ask_for_promotions_that_torch_has() -> None:
    rows = [row for path in (TABLES / "core").glob("*.def") for row in rows_of(path.read_text())]
    calls = re.compile(rf"\b({'|'.join(_users({'promoted_type'}, rows))})\(")
    asking = [row.name for row in rows if row.kind != "local" and calls.search(row.source)]
    kinds = generate_aten_schemas.promotion_kinds()
    assert [name for name in asking if name.partition(".")[0] not in kinds] == []
    assert len(asking) > 70  # elementwise overloads


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
