# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of integers and floats in programs: random expressions of two integers of the call, against Python's own values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from test_passed_numbers import assert_same, exported

X = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
CALLS = [(7, 3), (-7, 3), (7, -3), (-8, -3), (9, 4), (5, 2), (-6, 2), (1, 1), (0, 3), (0, -1), (2, 0), (0, 0)]
_INTEGERS = (
    "({i} + {i})", "({i} - {i})", "({i} * {i})", "({i} // {i})", "({i} % {i})", "abs({i})", "(-{i})", "round({f})", "math.floor({f})",
    "math.ceil({f})", "math.trunc({f})", "torch.sym_max({i}, {i})", "torch.sym_min({i}, {i})", "({i} << 2)", "({i} >> 1)", "({i} & {i})",
    "({i} | {i})", "({i} ** 2)", "({i} ** 3)",
)  # fmt: skip
# Constants whose products are exact: torch divides and rounds down where Python's // of floats is exact.
_FLOATS = (
    "({i} / {i})", "({f} + {i})", "({f} - {f})", "({i} * {f})", "({f} / {i})", "({i} * 0.5)", "(0.25 - {f})", "abs({f})", "(-{f})",
    "({f} // {i})", "({f} % {i})", "torch.sym_max({f}, {f})", "torch.sym_min({f}, {f})",
)  # fmt: skip
_BOOLS = ("({f} > {i})", "({f} <= {f})", "({i} < {f})", "({i} >= {i})", "({f} == {i})", "({i} != {f})")
_PATTERNS = {"i": _INTEGERS, "f": _FLOATS, "b": _BOOLS}


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    torch.compiler.reset()
    with torch.no_grad():
        yield


def expression(source: random.Random, kind: str, depth: int) -> str:
    if kind == "i" and (depth == 0 or source.random() < 0.2):
        return source.choice(("k", "n", "k", "n", "2", "3"))
    if kind == "f" and depth == 0:
        return source.choice(("(k * 0.5)", "(n * 1.5)", "(k / 4)"))
    pattern = source.choice(_PATTERNS[kind])
    while (place := pattern.find("{")) >= 0:
        operand = expression(source, pattern[place + 1], depth - 1)
        pattern = pattern[:place] + operand + pattern[place + 3 :]
    return pattern


def program_of(text: str, *, returns_it: bool = True) -> Callable[..., Any]:
    """The number scales a tensor; it may be a result itself, too."""
    results = f"(x * ({text}), {text})" if returns_it else f"x * ({text})"
    return eval(compile(f"lambda x, k, n: {results}", f"<{text}>", "eval"), {"math": math, "torch": torch})


def built(function: Callable, folder: Path) -> Callable:
    return ingot.build(exported(function, X, 7, 3))


def in_parts(function: Callable, folder: Path) -> Callable:
    return ingot.compile(exported(function, X, 7, 3), check_speed=False, min_block_size=1)


def saved(function: Callable, folder: Path) -> Callable:
    ingot.save(in_parts(function, folder), folder / "saved.pt2")
    return ingot.load(folder / "saved.pt2")


def just_in_time(function: Callable, folder: Path) -> Callable:
    return torch.compile(function, backend="ingot", dynamic=True)


def without_engines(function: Callable) -> Callable:
    """Torch's trace alone, which has a few results of its own (floats divided by 0), and rejects some shifts."""
    return torch.compile(function, backend="aot_eager", dynamic=True)


def outcome(run: Callable, *call: Any) -> Any:
    try:
        return run(*call)
    except Exception as error:  # noqa: BLE001: of any kind
        return error


def check(run: Callable, function: Callable, reference: Callable | None = None) -> int:
    """How many calls have Python's results; the others are errors in Python too, or violate a condition of the trace."""
    right = 0
    for call in CALLS:
        expected, actual = outcome(function, X, *call), outcome(run, X, *call)
        if isinstance(expected, Exception) != isinstance(actual, Exception) and reference is not None:
            expected = outcome(reference, X, *call)
        if isinstance(expected, Exception):
            assert isinstance(actual, Exception), f"{call}: {actual} instead of {expected!r}"
        elif isinstance(actual, Exception):
            assert "INGOT-U312] the program was traced for" in str(actual), (
                f"{call}: {actual!r} instead of {expected}"
            )
        else:
            assert_same(actual, expected)
            right += 1
    return right


WAYS = {"built": built, "in_parts": in_parts, "saved": saved}


def _check_text(text: str, way: str, folder: Path) -> Callable:
    function = program_of(text, returns_it=way in ("built", "in_parts"))  # torch saves no such results
    run = WAYS[way](function, folder)
    assert check(run, function) >= 3
    return run


