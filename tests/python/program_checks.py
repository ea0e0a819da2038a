# SPDX-License-Identifier: Apache-2.0
"""Runs a random program by Ingot and by eager, and compares results, written arguments, buffers, and what shares memory."""

from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ingot
import torch
from program_runs import (
    NOISY_RUNS,
    TORCH_WAYS,
    WAYS,
    Observed,
    UnsupportedProgramError,
    change_weights,
    exported,
    holder,
    observe,
    observe_exact,
    observe_noisy,
    records_another_type,
)
from random_programs import Program, build_module
from torch import nn

_CALLS = 2  # the second sees what the first wrote
_FLOOR = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


class DifferenceError(Exception):
    """Ingot and eager disagree."""


# Elsewhere results share no memory with arguments, and a program has the weights, integers and dtypes that were exported.
_TORCH_COMPILE = {"writes results", "one tensor", "autocast", "counts", "new weights"}
# What a way of running has no place for: files are whole engines, and torch saves and traces neither named tuples nor keywords.
_NOT_IN: dict[str, set[str]] = {"pt2": {"named", "parts"}, "trace": {"named", "keywords", "parts"}}
# Operators that torch runs: each has neighbours of many kinds.
_TORCH_PARTS = [
    "aten.add",
    "aten.mul",
    "aten.sum",
    "aten.relu",
    "aten.view",
    "aten.where",
    "aten.copy_",
    "aten.linear",
    "aten.exp",
]
# What torch.export cannot trace; programs that run in torch in part, and change tensors, saved as TorchScript.
_OF_TRACES = ("INGOT-N008", "INGOT-N002")
# Options of builds by the manner of a program.
_OPTIONS: dict[str, dict[str, Any]] = {
    "level 0": {"optimization_level": 0},
    "level 1": {"optimization_level": 1},
    "level 2": {"optimization_level": 2},
    "strict": {"numerics": "strict"},
    "x86-64-v3": {"cpu": "x86-64-v3"},
}


def check(program: Program, way: str) -> None:
    """Raises DifferenceError, UnsupportedProgramError, or what Ingot raised and should not have."""
    program = replace(program, manners=manners_for(program, way))
    module = module_of(program)
    assignments = [k % len(program.sizes) for k in range(max(_CALLS, len(program.sizes)))]
    eager = copy.deepcopy(module)
    try:
        expected = observe(eager, eager, program, assignments)
        noisy = [observe_noisy(module, program, assignments, seed) for seed in range(NOISY_RUNS)]
    except Exception as error:
        raise UnsupportedProgramError(
            "eager fails for some of the arguments, or with other roundings"
        ) from error
    try:
        actual = run_by_ingot(program, way, module, assignments)
        compare_all(actual, expected, noisy)
    except UnsupportedProgramError:
        raise
    except Exception as error:
        reason = excuse(program, way, module, assignments, expected, noisy)
        if reason:
            raise UnsupportedProgramError(reason) from error
        if not isinstance(error, DifferenceError):
            raise
        compare_all(actual, expected, noisy, observe_exact(module, program, assignments))
    if actual.others != expected.others:
        raise DifferenceError(f"results have the tree {actual.others} for {expected.others}")
    if way == "torch.compile" and actual.shared != expected.shared:
        raise DifferenceError(f"memory is shared otherwise: {actual.shared} for {expected.shared}")


def manners_for(program: Program, way: str) -> tuple[str, ...]:
    """Those that this way of running has. Arguments share memory under torch.compile alone, and only floats are quantized."""
    left_out = set(_NOT_IN.get(way, ()))
    if way != "torch.compile":
        left_out |= _TORCH_COMPILE
    if way == "export" and "saved" in program.manners:
        left_out.add("named")  # such files have tuples
    if "quantized" in program.manners:
        left_out |= {"named", "structured", "autocast", "counts", "new weights", "keywords"}
    names = (
        "fed copies" if name == "fed back" and way != "torch.compile" else name for name in program.manners
    )
    return tuple(name for name in names if name not in left_out)


def module_of(program: Program) -> nn.Module:
    module = build_module(program)
    if "quantized" not in program.manners or len(program.sizes) > 1:
        return module
    if not exports(program, module):
        raise UnsupportedProgramError("torch.export fails before ingot.quantize")
    try:
        with torch.no_grad():
            return ingot.quantize(
                module, [tuple(program.inputs(0)), tuple(program.inputs(0, 1))], method="minmax"
            )
    except ingot.UserError:  # such as that there is nothing to quantize
        return module


def exports(program: Program, module: nn.Module) -> bool:
    try:
        exported(program, copy.deepcopy(module))
    except UnsupportedProgramError:
        return False
    return True


def run_by_ingot(program: Program, way: str, module: nn.Module, assignments: Sequence[int]) -> Observed:
    ours = copy.deepcopy(module)
    options = {name: value for manner in program.manners for name, value in _OPTIONS.get(manner, {}).items()}
    if "parts" in program.manners:
        options["torch_executed_ops"] = random.Random(program.seed).sample(_TORCH_PARTS, 3)
    with tempfile.TemporaryDirectory() as folder:
        if "cached" not in program.manners:
            return _run(program, way, ours, assignments, **options)
        options |= {"engine_cache_dir": folder, "cache_built_engines": True, "reuse_cached_engines": True}
        other = copy.deepcopy(module)
        change_weights(other)
        _run(program, way, other, assignments, **options)
        return _run(program, way, ours, assignments, **options)


