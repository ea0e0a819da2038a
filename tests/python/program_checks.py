# SPDX-License-Identifier: Apache-2.0
"""Runs a random program by Ingot and by eager, and compares results, written arguments, buffers, and what shares memory."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ingot
import torch
from ingot.torch_backend import backend
from random_programs import Program, build_module
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

_CALLS = 2  # the second meets what the first wrote
_NOISY_RUNS = 6  # in pairs of opposite noise, so that a result on an edge falls to both sides
# dtype -> relative noise of each result, which an engine's other roundings must not exceed by much
_NOISE = {torch.float64: 1e-14, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_FLOOR = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


class UnsupportedProgramError(Exception):
    """Torch cannot capture the program, or an engine cannot be the whole of it where it has to."""


class DifferenceError(Exception):
    """Ingot and eager disagree."""


class Noise(TorchDispatchMode):
    """Multiplies what each operator computes by 1 + noise: shows which results hang on roundings."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed // 2)
        self.sign = 1 - 2 * (seed % 2)

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        schema = function._schema
        if schema.name in ("aten::_to_copy", "aten::copy_"):
            self.undefine(result, args[-1] if schema.name == "aten::copy_" else args[0])
        computes = all(value.alias_info is None for value in schema.returns)
        if computes or (schema.is_mutable and isinstance(result, torch.Tensor)):
            for value in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(value, torch.Tensor) and value.dtype in _NOISE and not _moves(function):
                    self.disturb(value)
        return result

    def undefine(self, value: torch.Tensor, source: torch.Tensor) -> None:
        """Integers made of NaN, infinities and floats that they cannot hold are any: C++ defines none."""
        if value.dtype not in _INTEGERS or not source.is_floating_point():
            return
        with torch.utils._python_dispatch._disable_current_modes():
            limit = 2.0**63 if value.dtype is torch.int64 else 2.0**31
            undefined = ~(source.double().abs() < limit)
            drawn = torch.randint(0, 8, value.shape, generator=self.generator).to(value.dtype)
            value.copy_(torch.where(undefined, drawn, value))

    def disturb(self, value: torch.Tensor) -> None:
        noise = torch.rand(value.shape, generator=self.generator, dtype=torch.float64) * 2 - 1
        factor = 1 + self.sign * noise * _NOISE[value.dtype]
        with torch.utils._python_dispatch._disable_current_modes():
            value.copy_(value.double() * factor)


_EXACT = (
    "clone", "cat", "stack", "index", "gather", "copy", "full", "ones", "zeros", "arange", "flip", "roll", "neg",
    "abs", "where", "repeat", "pad", "fill", "select", "slice", "relu", "floor", "ceil", "round", "trunc", "sign",
    "maximum", "minimum", "amax", "amin", "sort", "topk", "max", "min", "masked", "clamp", "tril", "triu",
    "embedding", "_to_copy", "lift", "empty", "scalar", "constant", "rot90", "put", "isnan", "detach", "alias",
)  # fmt: skip


_ADDS = ("index_add", "index_reduce", "scatter_add", "scatter_reduce")


def _moves(function: Any) -> bool:
    """Whether an operator rounds nothing, by its name."""
    own = function._schema.name.removeprefix("aten::")
    return own.startswith(_EXACT) and not own.startswith(_ADDS)


@dataclass
class Observed:
    """All that calls leave: results, arguments and buffers after each call, and pairs that share memory."""

    tensors: list[torch.Tensor]
    names: list[str]
    shared: list[set[tuple[str, str]]]


def observe(
    run: Callable[..., Any], module: nn.Module, program: Program, assignments: Sequence[int]
) -> Observed:
    observed = Observed([], [], [])
    for call, assignment in enumerate(assignments):
        given = program.inputs(assignment, call)
        with torch.no_grad():
            results = run(*given)
        seen = {f"result {k}": value for k, value in enumerate(results)}
        seen |= {leaf.name: value for leaf, value in zip(program.arguments, given, strict=True)}
        observed.shared.append(_shared(seen))
        seen |= dict(module.named_buffers())
        for name, value in seen.items():
            observed.names.append(f"{name} of call {call}")
            observed.tensors.append(value.detach().clone())
    return observed


def _shared(values: dict[str, torch.Tensor]) -> set[tuple[str, str]]:
    place = {name: value.untyped_storage().data_ptr() for name, value in values.items() if value.numel()}
    return {(a, b) for a in place for b in place if a < b and place[a] == place[b]}


def by_torch_compile(program: Program, module: nn.Module) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(module, backend=backend, dynamic=len(program.sizes) > 1)


def exported(program: Program, module: nn.Module) -> torch.export.ExportedProgram:
    shapes = {
        leaf.name: {k: torch.export.Dim.AUTO for k, size in enumerate(leaf.shape) if isinstance(size, str)}
        for leaf in program.arguments
    }
    dynamic = len(program.sizes) > 1
    try:
        with torch.no_grad():
            return torch.export.export(
                module, tuple(program.inputs(0)), dynamic_shapes=shapes if dynamic else None
            )
    except Exception as error:
        raise UnsupportedProgramError(f"torch.export: {type(error).__name__}") from error


