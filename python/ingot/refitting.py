# SPDX-License-Identifier: Apache-2.0
"""New weights for compiled modules and engines, from whatever holds them."""

from __future__ import annotations

import copy
import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ingot import _core, ranks
from ingot.errors import UserError, kind_of
from ingot.paths import path_text, shown
from ingot.peer_names import REFIT, pass_over

if TYPE_CHECKING:
    import torch

    from ingot.module import CompiledModule

_FEW_BYTES = 1 << 20  # not worth a thread
_NOT_GIVEN = object()
_ARCHIVE = b"PK"  # how a .pt2 begins


def is_paths(source: Any) -> bool:
    """Whether weights are given as a file, or as the files that they are divided into."""
    several = isinstance(source, Sequence) and not isinstance(source, str) and len(source) > 0
    return all(isinstance(each, (str, os.PathLike)) for each in (source if several else [source]))


def paths_of(source: Any) -> list[str]:
    return [path_text(each) for each in ([source] if isinstance(source, (str, os.PathLike)) else source)]


def open_files(source: Any) -> list[_core.TensorFile]:
    """The files of `paths_of`. UserError if two of them have the same tensor."""
    paths = paths_of(source)
    files = [_core.TensorFile(path) for path in paths]
    origins: dict[str, str] = {}
    for path, file in zip(paths, files, strict=True):
        for name in file.names():
            if origins.setdefault(name, path) != path:
                raise UserError(
                    f"'{shown(origins[name])}' and '{shown(path)}' both have the weight {name!r}",
                    code="INGOT-U326",
                )
    return files


def values_of(source: Any) -> dict[str, Any]:
    """The tensors of a mapping, a torch.nn.Module or an ExportedProgram, by name. UserError for anything else."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(source, torch.nn.Module):
        source = {
            **dict(source.named_parameters(remove_duplicate=False)),
            **dict(source.named_buffers(remove_duplicate=False)),
        }
    elif torch is not None and isinstance(source, torch.export.ExportedProgram):
        source = {**source.constants, **source.state_dict}
        source = {name: value for name, value in source.items() if isinstance(value, torch.Tensor)}
    if not isinstance(source, Mapping):
        raise UserError(
            f"new weights cannot come from {kind_of(source)}",
            code="INGOT-U006",
            advice="pass {name: tensor}, a module, an ExportedProgram, or the path of a .safetensors or .pt2 file",
        )
    return {_text_of(name): _on_host(name, value) for name, value in source.items()}


def _text_of(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise UserError(f"new weights have names, and {name!r} is {kind_of(name)}", code="INGOT-U006")


def _on_host(name: str, value: Any) -> Any:
    if not hasattr(value, "detach"):
        if not isinstance(value, (int, float, complex, memoryview)) and not hasattr(value, "__array__"):
            raise UserError(f"the new value of {name!r} is {kind_of(value)}, not a tensor", code="INGOT-U006")
        return value
    if value.device.type == "meta":
        raise UserError(f"the new value of {name!r} has no data: it is on the meta device", code="INGOT-U006")
    if value.layout is not sys.modules["torch"].strided:
        raise UserError(
            f"the new value of {name!r} is a tensor of {value.layout}",
            code="INGOT-U006",
            advice="pass value.to_dense()",
        )
    return value.detach().cpu()


def refit_core(
    core: _core.Engine, source: Any, partial: bool, rank: int | Mapping[str, int] | None = None
) -> None:
    """Refits one engine."""
    text = ranks.rank_text(rank)
    if is_paths(source):
        core.refit_from_files(open_files(source), partial, text)
    else:
        core.refit(values_of(source), partial, False, text)


def refit_module_weights(
    compiled_module: Any,
    new_weights: Any = _NOT_GIVEN,
    *,
    in_place: bool = False,
    partial: bool = False,
    new_weight_module: Any = _NOT_GIVEN,
    **others: Any,
) -> Any:
    """A copy of a compiled module, or of an engine, with new weights; the module that was passed with `in_place`.

    new_weights: an ExportedProgram of the same model, `{name: tensor}`, a module, or the path of a .safetensors or .pt2 file (or
    the list of files that the weights are divided into).
    partial: weights without a new value keep theirs; otherwise UserError for a missing one.
    The result is what a compilation with these weights returns. UserError, without any change, for names that the model never had,
    other shapes and dtypes, another program, and new values of what is part of an engine: integer tensors and initial states.
    new_weight_module: Torch-TensorRT's name of new_weights; its other arguments have nothing to do, and are accepted with a notice.
    """
    pass_over("refit_module_weights", others, REFIT)
    if (new_weights is _NOT_GIVEN) == (new_weight_module is _NOT_GIVEN):
        raise UserError(
            "refit_module_weights takes new weights once: new_weights, or new_weight_module",
            code="INGOT-U006",
        )
    new_weights = new_weight_module if new_weights is _NOT_GIVEN else new_weights
    from ingot.engine import Engine

    target = compiled_module
    if not isinstance(target, Engine):
        from ingot.module import CompiledModule

        if not isinstance(target, CompiledModule):
            raise UserError(
                f"refit_module_weights takes what ingot.compile returns, or an Engine, not {kind_of(target)}",
                code="INGOT-U007",
                advice='what torch.compile(backend="ingot") returns notices changed weights by itself',
            )
    if not in_place:
        target = copy.deepcopy(target)
    target.refit(new_weights, partial)
    return target


def module_values(
    source: Any, check: Callable[[torch.export.ExportedProgram], None] = lambda program: None
) -> dict[str, Any]:
    """Tensors of which nobody else has the memory, so that they can be kept. check: called with the program of a .pt2 file."""
    import torch

    from ingot import compat

    if not is_paths(source):
        return copies({name: torch.as_tensor(value) for name, value in values_of(source).items()})
    values: dict[str, Any] = {}
    for path, file in zip(paths_of(source), open_files(source), strict=True):
        with open(path, "rb") as opened:
            is_archive = opened.read(len(_ARCHIVE)) == _ARCHIVE
            if is_archive:
                opened.seek(0)
                with compat.tracing():
                    program = torch.export.load(opened)
                check(program)
        if is_archive:  # its tensors may be views of one storage
            values |= {name: value.contiguous() for name, value in values_of(program).items()}
        else:
            values |= {name: file.copy(name, torch.empty(0)) for name in file.names()}
    return values


def have_equal_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Also where they are NaN."""
    import torch

    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    return torch.equal(*(value.contiguous().reshape(-1).view(torch.uint8) for value in (first, second)))