def _run(program: Program, way: str, ours: nn.Module, assignments: Sequence[int], **options: Any) -> Observed:
    try:
        compiled = WAYS[way](program, ours, **options)
    except ingot.UnsupportedError as error:
        is_known = error.code in _OF_TRACES if way == "trace" else way == "pt2" and error.code != "INGOT-N523"
        if not is_known:
            raise
        raise UnsupportedProgramError(str(error)) from error
    return observe(compiled, holder(way, ours), program, assignments)


def compare_all(
    actual: Observed, expected: Observed, noisy: Sequence[Observed], exact: Observed | None = None
) -> None:
    for name, value in zip(actual.names, actual.tensors, strict=True):
        spread = [_of(run, name) for run in noisy]
        compare(name, value, _of(expected, name), spread, _of(exact, name) if exact is not None else None)


def _of(observed: Observed, name: str) -> torch.Tensor:
    return observed.tensors[observed.names.index(name)]


def excuse(
    program: Program, way: str, module: nn.Module, assignments: Sequence[int], expected: Observed, noisy: Sequence[Observed]
) -> str:  # fmt: skip
    """Why a program has no correct result, "" if it has: undefined in C++, or wrong in torch itself."""
    if any(run.met_undefined for run in noisy):
        return (
            "a float that an integer cannot hold, the sign or mode of NaN, GELU of infinity, an element written twice, "
            "or a product or sum whose order decides whether it overflows or vanishes"
        )
    for capture in TORCH_WAYS[way]:
        own = copy.deepcopy(module)
        try:
            alone = capture(program, own)
            compare_all(observe(alone, holder(way, own), program, assignments), expected, noisy)
        except DifferenceError:
            return "torch alone, without Ingot, differs from eager"
        except Exception as error:
            return f"torch alone, without Ingot, fails: {type(error).__name__}"
    if way != "trace" and records_another_type(program, module):
        return "torch exported a result with another dtype or rank than it computes"
    return ""


def compare(
    name: str,
    actual: torch.Tensor,
    eager: torch.Tensor,
    noisy: Sequence[torch.Tensor],
    exact: torch.Tensor | None = None,
) -> None:
    """Elements that noise makes differ may differ by as much; where it makes other NaN, infinities or integers, by anything.

    So may sizes that noise makes other: those of torch.nonzero. Elements may be nearer to `exact` than eager's, and where eager loses
    them only NaN is wrong.
    """
    if any(other.shape != eager.shape for other in noisy):
        return
    if actual.shape != eager.shape and exact is not None and exact.shape == actual.shape:
        eager, noisy = exact.to(eager.dtype), []  # eager counts elements that only its roundings made
    if actual.dtype != eager.dtype or actual.shape != eager.shape:
        raise DifferenceError(
            f"{name} is {actual.dtype}{list(actual.shape)} for {eager.dtype}{list(eager.shape)}"
        )
    if eager.numel() == 0:
        return
    same = (actual == eager) | (actual.isnan() & eager.isnan())
    if not eager.is_floating_point():
        steady = torch.ones_like(same)
        for other in noisy:
            steady &= other == eager
        wrong = ~same & steady
        if exact is not None and exact.shape == eager.shape:
            wrong &= (
                actual.double() != exact.double()
            )  # eager rounds on its way, such as cumulative products to 0
    else:
        reference = eager.double()
        others = torch.stack([reference, *(other.double() for other in noisy)])
        steady = (torch.isfinite(others).all(0)) | (others.isnan().all(0)) | ((others == reference).all(0))
        finite = torch.isfinite(reference) & steady
        scale = reference[finite].square().mean().sqrt() if bool(finite.any()) else torch.tensor(0.0)
        spread = (others - reference).abs().amax(0)
        floor = _FLOOR[eager.dtype]
        smallest = torch.finfo(eager.dtype).smallest_normal * torch.finfo(eager.dtype).eps
        allowed = (
            20 * spread
            + floor * reference.abs()
            + 0.1 * floor * torch.nan_to_num(scale, 0, 0, 0)
            + 4 * smallest
        )
        error = (actual.double() - reference).abs()
        wrong = ~same & steady & ~(error <= allowed)
        if exact is not None and exact.shape == eager.shape:
            truth = exact.double()
            off = torch.where(torch.isfinite(reference), (reference - truth).abs(), 0.0) + floor * truth.abs()
            wrong &= ~(
                actual.double() == truth
            )  # infinite too: hardware takes subnormal bf16 factors of infinity for 0
            wrong &= ~(torch.isfinite(truth) & ((actual.double() - truth).abs() <= off))
            # What eager lost (an overflow on the way) is some number of ours too, not NaN for a number.
            lost = ~((reference - truth).abs() <= 0.1 * truth.abs() + 0.01) & torch.isfinite(truth)
            wrong &= ~(lost & (torch.isfinite(actual.double()) | ~torch.isfinite(reference)))
    if bool(wrong.any()):
        first = int(wrong.flatten().nonzero()[0])
        raise DifferenceError(f"{name}: {int(wrong.sum())} of {eager.numel()} elements differ, element {first} is "
                         f"{actual.flatten()[first].item()!r} for {eager.flatten()[first].item()!r}")  # fmt: skip
