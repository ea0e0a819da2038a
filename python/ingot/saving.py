# SPDX-License-Identifier: Apache-2.0
"""Compiled modules on disk, as torch's ExportedProgram with `ingot::run` nodes, or as an engine file."""

from __future__ import annotations

import os
from typing import Any

import torch

from ingot import _core, run_op
from ingot.engine import Engine
from ingot.errors import UserError
from ingot.module import CompiledModule

_FORMATS = ("exported_program", "engine")


def save(module: CompiledModule, path: str | os.PathLike[str], output_format: str = "exported_program") -> None:
    """Writes a compiled module.

    output_format: "exported_program" makes a .pt2 that `ingot.load`, or `torch.export.load` after `import ingot`, opens in a fresh process;
    "engine" makes an engine file that needs no torch (whole programs only).
    """
    if output_format not in _FORMATS:
        raise UserError(f'output_format is one of {", ".join(_FORMATS)}, not "{output_format}"', code="INGOT-U002")
    if not isinstance(module, CompiledModule):
        raise UserError(f"ingot.save takes what ingot.compile returns, not a {type(module).__name__}", code="INGOT-U007")
    if output_format == "engine":
        module.engine.save(path)
        return
    torch.export.save(_as_program(module), os.fspath(path))


def load(path: str | os.PathLike[str]) -> Any:
    """Opens what `save` wrote: a module to call, or an Engine."""
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic != b"PK\x03\x04":
        return Engine.load(path)
    return torch.export.load(os.fspath(path)).module()


class _EngineModule(torch.nn.Module):
    """The torch form of a whole-program engine: its bytes are a buffer."""

    def __init__(self, engine: _core.Engine, tensors: list[int], unflatten: Any) -> None:
        super().__init__()
        blob = torch.frombuffer(bytearray(engine.save_memory()), dtype=torch.uint8)
        self.register_buffer("engine", blob)
        self.meta_text = run_op.meta_of(engine)
        self.tensors = tensors
        self.unflatten = unflatten

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        inputs = [leaves[position] for position in self.tensors]
        return self.unflatten(torch.ops.ingot.run(inputs, self.engine, self.meta_text))


def _as_program(module: CompiledModule) -> torch.export.ExportedProgram:
    args, kwargs = module.program.example_inputs
    dynamic = _dynamic_shapes(module.program, args, kwargs)
    if module.report.fallbacks:
        carrier = _HybridModule(module)
    else:
        engine = module.engine
        carrier = _EngineModule(module.compiled.engines[0], engine.tensor_positions, engine.rebuild)
    return torch.export.export(carrier, args, kwargs, dynamic_shapes=dynamic)


def _dynamic_shapes(program: torch.export.ExportedProgram, args: Any, kwargs: Any) -> Any:
    """The dynamic dims of a program's inputs, in the form that torch.export takes."""
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    shapes = []
    for leaf, name in zip(leaves, names, strict=True):
        example = placeholders[name].meta.get("val") if name in placeholders else None
        if not isinstance(leaf, torch.Tensor) or not isinstance(example, torch.Tensor):
            shapes.append(None)
            continue
        shapes.append({axis: torch.export.Dim.AUTO for axis, size in enumerate(example.shape) if not isinstance(size, int)})
    rebuilt_args, rebuilt_kwargs = torch.utils._pytree.tree_unflatten(shapes, spec)
    # *args and **kwargs of the carrier's forward are one entry each.
    return {"args": tuple(rebuilt_args), "kwargs": dict(rebuilt_kwargs)}


class _HybridModule(torch.nn.Module):
    """The torch form of a hybrid program: its graph with `ingot::run` where an engine stands."""

    def __init__(self, module: CompiledModule) -> None:
        super().__init__()
        self.hybrid = module
        for number, engine in enumerate(module.compiled.engines):
            blob = torch.frombuffer(bytearray(engine.save_memory()), dtype=torch.uint8)
            self.register_buffer(f"engine_{number}", blob)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.hybrid(*args, **kwargs)
