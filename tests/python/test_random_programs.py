# SPDX-License-Identifier: Apache-2.0
"""Random modules against eager (random_programs.py): new ones for each commit, and in the long mode on from where the last run ended."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import random_programs
import torch
import torch.ao.quantization.fx._decomposed  # defines the operators
from program_checks import DifferenceError, check, compare, module_of
from program_noise import Noise
from program_runs import observe, observe_exact
from random_programs import Leaf, Program, Statement, build_module, draw, shrink

_SCRIPT = Path(__file__).with_name("run_random_programs.py")
_STATE = Path(__file__).parents[2] / "build" / "random_programs.json"
_SECONDS = 35
_LONG_COUNT = 2000


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
    done = subprocess.run([sys.executable, str(_SCRIPT), *arguments], capture_output=True, text=True)
    with capsys.disabled():
        print("\n" + done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_new_programs_of_this_commit(capsys: pytest.CaptureFixture[str]) -> None:
    _run(capsys, "--count", "400", "--seconds", str(_SECONDS))


@pytest.mark.long
def test_many_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Goes on in build/random_programs.json: seed 0, so that a machine that keeps the file meets each program once."""
    _run(capsys, "--seed", "0", "--count", str(_LONG_COUNT), "--state", str(_STATE))


def test_a_process_that_cannot_import_is_not_a_wrong_program(tmp_path: Path) -> None:
    """As when the package is installed anew while programs run."""
    script = shutil.copy(_SCRIPT, tmp_path)
    (tmp_path / "program_checks.py").write_text("raise ImportError('half of a package')")
    done = subprocess.run([sys.executable, script, "--count", "1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "wrong" not in done.stdout
    assert "no program was running when a child ended" in done.stderr
    assert "ImportError: half of a package" in done.stderr


def test_programs_are_the_same_everywhere() -> None:
    assert draw(4711).source() == draw(4711).source()
    assert len({draw(seed).source() for seed in range(20)}) == 20


def test_shrinking_keeps_what_fails() -> None:
    """The failure here is that a program has an exp whose operand is a sum."""
    statements = (
        Statement("v0 = x0 + 1", "v0", ("x0",)),
        Statement("v1 = torch.neg(v0)", "v1", ("v0",)),
        Statement("v2 = v0.sum()", "v2", ("v0",)),
        Statement("v3 = torch.exp(v2)", "v3", ("v2",)),
        Statement("v4 = v3 * v1", "v4", ("v3", "v1")),
    )
    program = Program(1, (Leaf("x0", "argument", (2, 3)),), statements, ("v4", "v3"))
    small = shrink(program, lambda candidate: "torch.exp(v2)" in candidate.source())
    assert [statement.result for statement in small.statements] == ["v0", "v2", "v3"]
    assert small.outputs == ("v3",)


def test_comparing_sees_differences_and_forgives_noise() -> None:
    eager = torch.tensor([1.0, -2.0, float("nan"), 0.0])
    noisy = [eager * 1.0001, eager * 0.9999]
    compare("equal", eager.clone(), eager, noisy)
    compare("as near as noise", eager * 1.0003, eager, noisy)
    for wrong in (
        eager * 1.1,
        eager.nan_to_num(3.0),
        torch.tensor([1.0, -2.0, float("nan"), 1.0]),
        eager.double(),
    ):
        with pytest.raises(DifferenceError):
            compare("wrong", wrong, eager, noisy)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x: torch.nn.functional.layer_norm(x, (4,)),
        lambda x: torch.nn.functional.group_norm(x, 1),
        lambda x: torch.nn.functional.instance_norm(x.unsqueeze(0)),
        lambda x: x.std(1),
    ],
)
def test_what_is_left_when_a_mean_is_subtracted_may_be_rounding(norm: Callable[..., torch.Tensor]) -> None:
    rows = torch.full((2, 4), 3.0, dtype=torch.float64)
    noisy = []
    for seed in range(2):
        with Noise(seed):
            noisy.append(norm(rows.clone()))
    compare("rounding", norm(rows) + 1e-15, norm(rows), noisy)
    with pytest.raises(DifferenceError):
        compare("more than rounding", norm(rows) + 1e-9, norm(rows), noisy)


def test_uniform_noise_moves_all_elements_to_one_side() -> None:
    """Of 64 elements on an edge, other noise leaves some on each side."""
    edges = torch.ones(64)
    for seed, is_uniform, sums in ((0, True, (0, 64)), (1, True, (0, 64)), (0, False, range(1, 64))):
        with Noise(seed, is_uniform):
            whole = (edges * 1.0).floor().sum()
        assert int(whole) in sums


