# SPDX-License-Identifier: Apache-2.0
"""Sizes that a program was not traced for, and positions that follow from sizes: equal to eager, or refused by name."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ingot
import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional

LARGEST = 16
REFUSED = ("INGOT-U312", "INGOT-U305", "INGOT-U310")  # U310: indices that are data


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.function(x, y)


# ---- programs whose traced path is not for all sizes ----


def branch_on_parity(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] % 2 == 0 else x * 3


def branch_on_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] * y.shape[0] > 20 else x * 3


def branch_on_order(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] >= y.shape[0] else x * 3


def branch_on_a_threshold(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] > 4 else x * 3


def branch_on_several(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] % 2 == 0 and y.shape[0] != 5 else x * 3


def branch_on_an_excluded_size(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 3 if y.shape[0] == 7 else x * 2


def branch_on_half(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if int(x.shape[0] * 0.5) == 4 else x * 3


def branch_on_a_root(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if int(x.shape[0] ** 0.5) == 2 else x * 3


def own_assertion(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    assert x.shape[0] % 4 == 0, "rows come in fours"
    return x * 2


def torch_check(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    torch._check(x.shape[0] != 5)
    return x * 2


def padded_to_four(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    missing = (4 - x.shape[0] % 4) % 4
    return functional.pad(x, (0, 0, 0, missing)) if missing else x * 2


def branch_on_a_computed_size(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rows = x[::4]
    return x * 3 if rows.shape[0] == 1 else x * 2


def squeezed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x[::2].squeeze(0) * 2


def torch_in_between(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = torch.linalg.svdvals(x @ x.t())[:, None] + x
    return x * 2 if x.shape[0] % 2 == 0 else x * 3


GUARDED = [
    branch_on_parity, branch_on_product, branch_on_order, branch_on_a_threshold, branch_on_several,
    branch_on_an_excluded_size, branch_on_half, branch_on_a_root, own_assertion, torch_check, padded_to_four,
    branch_on_a_computed_size, squeezed, torch_in_between,
]  # fmt: skip

# ---- operators with positions that follow from sizes ----


def written(change: Callable[[torch.Tensor, torch.Tensor, int], Any]) -> Callable[..., torch.Tensor]:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x.clone()
        change(z, y, y.shape[0])
        return z

    function.__name__ = change.__name__
    return function


def set_row(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z[n] = 7.0


def copy_narrow(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z.narrow(0, n, 2).copy_(y[:2])


def fill_slice(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z[n // 2 : n].fill_(3.0)


def add_select(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z.select(0, n - 1).add_(1.0)


def copy_flipped(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z[:n] = y.flip(0)


POSITIONS: dict[str, Callable[..., Any]] = {
    "select_scatter": lambda x, y: torch.select_scatter(x, x[0], 0, y.shape[0]),
    "slice_scatter": lambda x, y: torch.slice_scatter(x, y, 0, 1, y.shape[0] + 1),
    "slice_scatter_from": lambda x, y: torch.slice_scatter(x, x[:2], 0, y.shape[0], y.shape[0] + 2),
    "diagonal_scatter": lambda x, y: torch.diagonal_scatter(x, x[0] * 0 + 1, 0) if x.shape[0] >= 3 else x,
    "set_row": written(set_row),
    "copy_narrow": written(copy_narrow),
    "fill_slice": written(fill_slice),
    "add_select": written(add_select),
    "copy_flipped": written(copy_flipped),
    "select": lambda x, y: x.select(0, y.shape[0]) + 1,
    "select_from_end": lambda x, y: x.select(0, -y.shape[0]) + 1,
    "select_column": lambda x, y: x.t().select(1, y.shape[0]) + 1,
    "index_row": lambda x, y: x[y.shape[0] - 1] + 1,
    "narrow": lambda x, y: x.narrow(0, y.shape[0], 2) + 1,
    "narrow_length": lambda x, y: x.narrow(0, 1, y.shape[0]) + y,
    "slice": lambda x, y: x[y.shape[0] : y.shape[0] + 2] + 1,
    "slice_to": lambda x, y: x[: y.shape[0]] + 1,
    "slice_from_end": lambda x, y: x[-y.shape[0] :] + 1,
    "slice_by_two": lambda x, y: x[y.shape[0] :: 2] + 1,
    "flip_of_a_slice": lambda x, y: x.narrow(0, y.shape[0], 2).flip(0) + 1,
    "roll": lambda x, y: x.roll(y.shape[0], 0) + 1,
    "pad": lambda x, y: functional.pad(x, (0, 0, y.shape[0], 1)) + 1,
    "pad_negative": lambda x, y: functional.pad(x, (0, 0, 0, 1 - y.shape[0])) + 1,
    "pad_reflect": lambda x, y: functional.pad(x.t()[None], (y.shape[0], 0), mode="reflect") + 1,
    "pad_circular": lambda x, y: functional.pad(x.t()[None], (0, y.shape[0]), mode="circular") + 1,
    "repeat": lambda x, y: x.repeat(y.shape[0], 1) + 1,
    "split": lambda x, y: x.split(y.shape[0])[0] + 1,
    "split_sizes": lambda x, y: x.split([y.shape[0], x.shape[0] - y.shape[0]])[1] + 1,
    "chunk": lambda x, y: x.chunk(3)[-1] + 1,
    "unfold": lambda x, y: x.unfold(0, 3, 2) + 1,
    "diagonal": lambda x, y: torch.diagonal(x) + 1,
    "gather": lambda x, y: x.gather(1, y[:, :2].abs().long().clamp(0, 2)) + 1,
    "scatter": lambda x, y: x.scatter(1, y[:, :1].abs().long().clamp(0, 2), 5.0),
    "scatter_add": lambda x, y: x.scatter_add(1, y[:, :1].abs().long().clamp(0, 2), y[:, :1]),
    "index_copy": lambda x, y: x.index_copy(0, torch.arange(y.shape[0]), y),
    "index_select": lambda x, y: x.index_select(0, torch.arange(y.shape[0])) + 1,
    "as_strided": lambda x, y: torch.as_strided(x + 0, (y.shape[0], 2), (3, 1)) + 1,
    "tril": lambda x, y: x.tril() + 1,
    "top_k": lambda x, y: x.topk(4, 0)[0] + 1,
    "arange": lambda x, y: torch.arange(x.shape[0] - y.shape[0]) + 1,
    "zeros": lambda x, y: torch.zeros(x.shape[0] - y.shape[0] + 3, 2) + 1,
    "average_pool": lambda x, y: functional.avg_pool1d(x.t()[None], 5, 3) + 1,
    "adaptive_pool": lambda x, y: functional.adaptive_avg_pool1d(x.t()[None], 2) + 1,
    "convolution": lambda x, y: functional.conv1d(x.t()[None], torch.ones(2, 3, 5)) + 1,
    "resize": lambda x, y: functional.interpolate(x.t()[None], scale_factor=1.5) + 1,
    "reshape_halves": lambda x, y: x[: x.shape[0] // 2 * 2].reshape(2, -1) + 1,
}


def outcome(call: Callable[[], Any]) -> Any:
    """The result's values, or None where torch refuses the sizes."""
    try:
        return call()
    except (RuntimeError, IndexError, ValueError, AssertionError, ZeroDivisionError):
        return None


