# SPDX-License-Identifier: Apache-2.0
"""Building, saving, loading and calling engines."""

from __future__ import annotations

import copy
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingot import _core, calling, gpus, ranks
from ingot.errors import UserError, quoted, require
from ingot.kinds import CHECK_INDICES
from ingot.paths import path_text
from ingot.refitting import refit_core
from ingot.slots import array_of, filled, signature_of

_VERIFY = {"lazy": 0, "full": 1}
_TRUST = {"any": 0, "signed": 1, "none": 2}
MEMORY = {"map": 0, "copy": 1}
_MOST_THREADS = 1024
_DTYPE_NAMES = {
    1: "bool", 2: "u8", 3: "i8", 4: "i16", 5: "i32", 6: "i64", 7: "f16", 8: "bf16", 9: "f32", 10: "f64", 11: "u16",
    12: "u32", 13: "u64", 14: "e4m3", 15: "e5m2", 18: "c64", 19: "c128",
}  # fmt: skip


@dataclass(frozen=True)
class Port:
    """A tensor input or output. `shape` holds integers and names of dims ("B"); `ranges` the minimum and maximum of each."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    ranges: tuple[tuple[int, int], ...]


class Engine:
    """A compiled program with its weights, called as the model was called.

    Thread-safe: each call runs in a context of its own, except that calls of an engine with own state (a KV cache)
    take turns. Arguments are torch tensors or numpy arrays; results are of the same kind as the first tensor argument or,
    without one, torch tensors if torch is imported.
    """

    def __init__(self, core: _core.Engine) -> None:
        self._core = core
        ranks.connect_engine(core)
        signature = signature_of(core)
        self._names = signature.argument_names
        self._input_tree = calling.parse_tree(signature.input_tree)
        self._inputs = signature.inputs
        self._outputs = signature.outputs
        self._unflatten = calling.unflattener(signature.output_tree)
        tensors_only = all(slot.is_tensor and not slot.is_number for slot in self._inputs)
        self._is_direct = tensors_only and calling.is_flat_arguments(self._input_tree)
        self._leaf_names = calling.leaf_names(self._input_tree, self._names, len(self._inputs))
        self._has_plain_outputs = not all(slot.is_tensor and not slot.is_number for slot in self._outputs)
        self._count_of_core = len(self._inputs) if self._is_direct and not self._has_plain_outputs else 0
        self._checked_types: set[type] = set()
        self._run, self._call = core.run, core.call
        self._refit = functools.partial(refit_core, core)
        self.origin = signature.origin
        self.target = signature.target

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        verify: str = "lazy",
        trust: str = "any",
        memory: str = "map",
        threads: int = 0,
        weights: Any = None,
        trusted_keys: str | os.PathLike[str] = "",
        weight_budget: str = "",
        device: Any = None,
        rank: int | Mapping[str, int] | None = None,
        cpu: str = "",
        check_indices: str = "later",
        cuda_graphs: bool = True,
    ) -> Engine:
        """Opens an engine file.

        verify: "lazy" checks everything but the weights now, and the weights before the first run; "full" checks
        everything now. trust: "any" runs native code of the file, "none" runs none, "signed" opens only engines
        that a key in the file `trusted_keys` signed (by default, in the file that INGOT_TRUSTED_KEYS names); it reads all of the file.
        memory: "map" shares the file's memory with other processes: it must not be written to or truncated while the
        engine is in use. "copy" reads the whole file: later changes have no effect.
        threads: of each call, the calling one included, so that concurrent calls do not wait for each other; at most what affinity
        and quota allow. 0: the threads of the process (`ingot.set_threads`), which one call uses at a time. Does not affect
        results.
        weights: as of `refit`, all of them: for an engine that was saved without its own (`strip_engine_weights`), or instead of these
        or of those in the file that it was built with (`weights_file`).
        weight_budget: memory of a GPU for the weights: "all" (the default), "auto", "50%" or bytes ("1.5GB"). The others stay on the
        host, and calls copy them ahead of their use (`ingot.runtime.weight_streaming`).
        device: of an engine for GPUs, the one that it runs on and has its weights on: "cuda:1", torch.device("cuda", 1) or 1; by default
        torch's current GPU, or the first. Tensors on other GPUs are refused.
        rank: of which rank the parts of sharded weights are (the option `shards`), by group if there are several; by default that of
        torch's process groups, or of INGOT_RANK.
        cpu: of an engine that was built for several processors, which of these levels is used; by default the best that this machine
        has, which `target` names.
        check_indices: "sync": a call on a GPU waits until it is done, and tells an index out of range itself; "later": the next call
        does. cuda_graphs: calls on a GPU become CUDA graphs; False: each enqueues its kernels one by one.
        UserError names the damaged section, or what this machine lacks.
        """
        open_core = functools.partial(
            _core.Engine.load,
            path_text(path),
            choice("verify", verify, _VERIFY),
            choice("trust", trust, _TRUST),
            choice("memory", memory, MEMORY),
        )
        running = running_of(check_indices, cuda_graphs)
        return _opened(open_core, threads, weights, trusted_keys, weight_budget, device, rank, cpu, running)

    @staticmethod
    def from_bytes(
        content: Any,
        verify: str = "lazy",
        trust: str = "any",
        threads: int = 0,
        weights: Any = None,
        trusted_keys: str | os.PathLike[str] = "",
        weight_budget: str = "",
        device: Any = None,
        rank: int | Mapping[str, int] | None = None,
        cpu: str = "",
        check_indices: str = "later",
        cuda_graphs: bool = True,
    ) -> Engine:
        """Opens an engine from the content of its file: bytes, a bytearray, a memoryview or an array of u8.

        It is read in place, without a copy, if its address is a multiple of 64: it must not change while the engine is in use.
        The other arguments and errors: as of `load`.
        """
        open_core = functools.partial(
            _core.Engine.load_memory,
            content,
            choice("verify", verify, _VERIFY),
            choice("trust", trust, _TRUST),
        )
        running = running_of(check_indices, cuda_graphs)
        return _opened(open_core, threads, weights, trusted_keys, weight_budget, device, rank, cpu, running)

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        """An engine with its own weights and states, sharing memory until they change."""
        return Engine(copy.deepcopy(self._core, memo))

    def to(self, device: Any) -> Engine:
        """This engine on another GPU ("cuda:1"): a copy with weights of its own there, and the current states; itself if it is there."""
        gpu = gpus.number(device)
        if self._core.gpu() < 0:
            raise UserError(
                f"the engine is for {self.target}, which is no GPU",
                code="INGOT-U002",
                advice='build one with device="cuda"',
            )
        return self if gpu == self._core.gpu() else Engine(self._core.copy_to(gpu))

    @property
    def device(self) -> str:
        """Where it runs: "cpu", or "cuda:1" for GPU 1."""
        gpu = self._core.gpu()
        return "cpu" if gpu < 0 else f"cuda:{gpu}"

    def __reduce__(self) -> tuple:
        """Pickles the engine file's bytes: with the current weights, and initial states."""
        return _unpickle, (self.to_bytes(), max(self._core.gpu(), 0))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the engine file atomically. UserError if the loaded file has changed."""
        self._core.save(path_text(path))

    def to_bytes(self) -> bytes:
        """The bytes that `save` would write. UserError if the loaded file has changed."""
        return self._core.save_memory()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == self._count_of_core > 0 and not kwargs:
            result = self._call(args, self._unflatten)
            if result is not NotImplemented:
                return result
        is_direct = self._is_direct and not kwargs and len(args) == len(self._inputs)
        tensors = args if is_direct else self._tensors(args, kwargs)
        if not self._checked_types.issuperset(map(type, tensors)):
            calling.refuse_masked(tensors, self._checked_types)
        return self.rebuild(self._run(tensors))

    def run(self, tensors: Sequence[Any]) -> list:
        """The output tensors, in the order of `outputs`, for the input tensors in the order of `inputs`."""
        return self._run(tensors)

    def rebuild(self, outputs: list) -> Any:
        """The model's result from the engine's output tensors."""
        if self._has_plain_outputs:
            outputs = filled(self._outputs, outputs)
        return self._unflatten(outputs)

    def _tensors(self, args: tuple, kwargs: dict[str, Any]) -> list:
        tree = self._input_tree
        flat = [*args, *kwargs.values()]
        if tree is not None:
            flat = calling.flatten(tree, calling.bind_names(args, kwargs, tree, self._names))
        if len(flat) != len(self._inputs):
            raise UserError(f"expected {len(self._inputs)} arguments, got {len(flat)}", code="INGOT-U300")
        for position, (value, slot) in enumerate(zip(flat, self._inputs, strict=True)):
            if slot.is_value:
                calling.check_value(self._leaf_names[position], slot.value, value)
            elif slot.is_number:
                flat[position] = array_of(self._leaf_names[position], value, flat)
        return [value for value, slot in zip(flat, self._inputs, strict=True) if slot.is_tensor]

    @property
    def inputs(self) -> list[Port]:
        return [_port(row) for row in self._core.inputs()]

    @property
    def outputs(self) -> list[Port]:
        """Named by the keys and fields of the model's result ("logits", "past.0.1"), or "output_0" if it has none."""
        return [_port(row) for row in self._core.outputs()]

    @property
    def metadata(self) -> dict[str, str]:
        """The strings that the engine was built with (`metadata={...}`); saving, copying and refitting keep them."""
        return self._core.metadata()

    @property
    def threads(self) -> int:
        """Threads of each call, the calling one included."""
        return self._core.threads()

    @property
    def weights(self) -> list[str]:
        """Names of the model's weights, for `refit`."""
        return self._core.weight_names()

    def refit(self, weights: Any, partial: bool = False, rank: int | Mapping[str, int] | None = None) -> None:
        """New values of weights: `{name: array}`, a torch module or ExportedProgram, or the path of a .safetensors or .pt2 file
        (or of the files that the weights are divided into).

        partial: weights without a new value keep theirs; otherwise UserError for a missing one. Only what depends on the new values
        is prepared again. All or nothing; runs in flight keep the old values. UserError for names that the model never had, other
        shapes and dtypes, and other values of what is part of the engine: integer tensors and initial states. rank: as of `load`.
        """
        self._refit(weights, partial, rank)

    def go_through(self, run: Callable[[Sequence], list], refit: Callable[..., None]) -> Engine:
        """Calls and refits go through these functions, of a module whose engines change."""
        self._run, self._refit, self._count_of_core = run, refit, 0
        return self

    def inspect(self) -> dict[str, Any]:
        """The content of `ingot inspect --json`."""
        return json.loads(self._core.inspect())

    def memory(self) -> dict[str, int]:
        """Bytes of arena, states, scratch and weights, and the number of cached plans."""
        return self._core.memory()

    def reset_states(self) -> None:
        """Resets owned state (caches) to its initial value."""
        self._core.reset_states()

    def __repr__(self) -> str:
        inputs = ", ".join(f"{port.name}: {port.dtype}{list(port.shape)}" for port in self.inputs)
        return f"<ingot.Engine for {self.target}: {inputs}>"


