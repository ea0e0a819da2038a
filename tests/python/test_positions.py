# SPDX-License-Identifier: Apache-2.0
"""Positions that depend on sizes (slices, selects, scatters, windows): they stay in bounds, or the call is rejected by name."""

from __future__ import annotations

from collections.abc import Iterator

import ingot
import pytest
import torch
from sized_programs import LARGEST, POSITIONS, Function, check, inputs_of, outcome, pairs


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", POSITIONS)
def test_positions_that_follow_from_sizes_stay_in_bounds(name: str) -> None:
    model = Function(POSITIONS[name])
    compiled = ingot.compile(model, inputs=inputs_of())
    ran = [check(compiled, model, sizes, refusable=True) for sizes in pairs(30)]
    assert any(ran)


# Operators that torch is to run, so that positions are tested in engines, in torch, and in engines behind torch.
CHOSEN = [
    "aten.clone.default", "aten.slice.Tensor", "aten.select.int", "aten.add.Tensor", "aten.copy.default",
    "aten.slice_scatter.default", "aten.index.Tensor",
]  # fmt: skip
SPLIT = ["copy_narrow", "set_row", "fill_slice", "copy_flipped", "select", "narrow", "narrow_length", "slice", "slice_to",
         "pad", "gather", "flip_of_a_slice", "split_sizes", "reshape_halves"]  # fmt: skip


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("name", SPLIT)
def test_parts_refuse_sizes_in_the_users_terms(name: str, chosen: str) -> None:
    model = Function(POSITIONS[name])
    compiled = ingot.compile(model, inputs=inputs_of(), torch_executed_ops={chosen})
    ran = [check(compiled, model, sizes, refusable=True) for sizes in pairs(5)]
    assert any(ran)


def test_parts_check_all_that_an_engine_of_the_whole_would() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.clone() + 1).narrow(0, y.shape[0], 2) * 2

    def refusal(*arguments: torch.Tensor) -> str:
        with pytest.raises(ingot.UserError) as caught:
            compiled(*arguments)
        return str(caught.value)

    compiled = ingot.compile(
        Function(function), inputs=inputs_of(), torch_executed_ops={"aten.clone.default", "aten.add.Tensor"}
    )
    x, y = torch.randn(8, 3), torch.randn(4, 3)
    compiled(x, y)
    assert "y.shape[0] <= x.shape[0] - 2" in refusal(x[:5], y)
    assert refusal(torch.randn(LARGEST + 1, 3), y).startswith("[INGOT-U305] dim 0 of input 'x'")
    assert refusal(torch.randn(8, 4), y).startswith("[INGOT-U303] dim 1 of input 'x'")
    assert refusal(x.double(), y).startswith("[INGOT-U302] input 'x'")
    assert refusal(x[None], y).startswith("[INGOT-U301] input 'x'")


def test_conditions_of_a_part_name_the_users_arguments() -> None:
    compiled = ingot.compile(
        Function(POSITIONS["copy_narrow"]), inputs=inputs_of(), torch_executed_ops={"aten.clone.default"}
    )
    with pytest.raises(
        ingot.UserError, match=r"'slice' needs y.shape\[0\] >= 2; here y.shape\[0\] is 1"
    ) as caught:
        compiled(torch.randn(9, 3), torch.randn(1, 3))
    assert caught.value.code == "INGOT-U312"
    assert caught.value.node in (
        "slice_2",
        "slice_tensor_1",
    )  # the statement slices y twice, under one condition
    assert "sized_programs.py" in caught.value.source


def test_slices_that_were_traced_inside_are_no_reason_for_parts() -> None:
    for name in ("copy_narrow", "narrow", "slice", "flip_of_a_slice", "narrow_length"):
        compiled = ingot.compile(Function(POSITIONS[name]), inputs=inputs_of())
        assert [segment.backend for segment in compiled.report.segments] == ["cpu"], name


@pytest.mark.parametrize(
    "name", ["select_scatter", "set_row", "copy_narrow", "select", "narrow", "flip_of_a_slice"]
)
def test_just_in_time_positions_stay_in_bounds(name: str) -> None:
    model = Function(POSITIONS[name])
    compiled = torch.compile(model, backend="ingot", dynamic=True)
    for sizes in [(8, 4), (9, 3), (8, 7), (5, 2), (12, 6)]:
        x, y = torch.randn(sizes[0], 3), torch.randn(sizes[1], 3)
        expected = outcome(lambda x=x, y=y: model(x, y))
        if expected is not None:
            torch.testing.assert_close(compiled(x, y), expected)
    with pytest.raises((ingot.UserError, RuntimeError, IndexError)):
        compiled(torch.randn(5, 3), torch.randn(9, 3))


@pytest.mark.long
@pytest.mark.parametrize("name", POSITIONS)
def test_all_sizes(name: str) -> None:
    model = Function(POSITIONS[name])
    compiled = ingot.compile(model, inputs=inputs_of())
    ran = [check(compiled, model, sizes, refusable=True) for sizes in pairs(LARGEST * LARGEST - 10)]
    assert any(ran)