def check(compiled: Callable[..., Any], model: nn.Module, sizes: tuple[int, int], refusable: bool) -> bool:
    """Whether the sizes ran. `refusable`: sizes that eager takes may be refused by name: the trace is for others."""
    generator = torch.Generator().manual_seed(sizes[0] * 100 + sizes[1])
    x, y = (torch.randn(rows, 3, generator=generator) for rows in sizes)
    expected = outcome(lambda: model(x.clone(), y.clone()))
    refusal = None
    try:
        result = compiled(x.clone(), y.clone())
    except ingot.UserError as error:
        refusal = error
    except (RuntimeError, IndexError):  # of a part that torch runs
        assert expected is None
        return False
    if refusal is not None:
        assert expected is None or refusable, (sizes, str(refusal))
        assert refusal.code in REFUSED, (sizes, str(refusal))
        return False
    assert expected is not None, (sizes, "eager refuses what ran", result)
    torch.testing.assert_close(result, expected)
    return True


def inputs_of(low: int = 1) -> list[ingot.Input]:
    rows = {"min_shape": (low, 3), "max_shape": (LARGEST, 3)}
    return [ingot.Input(opt_shape=(8, 3), **rows), ingot.Input(opt_shape=(4, 3), **rows)]


def pairs(count: int, seed: int = 0) -> list[tuple[int, int]]:
    everything = [(a, b) for a in range(1, LARGEST + 1) for b in range(1, LARGEST + 1)]
    edges = [
        (1, 1),
        (8, 4),
        (8, 7),
        (2, 2),
        (8, 8),
        (4, 8),
        (LARGEST, 2),
        (2, LARGEST),
        (9, 3),
        (5, 5),
        (3, 2),
    ]
    return edges + random.Random(seed).sample(everything, count)


@pytest.mark.parametrize("function", GUARDED, ids=lambda function: function.__name__)
def test_other_sizes_equal_eager_or_are_refused(function: Callable[..., Any]) -> None:
    model = Function(function)
    compiled = ingot.compile(model, inputs=inputs_of())
    ran = [check(compiled, model, sizes, refusable=True) for sizes in pairs(40)]
    assert any(ran)
    assert not all(ran)


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
    assert caught.value.node == "slice_2"
    assert "test_sizes.py" in caught.value.source


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


def test_a_refusal_names_condition_sizes_and_line() -> None:
    compiled = ingot.compile(Function(branch_on_parity), inputs=inputs_of())
    with pytest.raises(ingot.UserError) as caught:
        compiled(torch.randn(7, 3), torch.randn(4, 3))
    assert caught.value.code == "INGOT-U312"
    assert "x.shape[0] % 2 == 0" in str(caught.value)
    assert "x.shape[0] is 7" in str(caught.value)
    assert "test_sizes.py" in caught.value.source
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
    assert "test_sizes.py" in caught.value.source


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


@pytest.mark.long
@pytest.mark.parametrize("name", POSITIONS)
def test_all_sizes(name: str) -> None:
    model = Function(POSITIONS[name])
    compiled = ingot.compile(model, inputs=inputs_of())
    ran = [check(compiled, model, sizes, refusable=True) for sizes in pairs(LARGEST * LARGEST - 10)]
    assert any(ran)
