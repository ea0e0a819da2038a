# SPDX-License-Identifier: Apache-2.0
"""Sizes that a program was not traced for: results equal eager's, or the call is rejected by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ingot
import numpy
import pytest
import torch
from ingot.guards import compile_guard
from sized_programs import (
    GUARDED,
    LARGEST,
    POSITIONS,
    Function,
    branch_on_a_root,
    branch_on_a_threshold,
    branch_on_half,
    branch_on_order,
    branch_on_parity,
    branch_on_product,
    check,
    inputs_of,
    own_assertion,
    padded_to_four,
    pairs,
    torch_check,
    torch_in_between,
)
from torch import nn


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("function", GUARDED, ids=lambda function: function.__name__)
def test_other_sizes_equal_eager_or_are_refused(function: Callable[..., Any]) -> None:
    model = Function(function)
    compiled = ingot.compile(model, inputs=inputs_of())
    ran = [check(compiled, model, sizes, refusable=True) for sizes in pairs(40)]
    assert any(ran)
    assert not all(ran)


def test_a_refusal_names_condition_sizes_and_line() -> None:
    compiled = ingot.compile(Function(branch_on_parity), inputs=inputs_of())
    with pytest.raises(ingot.UserError) as caught:
        compiled(torch.randn(7, 3), torch.randn(4, 3))
    assert caught.value.code == "INGOT-U312"
    assert "x.shape[0] % 2 == 0" in str(caught.value)
    assert "x.shape[0] is 7" in str(caught.value)
    assert "sized_programs.py" in caught.value.source
    conditions = compiled.engine.inspect()["conditions"]
    assert [(row["kind"], row["condition"]) for row in conditions] == [("guard", "x.shape[0] % 2 == 0")]


def test_a_program_that_is_right_for_all_sizes_has_no_conditions() -> None:
    model = Function(lambda x, y: torch.relu(x[:, 1:]).sum(1, keepdim=True) + x[: x.shape[0], :1])
    assert ingot.compile(model, inputs=inputs_of()).engine.inspect()["conditions"] == []


def test_sizes_that_torch_only_specializes_run() -> None:
    model = Function(lambda x, y: torch.cat([x, y])[::4].t().contiguous().t() * 2)
    compiled = ingot.compile(model, inputs=inputs_of())
    for rows in range(1, LARGEST + 1):
        assert check(compiled, model, (rows, 1), refusable=False)


def test_guards_that_no_engine_can_check_keep_the_program_in_torch() -> None:
    compiled = ingot.compile(Function(branch_on_a_root), inputs=inputs_of())
    assert all(segment.backend == "torch" for segment in compiled.report.segments)
    assert "cannot check" in compiled.report.fallbacks[0].reason
    with pytest.raises(ingot.UnsupportedError) as caught:
        ingot.compile(Function(branch_on_a_root), inputs=inputs_of(), require_full_compilation=True)
    assert "cannot check" in str(caught.value)


@pytest.mark.parametrize("prefix", ["", "torch.sym_"])
def test_both_spellings_of_extrema_are_guards(prefix: str) -> None:
    """Torch writes max and min until 2.13, torch.sym_max and torch.sym_min after it."""
    holds = compile_guard(f"{prefix}max(1, 1 + L['n']) == 1 + L['n'] and {prefix}min(L['n'], 8) < 8")
    assert [bool(holds({"n": n})) for n in (-1, 0, 7, 8)] == [False, True, True, False]


def test_saved_modules_keep_their_guards(tmp_path: Path) -> None:
    for function in (branch_on_parity, torch_in_between):
        path = tmp_path / f"{function.__name__}.pt2"
        ingot.save(ingot.compile(Function(function), inputs=inputs_of(2)), str(path))
        loaded = ingot.load(str(path))
        loaded(torch.randn(8, 3), torch.randn(4, 3))
        with pytest.raises(Exception, match=r"% 2|Guard|== 0|INGOT-U312"):
            loaded(torch.randn(7, 3), torch.randn(4, 3))


def test_assertions_on_values_fail_the_run() -> None:
    def asserting(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > -100).all(), 'no "small" values')
        return x * 2

    compiled = ingot.compile(Function(asserting), inputs=inputs_of(), require_full_compilation=True)
    x = torch.randn(5, 3)
    torch.testing.assert_close(compiled(x, x), x * 2)
    x[3, 1] = -200
    with pytest.raises(ingot.UserError, match='no "small" values') as caught:
        compiled(x, x)
    assert caught.value.code == "INGOT-U313"
    assert "sized_programs.py" in caught.value.source


def exported(function: Callable[..., Any]) -> torch.export.ExportedProgram:
    rows = {0: torch.export.Dim.DYNAMIC(min=2, max=LARGEST)}
    return torch.export.export(
        Function(function), (torch.randn(8, 3), torch.randn(4, 3)), dynamic_shapes=(rows, rows)
    )


FILES: Sequence[Any] = [
    branch_on_parity, branch_on_product, branch_on_order, branch_on_a_threshold, branch_on_half, own_assertion,
    torch_check, padded_to_four, *(POSITIONS[name] for name in ("select_scatter", "set_row", "copy_narrow", "narrow")),
]  # fmt: skip


@pytest.mark.parametrize("function", FILES, ids=lambda function: function.__name__)
def test_files_keep_guards_and_bounds(function: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(exported(function), path)
    engine = ingot.build(str(path))
    engine.save(tmp_path / "model.ingot")
    engine = ingot.Engine.load(tmp_path / "model.ingot")
    ran = [check(engine, Function(function), sizes, refusable=True) for sizes in pairs(20)]
    assert any(ran)
    assert not all(ran)


def floats_of_sizes(x: torch.Tensor, y: torch.Tensor) -> tuple:
    count = x.shape[0]
    return (
        x * (0.3 / count) + count**0.5,
        x.clamp(max=count / 7),
        x.int() * (count / 2 - 1),
        x.double().abs() ** (1 / count),
    )


def test_floats_of_sizes_are_computed_in_each_run(tmp_path: Path) -> None:
    model = Function(floats_of_sizes)
    torch.export.save(exported(floats_of_sizes), tmp_path / "model.pt2")
    built, compiled = ingot.build(str(tmp_path / "model.pt2")), ingot.compile(model, inputs=inputs_of(2))
    for rows in range(2, LARGEST + 1):
        assert check(built, model, (rows, 2), refusable=False)
        assert check(compiled, model, (rows, 2), refusable=False)
    assert compiled.engine.inspect()["conditions"] == []


@pytest.mark.parametrize("factor", [2.0, 1.5, (0.75, 3.0)])
def test_sizes_by_a_factor(factor: Any) -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x * 2, scale_factor=factor, mode="bilinear")

    torch._dynamo.reset()
    compiled = torch.compile(
        resized, backend="ingot", dynamic=True, options={"require_full_compilation": True}
    )
    for height, width in ((9, 8), (10, 7), (13, 20)):
        x = torch.randn(2, 3, height, width)
        torch.testing.assert_close(compiled(x), resized(x), rtol=1e-4, atol=1e-5)


def test_the_command_line_refuses_and_lists_conditions(tmp_path: Path) -> None:
    torch.export.save(exported(branch_on_parity), tmp_path / "model.pt2")
    ingot.build(str(tmp_path / "model.pt2")).save(tmp_path / "model.ingot")
    for rows in (7, 8):
        numpy.save(tmp_path / f"x{rows}.npy", numpy.ones((rows, 3), numpy.float32))
    numpy.save(tmp_path / "y.npy", numpy.ones((4, 3), numpy.float32))

    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [find_program(), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert run("run", "model.ingot", "--input", "x=x8.npy", "--input", "y=y.npy").returncode == 0
    refused = run("run", "model.ingot", "--input", "x=x7.npy", "--input", "y=y.npy")
    assert refused.returncode != 0
    assert "INGOT-U312" in refused.stderr
    assert "x.shape[0] % 2 == 0" in refused.stderr
    assert "x.shape[0] % 2 == 0 (guard)" in run("inspect", "model.ingot").stdout


def find_program() -> str:
    root = Path(__file__).resolve().parents[2]
    installed = Path(sys.executable).with_name("ingot")
    return str(installed if installed.exists() else sorted(root.glob("build/*/bin/ingot"))[-1])


def test_parts_check_guards_of_variable_arguments() -> None:
    class Variable(nn.Module):
        def forward(self, first: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
            return torch_in_between(rest[1], first) + rest[0].sum()

    model, inputs = Variable(), [torch.randn(2), torch.randn(3), inputs_of(2)[0]]
    compiled = ingot.compile(model, inputs=inputs)
    for rows in (8, 4):
        given = (torch.randn(2), torch.randn(3), torch.randn(rows, 3))
        torch.testing.assert_close(compiled(*given), model(*given))
    with pytest.raises(ingot.UserError, match=r"rest_1.shape\[0\] % 2 == 0"):
        compiled(torch.randn(2), torch.randn(3), torch.randn(7, 3))
