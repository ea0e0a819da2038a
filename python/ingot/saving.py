# SPDX-License-Identifier: Apache-2.0
"""Compiled modules on disk, as torch's ExportedProgram with `ingot::run` nodes, or as an engine file."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ingot import _core, run_op
from ingot.engine import MEMORY, Engine, choice
from ingot.errors import UnsupportedError, UserError
from ingot.module import CompiledModule, mutated_names
from ingot.running import Stretch

_FORMATS = ("exported_program", "engine")


def save(
    module: CompiledModule, path: str | os.PathLike[str], output_format: str = "exported_program"
) -> None:
    """Writes a compiled module.

    output_format: "exported_program" makes a .pt2 that `ingot.load`, or `torch.export.load` after `import ingot`, opens in a fresh process;
    "engine" makes an engine file that needs no torch (whole programs only).
    """
    if output_format not in _FORMATS:
        raise UserError(
            f'output_format is one of {", ".join(_FORMATS)}, not "{output_format}"', code="INGOT-U002"
        )
    if not isinstance(module, CompiledModule):
        raise UserError(
            f"ingot.save takes what ingot.compile returns, not a {type(module).__name__}", code="INGOT-U007"
        )
    if output_format == "engine":
        module.engine.save(path)
        return
    program = _as_program(module)
    _write_whole(os.fspath(path), lambda file: torch.export.save(program, file))


def load(path: str | os.PathLike[str], memory: str = "map") -> Any:
    """Opens what `save` wrote: a module to call, or an Engine.

    memory: as `Engine.load` takes it; of a .pt2, torch reads a copy in any case.
    """
    choice("memory", memory, MEMORY)
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UserError(
            f"cannot open '{os.fspath(path)}': {error.strerror}",
            code="INGOT-U120",
            advice="check the path and its permissions",
        ) from None
    if magic != b"PK\x03\x04":
        return Engine.load(path, memory=memory)
    return torch.export.load(os.fspath(path)).module()


def _write_whole(path: str, write: Callable[[Any], None]) -> None:
    """Readers see the old file or the whole new one; nothing half-written is left."""
    file = _core.FileWriter(path)
    try:
        write(file)
        file.finish()
    finally:
        file.drop()


class _EngineCall(torch.nn.Module):
    """The torch form of an engine: `ingot::run`, with the engine's bytes as a buffer."""

    def __init__(self, engine: _core.Engine) -> None:
        super().__init__()
        blob = torch.frombuffer(bytearray(engine.save_memory()), dtype=torch.uint8)
        self.register_buffer("engine", blob)
        self.meta_text = run_op.meta_of(engine)
        literals = json.loads(engine.signature())["literals"]
        self.tensors = [position for position, literal in enumerate(literals) if literal == ""]

    def forward(self, leaves: Sequence[Any]) -> list[torch.Tensor]:
        inputs = [leaves[position] for position in self.tensors]
        return torch.ops.ingot.run(inputs, self.engine, self.meta_text)


class _WholeModule(torch.nn.Module):
    """The torch form of a program that is one engine."""

    def __init__(self, engine: Engine, core: _core.Engine) -> None:
        super().__init__()
        self.call = _EngineCall(core)
        self.rebuild = engine.rebuild

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.rebuild(self.call(torch.utils._pytree.tree_leaves((args, kwargs))))


def _as_program(module: CompiledModule) -> torch.export.ExportedProgram:
    args, kwargs = module.program.example_inputs
    dynamic = _dynamic_shapes(module.program, args, kwargs)
    hybrid = module.compiled.graph is not None
    if hybrid and mutated_names(module.program):
        raise UnsupportedError(
            "a program that torch runs in part and that changes tensors cannot be saved", code="INGOT-N002"
        )
    carrier = _HybridModule(module) if hybrid else _WholeModule(module.engine, module.compiled.engines[0])
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
        shapes.append(
            {
                axis: torch.export.Dim.AUTO
                for axis, size in enumerate(example.shape)
                if not isinstance(size, int)
            }
        )
    rebuilt_args, rebuilt_kwargs = torch.utils._pytree.tree_unflatten(shapes, spec)
    # *args and **kwargs of the carrier's forward are one entry each.
    entries = {"args": tuple(rebuilt_args), "kwargs": dict(rebuilt_kwargs)}
    return {name: entry for name, entry in entries.items() if entry}


class _StretchCall(torch.nn.Module):
    """A stretch in its torch form. Weights among its arguments are in the engine already."""

    def __init__(self, stretch: Stretch) -> None:
        super().__init__()
        self.call = _EngineCall(stretch.engine)
        self.users = stretch.users
        self.results = stretch.results

    def forward(self, *arguments: Any) -> Any:
        return self.results(list(self.call([arguments[position] for position in self.users])))


class _HybridModule(torch.nn.Module):
    """The torch form of a hybrid program: its graph with `ingot::run` where an engine stands."""

    def __init__(self, module: CompiledModule) -> None:
        super().__init__()
        # Not "graph": a GraphModule has an attribute of that name.
        self.parts = copy.copy(module.compiled.graph)
        for name, child in list(self.parts.named_children()):
            if isinstance(child, Stretch):
                setattr(self.parts, name, _StretchCall(child))
        self.guards = module.compiled.guards
        self.flatten = module.flat_arguments
        self.rebuild = module.rebuild

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.guards is not None:
            self.guards.assume(args, kwargs)
        return self.rebuild(self.parts(*self.flatten(args, kwargs)))
