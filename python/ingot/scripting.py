# SPDX-License-Identifier: Apache-2.0
"""Compiled modules as TorchScript: a module whose forward is one call of `ingot::run`, or of `ingot::run_program`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree

from ingot import compat, run_op
from ingot.errors import UnsupportedError
from ingot.module import CompiledModule
from ingot.program_signature import positional_names
from ingot.slots import signature_of, tensor_positions


class Scripted(torch.nn.Module):
    """Takes the arguments that have tensors; the build fixed all others."""

    def __init__(self, module: CompiledModule, program: Callable[[], bytes]) -> None:
        """program: the bytes of the module's .pt2."""
        super().__init__()
        args, kwargs = module.program.example_inputs
        self.count = len(args)
        self.values = dict(
            zip(
                [*positional_names(module.program, len(args)), *kwargs],
                [*args, *kwargs.values()],
                strict=True,
            )
        )
        self.names = [name for name, value in self.values.items() if _tensors(value)]
        self.is_whole = module.compiled.graph is None
        engine = module.compiled.engines[0] if self.is_whole else None
        content = engine.save_memory() if engine is not None else program()
        self.register_buffer("content", torch.frombuffer(bytearray(content), dtype=torch.uint8))
        if engine is not None:
            self.meta_text = run_op.meta_of(engine)
            self.positions = tensor_positions(signature_of(engine).inputs)
            self.rebuild = module.engine.rebuild
        else:
            leaves, structure = _pytree.tree_flatten(module(*args, **kwargs))
            self.rebuild = _Rebuild(leaves, structure)
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.names]

        def forward(*given: Any) -> Any:
            return self.run({**self.values, **dict(zip(self.names, given, strict=True))})

        forward.__signature__ = inspect.Signature(parameters)
        self.forward = forward

    def call_model(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call with the model's own arguments; those without tensors are as the build fixed them."""
        given = dict(zip(self.values, args, strict=False)) | kwargs
        return self.run({name: given.get(name, value) for name, value in self.values.items()})

    def run(self, values: dict[str, Any]) -> Any:
        leaves = _pytree.tree_leaves(list(values.values()))
        if self.is_whole:
            inputs = [leaves[position] for position in self.positions]
            return self.rebuild(torch.ops.ingot.run(inputs, self.content, self.meta_text))
        return self.rebuild(torch.ops.ingot.run_program(_tensors(leaves), self.content))


class _Rebuild:
    """The structure of a result; what is not a tensor in it is the same at each call."""

    def __init__(self, leaves: list[Any], structure: Any) -> None:
        self._leaves = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]
        self._structure = structure

    def __call__(self, tensors: list[torch.Tensor]) -> Any:
        left = iter(tensors)
        return _pytree.tree_unflatten(
            [next(left) if leaf is None else leaf[0] for leaf in self._leaves], self._structure
        )


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def scripted(module: CompiledModule, program: Callable[[], bytes]) -> Scripted:
    """What torch.jit.trace can record. UnsupportedError INGOT-N009 for numbers that may differ per call."""
    conditions = module.compiled.conditions
    if conditions is not None and conditions.numbers:
        names = conditions.number_names
        are = "is an integer" if len(names) == 1 else "are integers"
        raise UnsupportedError(
            f"the arguments of a TorchScript file are tensors, and {', '.join(names)} {are} that calls choose",
            code="INGOT-N009",
            advice='save the module with output_format="exported_program", or build it with a fixed value',
        )
    return Scripted(module, program)


def as_script(module: CompiledModule, program: Callable[[], bytes]) -> torch.jit.ScriptModule:
    """UnsupportedError INGOT-N009 also for arguments and results that TorchScript has no type for."""
    traceable = scripted(module, program)
    inputs = tuple(traceable.values[name] for name in traceable.names)
    try:
        with compat.without_own_deprecations(), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            return torch.jit.trace(traceable, inputs, strict=False, check_trace=False)
    except RuntimeError as error:
        raise UnsupportedError(
            f"TorchScript cannot describe the model's arguments or its result: {str(error).strip().splitlines()[-1]}",
            code="INGOT-N009",
            advice='its dicts and lists have values of one type; save the module with output_format="exported_program"',
        ) from error
