# SPDX-License-Identifier: Apache-2.0
"""Compiled modules on disk, as torch's ExportedProgram with `ingot::run` nodes, or as an engine file."""

from __future__ import annotations

import copy
import inspect
import io
import json
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ingot import _core, assertions, compat, run_op
from ingot.engine import MEMORY, Engine, choice, running_of
from ingot.errors import UnsupportedError, UserError, kind_of, quoted
from ingot.file_kinds import FileKind, file_kind
from ingot.inputs import shape_tree
from ingot.loading import RECORD, module_of
from ingot.module import CompiledModule
from ingot.paths import path_text, shown
from ingot.peer_names import SAVE, pass_over
from ingot.program_signature import mutated_names, positional_names
from ingot.pytrees import with_tuples
from ingot.running import PartEngine
from ingot.scripting import Scripted, as_script, scripted
from ingot.slots import signature_of, tensor_positions
from ingot.whole_files import write_whole

_FORMATS = ("exported_program", "torchscript", "engine")


def save(
    module: CompiledModule,
    path: str | os.PathLike[str],
    output_format: str = "exported_program",
    *,
    state_dict: bool = False,
    **others: Any,
) -> None:
    """Writes a compiled module.

    output_format: "exported_program" writes a .pt2 that `ingot.load`, or `torch.export.load` after `import ingot`, opens;
    "torchscript" writes a file that torch.jit.load opens after `import ingot`: its forward takes the arguments that are or hold tensors;
    "engine" writes an engine file that needs no torch (whole programs only).
    state_dict: the .pt2 also holds the model's weights as they are now, for the `state_dict()` of what `ingot.load` returns.
    Engines hold weights in prepared form, so the file is about twice as large.
    others: arguments of Torch-TensorRT that have nothing to do here, such as `inputs` and `retrace`, are accepted with a notice.
    """
    pass_over("save", others, SAVE)
    if not isinstance(output_format, str) or output_format not in _FORMATS:
        raise UserError(
            f"output_format must be one of {', '.join(_FORMATS)}, not {quoted(output_format)}",
            code="INGOT-U002",
        )
    if not isinstance(module, CompiledModule):
        raise UserError(
            f"ingot.save takes what ingot.compile returns, not {kind_of(module)}", code="INGOT-U007"
        )
    path = path_text(path)
    if state_dict and output_format != "exported_program":
        raise UserError(
            "an engine file holds no state_dict"
            if output_format == "engine"
            else "TorchScript of engines holds no state_dict",
            code="INGOT-U002",
            advice=f'leave out state_dict, or output_format="{output_format}"',
        )
    if output_format == "engine":
        module.engine.save(path)
    elif output_format == "torchscript":
        script = as_script(module, lambda: _program_bytes(module))
        with compat.without_own_deprecations():
            write_whole(path, lambda stream: torch.jit.save(script, stream))
    else:
        write = _program_writer(module, state_dict)
        write_whole(path, write)


def save_script(module: CompiledModule, path: str | os.PathLike[str], extra_files: Any) -> None:
    if extra_files:
        advice = "keep what belongs to the model beside its file"
        raise UserError("TorchScript of engines holds no extra files", code="INGOT-U002", advice=advice)
    save(module, path, "torchscript")


def script_of(module: CompiledModule) -> Scripted:
    """What torch.jit.trace records in place of a call. It compares the constants of two traces, and no two .pt2 are equal."""
    if module.compiled.graph is not None:
        raise UnsupportedError(
            "torch.jit.trace cannot record a call of a model that torch runs in part",
            code="INGOT-N009",
            advice='torch.jit.save(module, path) and ingot.save(module, path, output_format="torchscript") write it as TorchScript',
        )
    return scripted(module, lambda: b"")