def _check_seed(seed: int, way: str, folder: Path) -> None:
    """The first expression that is a number for the sizes that the export is of."""
    source = random.Random(seed)
    texts = (expression(source, "ifb"[seed % 3], 2) for _ in range(100))
    known = (text for text in texts if not isinstance(outcome(program_of(text), X, 7, 3), Exception))
    _check_text(next(known), way, folder)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(8))
def test_ahead_of_time(seed: int, way: str, tmp_path: Path) -> None:
    _check_seed(seed, way, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 208))
def test_more_ahead_of_time(seed: int, tmp_path: Path) -> None:
    _check_seed(seed, list(WAYS)[seed % len(WAYS)], tmp_path)


def _check_just_in_time(seed: int) -> None:
    source = random.Random(seed)
    function = program_of(expression(source, "ifb"[seed % 3], 2))
    assert check(just_in_time(function, Path()), function, without_engines(function)) >= 3


@pytest.mark.parametrize("seed", range(6))
def test_just_in_time(seed: int) -> None:
    _check_just_in_time(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 106))
def test_more_just_in_time(seed: int) -> None:
    _check_just_in_time(seed)


EACH = {
    "floor division of a float": "(k + 0.5) // n", "remainder of a float": "(k + 0.5) % n", "rounded": "round(k / n)",
    "floor": "math.floor(k / n)", "ceiling": "math.ceil(k / n)", "truncated": "math.trunc(k * 0.7)", "absolute": "abs(k)",
    "absolute float": "abs(k * 0.5)", "power": "k ** 3", "exponent": "2 ** n", "powers": "(k * 0.5) ** n", "shifted left": "k << n",
    "shifted right": "k >> n", "and": "k & n", "or": "k | n", "compared": "k * 0.5 > n", "equal": "k / 2 == n",
    "both": "(k * 0.5 > n) & (k > 1)", "either": "(k * 0.5 > n) | (k > 1)", "not": "torch.sym_not(k * 0.5 > n)",
    "of several": "math.floor(math.floor(k / n) * 0.7) + round(n * 1.5)",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EACH)
def test_each_operation(name: str, way: str, tmp_path: Path) -> None:
    run = _check_text(EACH[name], way, tmp_path)
    if way == "in_parts":
        report = ingot.report(run)
        assert len(run.engines) == 1, str(report)
        assert all("computes a number" in node.reason for node in report.fallbacks), str(report)


SAVED = (
    "remainder of a float",
    "truncated",
    "power",
    "exponent",
    "powers",
    "shifted left",
    "shifted right",
    "and",
    "or",
    "compared",
    "both",
)


@pytest.mark.parametrize("name", SAVED)
def test_files_of_torch(name: str, tmp_path: Path) -> None:
    """Those that torch saves: neither rounded floats nor their absolute values."""
    function = program_of(EACH[name], returns_it=False)
    torch.export.save(exported(function, X, 7, 3), tmp_path / "model.pt2")
    assert check(ingot.build(tmp_path / "model.pt2"), function) >= 3


def test_integers_of_bits_and_floats_keep_their_dtype(tmp_path: Path) -> None:
    """Products of integers and such numbers are integers; bools count as such."""

    def function(x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, ...]:
        y = (x * 10).long()
        return y * (k & n), y + (k / 2 > n), (x > 0) & (k / 2 > n), torch.where(x > 0, y, math.floor(k / 2))

    for way in WAYS.values():
        run = way(function, tmp_path)
        assert check(run, function) >= 3


BEYOND = {
    "power": ("k ** 5", 1 << 20), "exponent": ("2 ** k", 63), "shift": ("k << n", 1 << 61), "rounded": ("round(k * 1e10)", 1 << 40),
    "root of one": ("(k * 0.5) ** 2.5", -3),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_what_no_engine_computes_is_an_error(name: str) -> None:
    """Python's integers have any length, and its roots may be complex."""
    text, wrong = BEYOND[name]
    function = eval(f"lambda x, k, n: x * ({text})")
    engine = built(function, Path())
    torch.testing.assert_close(engine(X, 5, 2), function(X, 5, 2))
    with pytest.raises(ingot.UserError, match=r"INGOT-(U101|U31[23])"):
        engine(X, wrong, 3)
    torch.testing.assert_close(engine(X, 7, 3), function(X, 7, 3))


def test_decimal_digits_are_rejected_by_name() -> None:
    function = lambda x, k, n: x * round(k / n, 1)  # noqa: E731
    program = exported(function, X, 7, 3)
    with pytest.raises(ingot.UnsupportedError, match=r"INGOT-N520\] builtins.round: .*decimal digits"):
        ingot.build(program)
    run = ingot.compile(program)
    assert check(run, function) >= 8
    assert check(just_in_time(function, Path()), function) >= 8