_INTEGERS = torch.zeros(2, 3, dtype=torch.int64)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.to(torch.int32),
        lambda x: _INTEGERS.clone().copy_(x),
        lambda x: torch.slice_scatter(_INTEGERS, x),
        lambda x: torch.select_scatter(_INTEGERS, x[0], 0, 0),
        lambda x: torch.diagonal_scatter(_INTEGERS, x[0, :2]),
    ],
)
def test_floats_that_integers_cannot_hold_have_no_correct_result(write: Callable[..., object]) -> None:
    for value, is_undefined in ((7.5, False), (float("inf"), True), (float("nan"), True), (-1e30, True)):
        with Noise(0) as noise:
            write(torch.full((2, 3), value))
        assert noise.met_undefined == is_undefined, value


def test_inverses_of_nearly_singular_matrices_are_undefined() -> None:
    matrix = torch.eye(3)
    for smallest, is_undefined in ((1.0, False), (1e-3, False), (1e-6, True), (0.0, True)):
        matrix[2, 2] = smallest
        for function in (torch.linalg.inv_ex, lambda x: torch.linalg.solve_ex(x, torch.ones(3, 1))):
            with Noise(0) as noise:
                function(matrix)
            assert noise.met_undefined == is_undefined, smallest


def test_means_beside_variances_of_infinities_are_undefined() -> None:
    """Torch's are infinite if the infinity is the last element. So are Fourier transforms, whose terms are added in any order."""
    for function in (torch.var_mean, torch.std_mean, torch.fft.rfft):
        values = torch.ones(40)
        for where, is_undefined in ((None, False), (0, True), (39, True)):
            if where is not None:
                values[where] = float("inf")
            with Noise(0) as noise:
                function(values)
            assert noise.met_undefined == is_undefined


def test_modes_and_integers_of_nan_are_undefined() -> None:
    """Torch's mode of [NaN, 1, 2] is NaN, and that of [2, 1, NaN] is 1."""
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    for value, is_undefined in ((3.0, False), (float("inf"), False), (float("nan"), True)):
        for function in (torch.mode, lambda x: quantize(x, 0.1, 0, 0, 255, torch.uint8)):
            with Noise(0) as noise:
                function(torch.tensor([value, 1.0, 2.0]))
            assert noise.met_undefined == is_undefined, value


def test_places_of_infinities_are_defined() -> None:
    with Noise(0) as noise:
        torch.full((2, 3), float("inf")).argmax()
        torch.where(torch.full((2, 3), float("inf")) > 0, _INTEGERS, 1)
    assert not noise.met_undefined


def _given(*manners: str) -> list[tuple[torch.Tensor, dict[str, torch.Tensor]]]:
    """The arguments of three calls of a program that doubles the first one of two."""
    leaves = (Leaf("x0", "argument", (2, 3)), Leaf("x1", "argument", (2, 3)))
    program = Program(1, leaves, (Statement("v0 = x0 * 2", "v0", ("x0",)),), ("v0",), manners=manners)
    module, calls = build_module(program), []

    def run(x0: torch.Tensor, *others: torch.Tensor, **named: torch.Tensor) -> Any:
        calls.append((x0, named))
        return module(x0, *others, **named)

    observe(run, module, program, [0, 0, 0])
    return calls


def test_arguments_of_later_calls() -> None:
    first, second, _ = (x0 for x0, _ in _given())
    assert not torch.equal(first, second)
    first, second, third = (x0 for x0, _ in _given("one memory"))
    assert first is second is third
    first, second, third = (x0 for x0, _ in _given("fed back"))
    torch.testing.assert_close((second, third), (first * 2, first * 4))
    assert [list(named) for _, named in _given("keywords")] == [["x1"]] * 3


@pytest.mark.parametrize("way", ["torch.compile", "export", "pt2"])
def test_quantized_programs_have_layers(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(random_programs.MANNERS, "quantized", 1.1)
    program = next(
        p for p in map(draw, range(1, 200, 3)) if "F.linear" in p.source() or "F.conv2d" in p.source()
    )
    program = replace(program, manners=("quantized",))
    quantized = module_of(program)
    assert "dequantize" in quantized.code
    check(program, way)


def test_quantized_programs_are_known_exactly() -> None:
    """Their exact results excuse sums of halves, which eager rounds at each step."""
    program = Program(
        3,
        (
            Leaf("x0", "argument", (4, 16, 5), dtype="float16", fill="normal"),
            Leaf("x1", "argument", (4, 16), fill="normal"),
            Leaf("p0", "parameter", (5, 16), fill="normal"),
        ),
        (
            Statement("x0.index_add_(1, torch.zeros(16, dtype=torch.int64), x0.clone())", "", ("x0",)),
            Statement("v1 = F.linear(x1, self.p0)", "v1", ("x1",)),
        ),
        ("v1",),
        manners=("quantized",),
    )
    module = module_of(program)
    assert "dequantize" in module.code
    exact = observe_exact(module, program, [0])
    assert exact is not None
    expected = observe(copy.deepcopy(module), module, program, [0])
    for wide, value in zip(exact.tensors, expected.tensors, strict=True):
        assert wide.is_floating_point() == value.is_floating_point()
        torch.testing.assert_close(wide.double(), value.double(), rtol=0.02, atol=0.2)