def _program_writer(module: CompiledModule, state_dict: bool = False) -> Callable[[Any], None]:
    """A function that writes the .pt2 of a module to a file of Python."""
    with compat.without_own_deprecations():
        carrier = carrier_of(module)
        if state_dict:
            carrier.hold(module.state_dict())
        program = _as_program(module, carrier)
    record = {RECORD: json.dumps(_record(module, carrier))}

    def write(file: Any) -> None:
        with compat.without_own_deprecations(), compat.tracing():
            torch.export.save(program, file, extra_files=record)

    return write


def _program_bytes(module: CompiledModule) -> bytes:
    if mutated_names(module.program):
        raise UnsupportedError(
            "TorchScript cannot hold a program that torch runs in part and that changes tensors",
            code="INGOT-N002",
            advice='save it with output_format="exported_program"',
        )
    file = io.BytesIO()
    _program_writer(module)(file)
    return file.getvalue()


def load(
    path: str | os.PathLike[str],
    memory: str = "map",
    weights: Any = None,
    check_indices: str = "later",
    cuda_graphs: bool = True,
) -> Any:
    """Opens what `save` wrote: a CompiledModule, with its report and engines, or an Engine.

    A .pt2 or TorchScript file, also one that `save` wrote as TorchScript, is opened by torch, and is what torch returns.
    memory: as for `Engine.load`; torch always reads a copy of a .pt2.
    weights: as for `Engine.load`, for what was compiled with `strip_engine_weights` or `weights_file`.
    check_indices, cuda_graphs: as for `Engine.load`; what torch itself opens has the defaults.
    """
    choice("memory", memory, MEMORY)
    running = running_of(check_indices, cuda_graphs)
    path = path_text(path)
    try:
        kind = file_kind(path)
    except OSError as error:
        raise UserError(
            f"cannot open '{shown(path)}': {error.strerror}",
            code="INGOT-U120",
            advice="check the path and its permissions",
        ) from None
    if kind in (FileKind.ENGINE, FileKind.OTHER):  # whose error says what is wrong with it
        return Engine.load(
            path, memory=memory, weights=weights, check_indices=check_indices, cuda_graphs=cuda_graphs
        )
    if kind not in (FileKind.SCRIPT, FileKind.PROGRAM):
        raise UserError(
            f"'{shown(path)}' is {kind.title}, and not what ingot.save writes",
            code="INGOT-U501",
            advice=kind.advice,
        )
    with compat.without_own_deprecations(), open(path, "rb") as file:
        if kind is FileKind.SCRIPT:
            return torch.jit.load(file)
        module = load_program(file, weights)
    if isinstance(module, CompiledModule):
        for core in module.compiled.engines:
            core.set_running(*running)
    return module


def pickled(module: CompiledModule) -> tuple:
    """What pickle stores of a module: the .pt2 of `save`, the GPU of its engines, and its hooks."""
    file = io.BytesIO()
    _program_writer(module, module.holds_state)(file)
    gpu = max([0, *(core.gpu() for core in module.compiled.engines)])  # -1: the host
    return _unpickle, (file.getvalue(), gpu, _pickled_spec(module.result_spec)), compat.hooks_of(module)


def _pickled_spec(spec: Any) -> bytes:
    """Nothing of classes that pickle does not find: results are tuples there."""
    try:
        return pickle.dumps(spec)
    except Exception:  # a class says itself how it is pickled
        return b""


def _unpickle(content: bytes, gpu: int, result: bytes = b"") -> CompiledModule:
    module = load_program(io.BytesIO(content), gpu=gpu)
    if result:
        with compat.without_own_deprecations():
            module.result_spec = pickle.loads(result)
    return module


def load_program(file: Any, weights: Any = None, gpu: int | None = None) -> Any:
    """The module in a .pt2. gpu: of engines for GPUs; None: the current one."""
    record = {RECORD: ""}  # torch fills in what it has
    with compat.tracing():
        program = torch.export.load(file, extra_files=record)
    if not record.get(RECORD):
        return program.module()
    module = module_of(program, json.loads(record[RECORD]), weights is not None, gpu)
    if weights is not None:
        module.refit(weights)
    return module


