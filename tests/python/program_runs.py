# SPDX-License-Identifier: Apache-2.0
"""Ways to run a random program, by Ingot and by torch alone, and what is observed of them."""

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
from ingot.fronts import FRONTS
from ingot.torch_backend import backend
from program_noise import Noise
from random_programs import Program
from torch import nn
from torch.overrides import TorchFunctionMode

NOISY_RUNS = 8  # in pairs of opposite noise, so that a result on an edge falls to both sides
_UNIFORM_RUNS = 2  # the last of these


class UnsupportedProgramError(Exception):
    """Torch cannot capture the program, or an engine cannot be the whole of it where it has to."""


@dataclass
class Observed:
    """All that calls leave: results, arguments and buffers after each call, and pairs that share memory."""

    tensors: list[torch.Tensor]
    names: list[str]
    shared: list[set[tuple[str, str]]]
    others: list[tuple[Any, ...]]  # the tree of the results per call, and results that are not tensors
    met_undefined: bool = False


def observe(
    run: Callable[..., Any],
    module: nn.Module,
    program: Program,
    assignments: Sequence[int],
    prepare: Callable[[torch.Tensor], torch.Tensor] = lambda value: value,
) -> Observed:
    observed = Observed([], [], [], [])
    given: list[torch.Tensor] = []
    leaves: list[Any] = []
    for call, assignment in enumerate(assignments):
        drawn = program.inputs(assignment, call)
        prepared = {id(value): prepare(value) for value in drawn}
        given = _continued(program, [prepared[id(value)] for value in drawn], given, leaves)
        autocast = torch.autocast("cpu", torch.bfloat16, enabled="autocast" in program.manners)
        if call == len(assignments) - 1 and "new weights" in program.manners:
            change_weights(module)
        torch.manual_seed(call)
        with torch.no_grad(), autocast:
            positional, named = program.passed(given)
            results = run(*positional, **named, **program.counts(call))
        leaves, tree = torch.utils._pytree.tree_flatten(results)
        others = [value for value in leaves if not isinstance(value, torch.Tensor)]
        observed.others.append((str(tree), others))
        leaves = [value for value in leaves if isinstance(value, torch.Tensor)]
        seen = {f"result {k}": value for k, value in enumerate(leaves)}
        seen |= {leaf.name: value for leaf, value in zip(program.arguments, given, strict=True)}
        observed.shared.append(_shared(seen))
        seen |= dict(module.named_buffers())
        for name, value in seen.items():
            observed.names.append(f"{name} of call {call}")
            observed.tensors.append(value.detach().clone())
        if "writes results" in program.manners:
            _write(leaves)
    return observed


