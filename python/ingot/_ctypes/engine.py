# SPDX-License-Identifier: Apache-2.0
"""Engines, and the contexts that their calls run in."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from ctypes import addressof, byref, c_char_p, c_void_p
from typing import Any

from ingot._ctypes import arrays
from ingot._ctypes.files import TensorFile, pointers_to
from ingot._ctypes.group import Group, bindings_of
from ingot._ctypes.kept import KEPT
from ingot._ctypes.library import Handle, check, lib, text_of
from ingot._ctypes.observer import Observer
from ingot._ctypes.structs import (
    ContextOptions,
    GroupBinding,
    LoadOptions,
    Memory,
    Port,
    RefitOptions,
    Tensor,
    WeightMemory,
)

_forks = 0  # of this process from its ancestors


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class _Engine(Handle, free="engine_free"):
    pass


class _Context(Handle, free="context_free"):
    groups: dict[str, Group]  # that it was made with


class Engine:
    """An engine, with the contexts that no call uses. Calls of an engine with own state take turns, since they need the same one."""

    def __init__(self, handle: _Engine, threads: int) -> None:
        self._handle = handle
        self._threads = threads
        self._check_indices, self._uses_graphs = 0, True
        self._idle: list[_Context] = []
        self._groups: dict[str, Group] = {}
        self._turn, self._turn_forks = threading.Lock(), _forks
        self._observer: Observer | None = None
        states = range(lib.engine_state_count(handle))
        self._has_own_state = any(lib.engine_state_input(handle, k) < 0 for k in states)
        self._output_dtypes = [dtype for _, dtype, *_ in self.outputs()]
        self._views: list[Callable[..., Any]] = []  # of each input
        self._names: list[str] = []  # of each input, for errors
        self._updated: list[int] = []
        for k, (name, *_) in enumerate(self.inputs()):
            is_updated = lib.engine_input_is_updated(handle, k) != 0
            self._views.append(arrays.view_updated if is_updated else arrays.view)
            self._names.append(f"input '{name}'")
            self._updated += [k] * is_updated

    @staticmethod
    def load(
        path: str,
        verify: int,
        trust: int,
        memory: int,
        threads: int,
        trusted_keys: str,
        without_weights: bool,
        weight_budget: str = "",
        gpu: int = 0,
        rank: str = "",
        cpu: str = "",
    ) -> Engine:
        options = _load_options(
            verify, trust, memory, trusted_keys, without_weights, weight_budget, gpu, rank, cpu
        )
        return Engine(_Engine.made(lib.engine_load, os.fsencode(path), byref(options)), threads)

    @staticmethod
    def load_memory(
        array: Any,
        verify: int = 0,
        trust: int = 0,
        threads: int = 0,
        trusted_keys: str = "",
        without_weights: bool = False,
        weight_budget: str = "",
        gpu: int = 0,
        rank: str = "",
        cpu: str = "",
    ) -> Engine:
        """The engine reads from the array's memory as long as it needs it."""
        options = _load_options(
            verify, trust, 0, trusted_keys, without_weights, weight_budget, gpu, rank, cpu
        )
        content = Tensor()
        viewed = arrays.view(array, content, "engine bytes")
        size = arrays.shape_of(content)[0]
        place = content.data + content.byte_offset
        owner = KEPT.add((array, viewed))
        made = _Engine.made(lib.engine_load_memory, place, size, KEPT.release, owner, byref(options))
        return Engine(made, threads)

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        with self._take_turn():
            return self._with_states(_Engine.made(lib.engine_copy, self._handle))

    def copy_to(self, gpu: int) -> Engine:
        with self._take_turn():
            return self._with_states(_Engine.made(lib.engine_copy_to, self._handle, gpu))

    def _with_states(self, handle: _Engine) -> Engine:
        twin = Engine(handle, self._threads)
        twin.set_running(self._check_indices, self._uses_graphs)
        twin._groups = self._groups
        if self._has_own_state:
            with self._context() as context, twin._context() as own:
                check(lib.context_copy_states(own, context))
        return twin

    def gpu(self) -> int:
        return lib.engine_gpu(self._handle)

    # ---- calls ----
    def call(self, arguments: tuple, rebuild: Callable[[list], Any]) -> Any:
        """Without the extension there is no faster way than `run`."""
        return NotImplemented

    def run(self, inputs: Sequence[Any]) -> list:
        """Outputs as arrays of the framework of the first input; without inputs of torch, if it is imported."""
        return self.run_as(inputs, arrays.is_torch(inputs[0]) if len(inputs) > 0 else arrays.has_torch())

    def run_as(self, inputs: Sequence[Any], as_torch: bool) -> list:
        if not self._has_own_state:
            return self._run(inputs, as_torch)
        with self._take_turn():
            return self._run(inputs, as_torch)

    def _run(self, inputs: Sequence[Any], as_torch: bool) -> list:
        count = len(inputs)
        tensors = (Tensor * count)()
        kept = []
        for k, value in enumerate(inputs):
            is_known = k < len(self._views)
            view = self._views[k] if is_known else arrays.view
            name = self._names[k] if is_known else "input"
            if k in self._updated:
                arrays.refuse_lazy(value, name)
            plain = arrays.resolved(value)
            kept.append((plain, view(plain, tensors[k], name)))
        if not as_torch:
            arrays.refuse_unless_in_numpy(self._output_dtypes)  # before states and arguments are updated
        pointers = (arrays.Output * len(self._output_dtypes))()
        outputs = list(pointers)  # once: each is an owner
        context = self._acquire()
        try:
            status = lib.context_run_owned(
                context, count, None, addressof(tensors), None, addressof(pointers)
            )
        finally:
            self._release(context)
        for k in self._updated:  # also after a failure, which may happen late
            if k < count:
                arrays.bump_version(inputs[k])
        if self._observer is not None:
            self._observer.raise_failure(status)
        check(status)
        return [output.array(as_torch) for output in outputs]

    def _acquire(self) -> _Context:
        while True:
            try:
                context = self._idle.pop()
            except IndexError:
                return self._new_context()
            if lib.context_is_usable(context):
                return context  # else a group of ranks has failed

    def _new_context(self) -> _Context:
        groups = self._groups  # another thread may bind others meanwhile
        bindings = bindings_of(groups)
        options = ContextOptions(
            threads=self._threads,
            group_count=len(bindings),
            check_indices=self._check_indices,
            without_cuda_graphs=int(not self._uses_graphs),
        )
        options.groups = (GroupBinding * len(bindings))(*bindings)
        context = _Context.made(lib.context_create_with, self._handle, byref(options))
        context.groups = groups
        return context

    def _release(self, context: _Context) -> None:
        if context.groups is self._groups:
            self._idle.append(context)

    def group_names(self) -> list[str]:
        names = (lib.engine_group_name(self._handle, k) for k in itertools.count())
        return [name.decode() for name in itertools.takewhile(lambda name: name is not None, names)]

    def groups(self) -> dict[str, Group]:
        return dict(self._groups)

    def set_groups(self, groups: Mapping[str, Group]) -> None:
        with self._take_turn():
            self._groups = dict(groups)
            self._idle.clear()

    @contextmanager
    def _context(self) -> Iterator[_Context]:
        context = self._acquire()
        try:
            yield context
        finally:
            self._release(context)

    def _take_turn(self) -> AbstractContextManager:
        if not self._has_own_state:
            return nullcontext()
        if self._turn_forks != _forks:  # its holder may be a thread that does not exist here
            self._turn, self._turn_forks = threading.Lock(), _forks
        return self._turn

    def set_running(self, check_indices: int, uses_graphs: bool) -> None:
        """For contexts that are made from now on: before the first call."""
        self._check_indices, self._uses_graphs = check_indices, uses_graphs

    def run_like(self, other: Engine) -> None:
        self._threads = other._threads
        self.set_running(other._check_indices, other._uses_graphs)

    def threads(self) -> int:
        with self._take_turn(), self._context() as context:
            return lib.context_threads(context)

    def memory(self) -> dict[str, int]:
        memory = Memory()
        with self._take_turn(), self._context() as context:
            check(lib.context_memory(context, byref(memory)))
        return {name: getattr(memory, name) for name, *_ in Memory._fields_[1:]}

    def weight_memory(self) -> dict[str, int]:
        memory = WeightMemory()
        check(lib.engine_weight_memory(self._handle, byref(memory)))
        return {name: getattr(memory, name) for name, *_ in WeightMemory._fields_[1:]}

    def set_weight_budget(self, budget: str) -> None:
        check(lib.engine_set_weight_budget(self._handle, budget.encode()))

    def reset_states(self) -> None:
        with self._take_turn(), self._context() as context:
            check(lib.context_reset_states(context))

    def set_profiling(self, on: bool) -> None:
        with self._take_turn(), self._context() as context:
            check(lib.context_set_profiling(context, int(on)))

    def profile(self) -> str:
        with self._take_turn(), self._context() as context:
            return text_of(lib.context_profile, context).decode()

    def set_observer(self, callback: Callable[[int, str, Any], None] | None) -> None:
        """Calls `callback(step, name, value)` for what later calls compute; None: no longer."""
        observer = None if callback is None else Observer(callback)
        with self._take_turn(), self._context() as context:
            check(lib.context_set_observer(context, Observer.function_of(observer), None))
            self._observer = observer

    # ---- files and weights ----
    def save(self, path: str) -> None:
        check(lib.engine_save(self._handle, os.fsencode(path)))

    def save_memory(self) -> bytes:
        return text_of(lib.engine_save_memory, self._handle)

    def refit(
        self, weights: Mapping[str, Any], partial: bool = False, keep: bool = False, rank: str = ""
    ) -> None:
        """keep: the arrays are the engine's from now on, and nobody changes them."""
        tensors = (Tensor * len(weights))()
        kept = [arrays.view(value, tensors[k], name) for k, (name, value) in enumerate(weights.items())]
        self._refit(list(weights), tensors, partial, rank, (weights, kept) if keep else None)

    def refit_from_files(self, files: Sequence[TensorFile], partial: bool, rank: str = "") -> None:
        rows = [row for file in files for row in file.tensors.items()]
        self._refit(
            [name for name, _ in rows], (Tensor * len(rows))(*(value for _, value in rows)), partial, rank
        )

    def _refit(self, names: list[str], tensors: Any, partial: bool, rank: str, kept: Any = None) -> None:
        options = RefitOptions(partial=int(partial), rank=rank.encode() or None)
        if kept is not None:
            options.release, options.owner = KEPT.release, KEPT.add(kept)
        check(lib.engine_refit(self._handle, len(names), pointers_to(names), tensors, byref(options)))

    def take_weights(self, copy: Engine) -> None:
        check(lib.engine_take_weights(self._handle, copy._handle))

    def weight_names(self) -> list[str]:
        count = lib.engine_weight_count(self._handle)
        return [lib.engine_weight_name(self._handle, k).decode() for k in range(count)]

    def knows_tensor(self, name: str) -> bool:
        return lib.engine_knows_tensor(self._handle, name.encode()) != 0

    # ---- descriptions ----
    def inspect(self) -> str:
        return text_of(lib.engine_inspect, self._handle).decode()

    def signature(self) -> str:
        return text_of(lib.engine_signature, self._handle).decode()

    def inputs(self) -> list[tuple]:
        return self._ports(lib.engine_input_count(self._handle), lib.engine_input)

    def outputs(self) -> list[tuple]:
        return self._ports(lib.engine_output_count(self._handle), lib.engine_output)

    def states(self) -> list[tuple]:
        return self._ports(lib.engine_state_count(self._handle), lib.engine_state)

    def _ports(self, count: int, get: Callable[..., Any]) -> list[tuple]:
        rows = []
        for k in range(count):
            port = Port()
            check(get(self._handle, k, byref(port)))
            axes = range(port.rank)
            dims = tuple(port.dims[axis].decode() for axis in axes)
            ranges = tuple((port.min[axis], port.max[axis]) for axis in axes)
            rows.append((port.name.decode(), port.dtype, dims, ranges))
        return rows

    def metadata(self) -> dict[str, str]:
        keys = [
            lib.engine_metadata_key(self._handle, k) for k in range(lib.engine_metadata_count(self._handle))
        ]
        return {key.decode(): lib.engine_metadata_value(self._handle, key).decode() for key in keys}


def _load_options(
    verify: int,
    trust: int,
    memory: int,
    trusted_keys: str,
    without_weights: bool,
    weight_budget: str,
    gpu: int,
    rank: str,
    cpu: str,
) -> LoadOptions:
    return LoadOptions(
        verify=verify,
        trust=trust,
        memory=memory,
        trusted_keys=os.fsencode(trusted_keys) or None,
        without_weights=int(without_weights),
        weight_budget=weight_budget.encode() or None,
        gpu=gpu,
        rank=rank.encode() or None,
        cpu=cpu.encode() or None,
    )


def metrics_text(names: Sequence[str], engines: Sequence[Engine]) -> str:
    """Counters of the engines under these names, for Prometheus."""
    held = [engine._handle for engine in engines]
    handles = (c_void_p * len(held))(*(handle.value for handle in held))
    texts = (c_char_p * len(held))(*(name.encode() for name in names))
    return text_of(lib.metrics_text, len(held), handles, texts).decode()