class _EngineCall(torch.nn.Module):
    """The torch form of an engine: `ingot::run`, with the engine's bytes as a buffer."""

    def __init__(self, engine: _core.Engine) -> None:
        super().__init__()
        blob = torch.frombuffer(bytearray(engine.save_memory()), dtype=torch.uint8)
        self.register_buffer("engine", blob)
        self.meta_text = run_op.meta_of(engine)
        self.tensors = tensor_positions(signature_of(engine).inputs)

    def forward(self, leaves: Sequence[Any]) -> list[torch.Tensor]:
        inputs = [leaves[position] for position in self.tensors]
        return torch.ops.ingot.run(inputs, self.engine, self.meta_text)


class _Carrier(torch.nn.Module):
    """The torch form of a compiled module. Its forward has the model's arguments one by one: torch.export takes `**kwargs` alone
    for a single argument."""

    def __init__(self, module: CompiledModule) -> None:
        super().__init__()
        args, kwargs = _examples(module.program)
        self.names = [*positional_names(module.program, len(args)), *kwargs]
        kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(args)
        kinds += [inspect.Parameter.KEYWORD_ONLY] * len(kwargs)
        parameters = [inspect.Parameter(*each) for each in zip(self.names, kinds, strict=True)]

        def forward(*args: Any, **kwargs: Any) -> Any:
            return self.call_model(args, kwargs)

        forward.__signature__ = inspect.Signature(parameters)
        self.forward = forward
        self.state_names: dict[str, str] | None = None

    def hold(self, state: Mapping[str, torch.Tensor]) -> None:
        """Adds buffers that the forward does not read; tied weights share one. `state_names`: the buffer of each name."""
        buffers: dict[str, torch.Tensor] = {}
        self.state_names = {}
        for name, value in state.items():
            tied = [buffer for buffer, held in buffers.items() if held.is_set_to(value)]
            self.state_names[name] = tied[0] if tied else f"state_{len(buffers)}"
            buffers.setdefault(self.state_names[name], value)
        for buffer, value in buffers.items():
            self.register_buffer(buffer, value)