def copies(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same with memory of their own.

    Not by torch's threads, which spin for a while after each copy, on the processors that the engine needs next.
    """
    import torch

    plain = {name: value for name, value in values.items() if _is_plain(value)}
    targets = {name: torch.empty_like(value) for name, value in plain.items()}

    def copy_one(name: str) -> None:
        ctypes.memmove(targets[name].data_ptr(), plain[name].data_ptr(), plain[name].nbytes)

    if sum(value.nbytes for value in plain.values()) < _FEW_BYTES:
        for name in plain:
            copy_one(name)
    else:
        with ThreadPoolExecutor(_core.get_threads()) as threads:
            list(threads.map(copy_one, sorted(plain, key=lambda name: -plain[name].nbytes)))
    return {name: targets[name] if name in plain else value.clone() for name, value in values.items()}


def _is_plain(value: torch.Tensor) -> bool:
    """Whether its elements are row-major in host memory, as they are."""
    import torch

    is_dense = value.layout is torch.strided and value.device.type == "cpu" and value.is_contiguous()
    return type(value) is torch.Tensor and is_dense and not (value.is_neg() or value.is_conj())


def refit_engines(
    module: CompiledModule, values: Mapping[str, Any], partial: bool
) -> list[tuple[_core.Engine, _core.Engine]]:
    """Refitted copies of a module's engines: (engine, copy). The engines themselves have not changed yet."""
    pairs = []
    for engine in module.compiled.engines:
        chosen = {name: value for name, value in values.items() if engine.knows_tensor(name)}
        if not chosen and partial:
            continue
        twin = copy.deepcopy(engine)
        twin.refit(chosen, partial, True, ranks.rank_text(None))
        pairs.append((engine, twin))
    return pairs