def _opened(
    open_core: Callable[..., _core.Engine],
    threads: int,
    weights: Any,
    trusted_keys: Any,
    weight_budget: str,
    device: Any,
    rank: int | Mapping[str, int] | None,
    cpu: str,
    running: tuple[int, bool],
) -> Engine:
    """What `load` and `from_bytes` share, while other ranks wait."""
    with ranks.at_work():
        core = open_core(
            _thread_count(threads),
            _keys_file(trusted_keys),
            weights is not None,
            _text("weight_budget", weight_budget),
            gpus.number(device),
            ranks.rank_text(rank),
            _text("cpu", cpu),
        )
        core.set_running(*running)
        return _with_weights(core, weights, rank)


def _with_weights(core: _core.Engine, weights: Any, rank: int | Mapping[str, int] | None) -> Engine:
    if weights is not None:
        refit_core(core, weights, False, rank)
    return Engine(core)


def _unpickle(content: bytes, gpu: int = 0) -> Engine:
    return Engine.from_bytes(content, device=gpu)


def _keys_file(path: Any) -> str:
    return "" if isinstance(path, str) and not path else path_text(path, "trusted_keys")


def _text(name: str, value: Any) -> str:
    require(value, str, f"{name} must be a str")
    return value


def _thread_count(threads: int) -> int:
    if type(threads) is not int or not 0 <= threads <= _MOST_THREADS:
        raise UserError(
            f"threads must be an integer from 0 to {_MOST_THREADS}, not {threads!r}", code="INGOT-U002"
        )
    return threads


def running_of(check_indices: str, cuda_graphs: bool) -> tuple[int, bool]:
    """The arguments of `_core.Engine.set_running`."""
    require(cuda_graphs, bool, "cuda_graphs must be a bool")
    return choice("check_indices", check_indices, CHECK_INDICES), cuda_graphs


def choice(name: str, value: str, values: Mapping[str, int]) -> int:
    if not isinstance(value, str) or value not in values:
        raise UserError(f"{name} is one of {', '.join(values)}, not {quoted(value)}", code="INGOT-U002")
    return values[value]


def _port(row: tuple) -> Port:
    name, dtype, dims, ranges = row
    shape = tuple(int(dim) if dim.lstrip("-").isdigit() else dim for dim in dims)
    return Port(name, _DTYPE_NAMES.get(dtype, str(dtype)), shape, ranges)