class _WholeModule(_Carrier):
    """Of a program that is one engine."""

    def __init__(self, module: CompiledModule) -> None:
        super().__init__(module)
        self.call = _EngineCall(module.compiled.engines[0])
        self.rebuild, self.ordered = module.engine.rebuild, module.ordered
        self.weights: dict[str, int] = {}

    def call_model(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.rebuild(self.ordered(self.call(torch.utils._pytree.tree_leaves((args, kwargs)))))


def carrier_of(module: CompiledModule) -> _Carrier:
    """The torch form of a compiled module, with the engines and weights as they are now."""
    if module.compiled.graph is None:
        return _WholeModule(module)
    return _HybridModule(module)


def _examples(program: torch.export.ExportedProgram) -> tuple[tuple, dict[str, Any]]:
    """Arguments to trace with: tuples in place of classes that torch cannot write."""
    leaves = torch.utils._pytree.tree_leaves(program.example_inputs)
    return torch.utils._pytree.tree_unflatten(leaves, with_tuples(program.call_spec.in_spec))


def _as_program(module: CompiledModule, carrier: _Carrier) -> torch.export.ExportedProgram:
    args, kwargs = _examples(module.program)
    shapes = dict(zip(carrier.names, _dynamic_shapes(module.program, args, kwargs), strict=True))
    with compat.tracing():
        program = torch.export.export(carrier, args, kwargs, dynamic_shapes=shapes)
    assertions.explain(program.graph_module)
    return program


def _record(module: CompiledModule, carrier: _Carrier) -> dict[str, Any]:
    """What `ingot.load` needs of a compiled module besides the torch program."""
    names = {position: name for name, position in module.weight_positions.items()}
    guards = module.compiled.guards
    return {
        "whole": module.compiled.graph is None,
        "segments": module.report.rows(),
        "names": module.model_names,
        "tied": module.tied_names,
        "constants": module.constants,
        "weights": {buffer: names.get(position, "") for buffer, position in carrier.weights.items()},
        "changed": [buffer for buffer, position in carrier.weights.items() if module.is_changed(position)],
        "conditions": None if module.compiled.conditions is None else module.compiled.conditions.record(),
        "guards": None if guards is None else {"rows": guards.rows, "names": guards.names},
        "state": carrier.state_names,
    }


def _dynamic_shapes(program: torch.export.ExportedProgram, args: Any, kwargs: Any) -> list[Any]:
    """The dynamic dims of a program's arguments, one tree per argument, in the form that torch.export takes."""
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = iter(s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT")

    def describe(leaf: Any) -> Any:
        node = placeholders.get(next(names))
        example = None if node is None else node.meta.get("val")
        if isinstance(example, torch.SymInt):
            return torch.export.Dim.AUTO
        if not isinstance(leaf, torch.Tensor) or not isinstance(example, torch.Tensor):
            return None
        sizes = enumerate(example.shape)
        return {axis: torch.export.Dim.AUTO for axis, size in sizes if not isinstance(size, int)}

    shapes_of_args, shapes_of_kwargs = shape_tree((args, kwargs), describe)
    return [*shapes_of_args, *shapes_of_kwargs.values()]


class _PartEngineCall(torch.nn.Module):
    """A partition in its torch form. Weights among its arguments are already in the engine."""

    def __init__(self, part: PartEngine) -> None:
        super().__init__()
        self.call = _EngineCall(part.engine)
        self.users = part.users
        self.count = len(part.engine.outputs())
        self.results = part.results

    def forward(self, *arguments: Any) -> Any:
        results = list(self.call([arguments[position] for position in self.users]))
        return self.results(results[: self.count])


class _HybridModule(_Carrier):
    """Of a program in parts: its graph with `ingot::run` in place of engines, and the weights that torch reads as buffers."""

    def __init__(self, module: CompiledModule) -> None:
        super().__init__(module)
        # Not "graph": GraphModule has an attribute of that name.
        self.parts = copy.copy(module.compiled.graph)
        self.writes, self.returned = module.compiled.call.writes, module.compiled.call.users
        changed = [position for position in range(module.input_count) if module.is_changed(position)]
        read = {*_read_by_torch(self.parts), *changed}
        self.weights = {f"weight_{position}": position for position in sorted(read)}
        self.weights = {name: at for name, at in self.weights.items() if module.weight_at(at) is not None}
        for name, position in self.weights.items():
            self.register_buffer(name, module.weight_at(position))
        for name, child in list(self.parts.named_children()):
            if isinstance(child, PartEngine):
                setattr(self.parts, name, _PartEngineCall(child))
        self.guards = module.compiled.guards
        self.flatten = module.flat_arguments
        self.result = with_tuples(module.program.call_spec.out_spec)

    def call_model(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if self.guards is not None:
            self.guards.assume(args, kwargs)
        arguments = self.flatten(args, kwargs)
        for name, position in self.weights.items():
            arguments[position] = getattr(self, name)
        results = self.parts(*arguments)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        for k, position in self.writes:
            arguments[position].copy_(results[k])
        return torch.utils._pytree.tree_unflatten([results[k] for k in self.returned], self.result)


def _read_by_torch(graph: torch.fx.GraphModule) -> list[int]:
    """Positions of the arguments that are not for engines alone, or that engines take at each call."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    return [k for k, node in enumerate(placeholders) if any(_reads(graph, user, node) for user in node.users)]


def _reads(graph: torch.fx.GraphModule, user: torch.fx.Node, value: torch.fx.Node) -> bool:
    part = graph.get_submodule(str(user.target)) if user.op == "call_module" else None
    if not isinstance(part, PartEngine):
        return True
    return any(user.args[position] is value for position in part.users)