def _continued(
    program: Program, drawn: list[torch.Tensor], given: list[torch.Tensor], results: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The arguments of a call: those that were drawn for it, or results or arguments of the call before, if they have these types."""
    left = list(results) if {"fed back", "fed copies"} & {*program.manners} else []
    own = []
    for k, value in enumerate(drawn):
        alike = [other for other in left if (other.shape, other.dtype) == (value.shape, value.dtype)]
        if alike:
            left = [other for other in left if other is not alike[0]]
            own.append(alike[0] if "fed back" in program.manners else alike[0].clone())
        elif "one memory" in program.manners and given and given[k].shape == value.shape:
            own.append(given[k].copy_(value))
        else:
            own.append(value)
    return own


def change_weights(module: nn.Module) -> None:
    with torch.no_grad():
        for value in module.parameters():
            value.mul_(0.5)


def _write(results: Sequence[torch.Tensor]) -> None:
    with torch.no_grad():
        for value in results:
            if value.is_contiguous():  # not elements that share memory
                value.fill_(3)


def _shared(values: dict[str, torch.Tensor]) -> set[tuple[str, str]]:
    place = {name: value.untyped_storage().data_ptr() for name, value in values.items() if value.numel()}
    return {(a, b) for a in place for b in place if a < b and place[a] == place[b]}


def by_torch_compile(program: Program, module: nn.Module, **options: Any) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(module, backend=backend, dynamic=len(program.sizes) > 1, options=options)


def exported(program: Program, module: nn.Module) -> torch.export.ExportedProgram:
    shapes = {
        leaf.name: {k: torch.export.Dim.AUTO for k, size in enumerate(leaf.shape) if isinstance(size, str)}
        for leaf in program.arguments
    }
    dynamic = len(program.sizes) > 1
    try:
        with torch.no_grad():
            positional, named = program.passed(program.inputs(0))
            return torch.export.export(module, positional, named, dynamic_shapes=shapes if dynamic else None)
    except Exception as error:
        raise UnsupportedProgramError(f"torch.export: {type(error).__name__}") from error


def by_export(program: Program, module: nn.Module, **options: Any) -> Callable[..., Any]:
    source = exported(program, module)
    compiled = ingot.compile(source, **options)
    if "saved" in program.manners:
        with tempfile.TemporaryDirectory() as folder:
            ingot.save(compiled, os.path.join(folder, "compiled.pt2"))
            compiled = ingot.load(os.path.join(folder, "compiled.pt2"))
    return _refusing(compiled, source, lambda: exported(program, module))


def by_archive(program: Program, module: nn.Module, **options: Any) -> Callable[..., Any]:
    source = exported(program, module)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.pt2")
        torch.export.save(source, path)
        engine = ingot.build(path, **options)
        if "saved" in program.manners:
            engine = ingot.Engine.from_bytes(engine.to_bytes())
        return _refusing(engine, source, lambda: exported(program, module))


def by_trace(program: Program, module: nn.Module, **options: Any) -> Callable[..., Any]:
    traced = traced_by_torch(program, module)
    compiled = ingot.ts.compile(traced, inputs=program.inputs(0), **options)
    if "saved" in program.manners:
        with tempfile.TemporaryDirectory() as folder:
            ingot.save(compiled, os.path.join(folder, "compiled.ts"), output_format="torchscript")
            compiled = ingot.load(os.path.join(folder, "compiled.ts"))

    def run(*given: torch.Tensor) -> Any:
        try:
            return compiled(*given)
        except (ingot.UserError, RuntimeError) as error:  # of TorchScript, if the model was saved
            _excuse_strides(error, given)
            _excuse_export(error, traced, program, given)
            raise

    return run


def traced_by_torch(program: Program, module: nn.Module) -> Any:
    """Sizes become constants, and so do branches and integers."""
    if len(program.sizes) > 1:
        raise UnsupportedProgramError("torch.jit.trace is for one size")
    try:
        with torch.no_grad():
            return torch.jit.trace(module, tuple(program.inputs(0)), check_trace=False, strict=False)
    except Exception as error:
        raise UnsupportedProgramError(f"torch.jit.trace: {type(error).__name__}") from error


def _excuse_export(error: Exception, traced: Any, program: Program, given: Sequence[torch.Tensor]) -> None:
    """Ingot exports traces, which decides what sizes from data equal: torch alone then rejects the others, too."""
    is_of_sizes = any(code in str(error) for code in ("INGOT-U312", "INGOT-U313"))
    if is_of_sizes and not _runs(ingot.dynamo.trace(FRONTS["ts"](traced), program.inputs(0)), given, {}):
        raise UnsupportedProgramError("torch.export: the trace is not for all sizes from data") from error


_OTHER_SIZES = ("INGOT-U303", "INGOT-U304", "INGOT-U305", "INGOT-U312")


def _refusing(
    compiled: Callable[..., Any],
    source: torch.export.ExportedProgram,
    export_again: Callable[[], torch.export.ExportedProgram],
) -> Callable[..., Any]:
    """Torch specializes some sizes that were to be dynamic: what its own module then rejects too, nobody has to run."""

    def run(*given: torch.Tensor, **named: Any) -> Any:
        try:
            return compiled(*given, **named)
        except ingot.UserError as error:
            in_order = (*given, *reversed(named.values()))  # Program.passed
            _excuse_strides(error, in_order)
            own = functional(export_again())
            is_constant = error.code == "INGOT-U303" and _declares_others(own, in_order)
            if not is_constant and (error.code not in _OTHER_SIZES or _runs(source, given, named)):
                raise
            raise UnsupportedProgramError("torch.export: the program is not for all sizes") from error

    return run


def _excuse_strides(error: Exception, given: Sequence[torch.Tensor]) -> None:
    if "INGOT-U306" in str(error) and not all(value.is_contiguous() for value in given):
        raise UnsupportedProgramError("an engine writes into dense arguments only") from error


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


def _runs(source: torch.export.ExportedProgram, given: Sequence[torch.Tensor], named: dict[str, Any]) -> bool:
    try:
        copies = {name: value.clone() for name, value in named.items()}
        source.module()(*(value.clone() for value in given), **copies)
    except Exception:
        return False
    return True


WAYS: dict[str, Callable[..., Callable[..., Any]]] = {
    "torch.compile": by_torch_compile, "export": by_export, "pt2": by_archive, "trace": by_trace,
}  # fmt: skip


def _by_aot(program: Program, module: nn.Module) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(module, backend="aot_eager", dynamic=len(program.sizes) > 1)


def _by_functional_export(program: Program, module: nn.Module) -> Callable[..., Any]:
    return exported(program, module).run_decompositions({}).module()


TORCH_WAYS: dict[str, Sequence[Callable[[Program, nn.Module], Callable[..., Any]]]] = {
    "torch.compile": (_by_aot,),
    "export": (lambda program, module: exported(program, module).module(), _by_functional_export),
    "pt2": (lambda program, module: exported(program, module).module(),),
    "trace": (traced_by_torch,),
}


def observe_noisy(module: nn.Module, program: Program, assignments: Sequence[int], seed: int) -> Observed:
    own = copy.deepcopy(module)
    noises = []

    def run(*given: torch.Tensor, **counts: int) -> Any:
        with Noise(seed, is_uniform=seed >= NOISY_RUNS - _UNIFORM_RUNS) as noise:
            noises.append(noise)
            return own(*given, **counts)

    observed = observe(run, own, program, assignments)
    observed.met_undefined = any(noise.met_undefined for noise in noises)
    return observed


def observe_exact(module: nn.Module, program: Program, assignments: Sequence[int]) -> Observed | None:
    """In double precision; None if the program's dtypes do not allow that."""
    own = _quantizing_f32(copy.deepcopy(module).double())

    def double(value: torch.Tensor) -> torch.Tensor:
        return value.double() if value.is_floating_point() else value

    def run(*given: torch.Tensor, **counts: int) -> Any:
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # of the tensors that the program itself makes
        try:
            with _FakeQuantizingF32():
                return own(*given, **counts)
        finally:
            torch.set_default_dtype(usual)

    try:
        return observe(run, own, program, assignments, double)
    except Exception:
        return None


class _FakeQuantizingF32(TorchFunctionMode):
    """torch.fake_quantize_per_channel_affine and its like take f32 alone."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if not getattr(function, "__name__", "").startswith("fake_quantize_per"):
            return function(*args, **(kwargs or {}))
        narrow = (
            each.float() if isinstance(each, torch.Tensor) and each.is_floating_point() else each
            for each in args
        )  # fmt: skip
        return function(*narrow, **(kwargs or {})).double()


def _quantizing_f32(module: nn.Module) -> nn.Module:
    """A quantized graph in double precision: its quantize operators take f32 alone, and their counterparts return it."""
    if not isinstance(module, torch.fx.GraphModule):
        return module
    convert = torch.ops.aten.to.dtype
    for node in [each for each in module.graph.nodes if each.op == "call_function"]:
        name = str(node.target)
        if name.startswith("quantized_decomposed.quantize"):
            with module.graph.inserting_before(node):
                narrow = module.graph.call_function(convert, (node.args[0], torch.float32))
            node.args = (narrow, *node.args[1:])
        elif name.startswith("quantized_decomposed.dequantize"):
            with module.graph.inserting_after(node):
                wide = module.graph.call_function(convert, (node, torch.float64))
            node.replace_all_uses_with(wide, delete_user_cb=lambda user, wide=wide: user is not wide)
    module.recompile()
    return module


def records_another_type(program: Program, module: nn.Module) -> bool:
    """Whether torch exported a result with a dtype or rank that it does not compute: its rules have mistakes of their own, and
    `squeeze` keeps dims that follow from data, which may have one element."""
    try:
        source = exported(program, copy.deepcopy(module)).module()
    except UnsupportedProgramError:
        return False

    class Comparing(torch.fx.Interpreter):
        differs = False

        def run_node(self, node: torch.fx.Node) -> Any:
            result, recorded = super().run_node(node), node.meta.get("val")
            if isinstance(result, torch.Tensor) and isinstance(recorded, torch.Tensor):
                self.differs |= (result.dtype, result.dim()) != (recorded.dtype, recorded.dim())
            return result

    comparing = Comparing(source)
    with torch.no_grad():
        positional, named = program.passed(program.inputs(0))
        comparing.run(*positional, *named.values())
    return comparing.differs


def holder(way: str, module: nn.Module) -> nn.Module:
    """Whose buffers calls change: those of the module itself, or of a copy that nobody sees."""
    return module if way == "torch.compile" else nn.Module()
