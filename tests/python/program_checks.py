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
from ingot.dynamo import functional
from ingot.torch_backend import backend
from program_noise import Noise
from random_programs import Program, build_module
from torch import nn

_CALLS = 2  # the second sees what the first wrote
_NOISY_RUNS = 8  # in pairs of opposite noise, so that a result on an edge falls to both sides
_UNIFORM_RUNS = 2  # the last of these
_FLOOR = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


class UnsupportedProgramError(Exception):
    """Torch cannot capture the program, or an engine cannot be the whole of it where it has to."""


class DifferenceError(Exception):
    """Ingot and eager disagree."""


@dataclass
class Observed:
    """All that calls leave: results, arguments and buffers after each call, and pairs that share memory."""

    tensors: list[torch.Tensor]
    names: list[str]
    shared: list[set[tuple[str, str]]]
    met_undefined: bool = False


def observe(
    run: Callable[..., Any],
    module: nn.Module,
    program: Program,
    assignments: Sequence[int],
    prepare: Callable[[torch.Tensor], torch.Tensor] = lambda value: value,
) -> Observed:
    observed = Observed([], [], [])
    for call, assignment in enumerate(assignments):
        given = [prepare(value) for value in program.inputs(assignment, call)]
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
    return _refusing(ingot.compile(source), source, lambda: exported(program, module))


def by_archive(program: Program, module: nn.Module) -> Callable[..., Any]:
    source = exported(program, module)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        torch.export.save(source, path)
        return _refusing(ingot.build(path), source, lambda: exported(program, module))


_OTHER_SIZES = ("INGOT-U303", "INGOT-U304", "INGOT-U305", "INGOT-U312")


def _refusing(
    compiled: Callable[..., Any],
    source: torch.export.ExportedProgram,
    export_again: Callable[[], torch.export.ExportedProgram],
) -> Callable[..., Any]:
    """Torch specializes some sizes that were to be dynamic: what its own module then rejects too, nobody has to run."""

    def run(*given: torch.Tensor) -> Any:
        try:
            return compiled(*given)
        except ingot.UserError as error:
            if error.code == "INGOT-U306" and not all(value.is_contiguous() for value in given):
                raise UnsupportedProgramError("an engine writes into dense arguments only") from error
            is_constant = error.code == "INGOT-U303" and _declares_others(functional(export_again()), given)
            if not is_constant and (error.code not in _OTHER_SIZES or _runs(source, given)):
                raise
            raise UnsupportedProgramError("torch.export: the program is not for all sizes") from error

    return run


def _declares_others(source: torch.export.ExportedProgram, given: Sequence[torch.Tensor]) -> bool:
    """Whether torch recorded other constant sizes, as it does for arguments whose readers have gone, and does not check them.

    `source` is a program that Ingot never saw: nothing that Ingot asked of it fixed a size.
    """
    nodes = {node.name: node for node in source.graph.nodes}
    recorded = [nodes[name].meta["val"].shape for name in source.graph_signature.user_inputs]
    found = [value.shape for value in given]
    return any(
        str(a).isdecimal() and int(str(a)) != b  # torch's symbols may turn out constant
        for shapes in zip(recorded, found, strict=True)
        for a, b in zip(*shapes, strict=True)
    )


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
    eager = copy.deepcopy(module)
    try:
        expected = observe(eager, eager, program, assignments)
        noisy = [observe_noisy(module, program, assignments, seed) for seed in range(_NOISY_RUNS)]
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
    if way == "torch.compile" and actual.shared != expected.shared:
        raise DifferenceError(f"memory is shared otherwise: {actual.shared} for {expected.shared}")


def run_by_ingot(program: Program, way: str, module: nn.Module, assignments: Sequence[int]) -> Observed:
    ours = copy.deepcopy(module)
    try:
        compiled = WAYS[way](program, ours)
    except ingot.UnsupportedError as error:
        if way != "pt2" or error.code == "INGOT-N523":
            raise
        raise UnsupportedProgramError(str(error)) from error
    return observe(compiled, _holder(way, ours), program, assignments)


def _holder(way: str, module: nn.Module) -> nn.Module:
    """Whose buffers calls change: those of the module itself, or of a copy that nobody sees."""
    return module if way == "torch.compile" else nn.Module()


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
            "a float that an integer cannot hold, the sign of NaN, GELU of infinity, an element written twice, "
            "or a product or sum whose order decides whether it overflows or vanishes"
        )
    for capture in TORCH_WAYS[way]:
        own = copy.deepcopy(module)
        try:
            alone = capture(program, own)
            compare_all(observe(alone, _holder(way, own), program, assignments), expected, noisy)
        except DifferenceError:
            return "torch alone, without Ingot, differs from eager"
        except Exception as error:
            return f"torch alone, without Ingot, fails: {type(error).__name__}"
    return ""


def _by_aot(program: Program, module: nn.Module) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(module, backend="aot_eager", dynamic=len(program.sizes) > 1)


def _by_functional_export(program: Program, module: nn.Module) -> Callable[..., Any]:
    return exported(program, module).run_decompositions({}).module()


TORCH_WAYS: dict[str, Sequence[Callable[[Program, nn.Module], Callable[..., Any]]]] = {
    "torch.compile": (_by_aot,),
    "export": (lambda program, module: exported(program, module).module(), _by_functional_export),
    "pt2": (lambda program, module: exported(program, module).module(),),
}


def observe_noisy(module: nn.Module, program: Program, assignments: Sequence[int], seed: int) -> Observed:
    own = copy.deepcopy(module)
    noises = []

    def run(*given: torch.Tensor) -> Any:
        with Noise(seed, is_uniform=seed >= _NOISY_RUNS - _UNIFORM_RUNS) as noise:
            noises.append(noise)
            return own(*given)

    observed = observe(run, own, program, assignments)
    observed.met_undefined = any(noise.met_undefined for noise in noises)
    return observed


def observe_exact(module: nn.Module, program: Program, assignments: Sequence[int]) -> Observed | None:
    """In double precision; None if the program's dtypes do not allow that."""
    own = copy.deepcopy(module).double()

    def double(value: torch.Tensor) -> torch.Tensor:
        return value.double() if value.is_floating_point() else value

    def run(*given: torch.Tensor) -> Any:
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # of the tensors that the program itself makes
        try:
            return own(*given)
        finally:
            torch.set_default_dtype(usual)

    try:
        return observe(run, own, program, assignments, double)
    except Exception:
        return None


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