def by_export(program: Program, module: nn.Module) -> Callable[..., Any]:
    source = exported(program, module)
    return _refusing(ingot.compile(source), source)


def by_archive(program: Program, module: nn.Module) -> Callable[..., Any]:
    source = exported(program, module)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        torch.export.save(source, path)
        return _refusing(ingot.build(path), source)


_OTHER_SIZES = ("INGOT-U303", "INGOT-U304", "INGOT-U305", "INGOT-U312")


def _refusing(compiled: Callable[..., Any], source: torch.export.ExportedProgram) -> Callable[..., Any]:
    """Torch specializes some sizes that were to be dynamic: what its own module then refuses too, nobody has to run."""

    def run(*given: torch.Tensor) -> Any:
        try:
            return compiled(*given)
        except ingot.UserError as error:
            if error.code == "INGOT-U306" and not all(value.is_contiguous() for value in given):
                raise UnsupportedProgramError("an engine writes into dense arguments only") from error
            if error.code not in _OTHER_SIZES or _runs(source, given):
                raise
            raise UnsupportedProgramError("torch.export: the program is not for all sizes") from error

    return run


def _runs(source: torch.export.ExportedProgram, given: Sequence[torch.Tensor]) -> bool:
    try:
        source.module()(*(value.clone() for value in given))
    except Exception:
        return False
    return True


WAYS: dict[str, Callable[[Program, nn.Module], Callable[..., Any]]] = {
    "torch.compile": by_torch_compile, "export": by_export, "pt2": by_archive,
}  # fmt: skip


def check(program: Program, way: str) -> None:
    """Raises DifferenceError, UnsupportedProgramError, or what Ingot raised and should not have."""
    module = build_module(program)
    assignments = [k % len(program.sizes) for k in range(max(_CALLS, len(program.sizes)))]
    ours = copy.deepcopy(module)
    eager = copy.deepcopy(module)
    expected = observe(eager, eager, program, assignments)
    try:
        noisy = [observe_noisy(module, program, assignments, seed) for seed in range(_NOISY_RUNS)]
    except Exception as error:
        raise UnsupportedProgramError("eager fails too, with other roundings") from error
    try:
        compiled = WAYS[way](program, ours)
    except ingot.UnsupportedError as error:
        if way != "pt2" or error.code == "INGOT-N523":
            raise
        raise UnsupportedProgramError(str(error)) from error
    except NotImplementedError as error:
        raise UnsupportedProgramError(f"torch does not capture it: {type(error).__name__}") from error
    buffers = ours if way == "torch.compile" else nn.Module()
    try:
        actual = observe(compiled, buffers, program, assignments)
    except torch._dynamo.exc.TorchDynamoException as error:
        if isinstance(error, ingot.Error) or torch_captures(program, module, assignments):
            raise
        raise UnsupportedProgramError(f"torch does not capture it: {type(error).__name__}") from error
    if way == "torch.compile" and actual.shared != expected.shared:
        raise DifferenceError(f"memory is shared otherwise: {actual.shared} for {expected.shared}")
    spread = {
        name: [run.tensors[run.names.index(name)] for run in noisy if name in run.names]
        for name in expected.names
    }
    for name, value in zip(actual.names, actual.tensors, strict=True):
        compare(name, value, expected.tensors[expected.names.index(name)], spread[name])


def torch_captures(program: Program, module: nn.Module, assignments: Sequence[int]) -> bool:
    """Whether torch.compile runs the program without Ingot, by the same way through AOT Autograd."""
    torch._dynamo.reset()
    own = copy.deepcopy(module)
    compiled = torch.compile(own, backend="aot_eager", dynamic=len(program.sizes) > 1)
    try:
        observe(compiled, own, program, assignments)
    except Exception:
        return False
    return True


def observe_noisy(module: nn.Module, program: Program, assignments: Sequence[int], seed: int) -> Observed:
    own = copy.deepcopy(module)

    def run(*given: torch.Tensor) -> Any:
        with Noise(seed):
            return own(*given)

    return observe(run, own, program, assignments)


def compare(name: str, actual: torch.Tensor, eager: torch.Tensor, noisy: Sequence[torch.Tensor]) -> None:
    """Elements that noise makes differ may differ by as much; where it makes other NaN, infinities or integers, by anything.

    So may sizes that noise makes other: those of torch.nonzero.
    """
    if any(other.shape != eager.shape for other in noisy):
        return
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
    if bool(wrong.any()):
        first = int(wrong.flatten().nonzero()[0])
        raise DifferenceError(f"{name}: {int(wrong.sum())} of {eager.numel()} elements differ, element {first} is "
                         f"{actual.flatten()[first].item()!r} for {eager.flatten()[first].item()!r}")  # fmt: skip
