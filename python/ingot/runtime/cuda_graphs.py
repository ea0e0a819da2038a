# SPDX-License-Identifier: Apache-2.0
"""One CUDA graph for a whole module: its engines, and what torch runs between them."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from ingot.errors import Error, first_line, require

_MOST_GRAPHS = 8
_MOST_SEEN = 256  # sizes that were called once


@dataclass
class _Graph:
    graph: torch.cuda.CUDAGraph
    inputs: list[torch.Tensor]  # the graph's own
    changed: list[int]  # inputs that a call writes
    outputs: Any


class CudaGraphs:
    """A module whose calls are replayed as one CUDA graph each.

    Call it as the module. Graphs are kept per sizes, strides, dtypes and other arguments (8 of them; the least recently used goes first),
    and captured at the second call. A replay copies the inputs into the graph's own, and what the call changes in them back. Python
    code between engines does not run in a replay. Where a call cannot be captured it runs as ever; `reasons` says why, per sizes.

    It is a context manager too: graphs are freed at its end.
    """

    def __init__(self, module: Callable[..., Any], pre_allocated_outputs: bool = False) -> None:
        """`pre_allocated_outputs`: the outputs lie in the graph's memory, and the next call overwrites them; else they are copied."""
        self.module = module
        self.reasons: dict[str, str] = {}
        self._clones = not pre_allocated_outputs
        self._graphs: OrderedDict[Hashable, _Graph | None] = OrderedDict()  # None: cannot be captured
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._pool: Any = None

    def __enter__(self) -> CudaGraphs:
        return self

    def __exit__(self, *unused: object) -> None:
        self.reset()

    def reset(self) -> None:
        """Frees all graphs, for example after the module's weights were changed."""
        if self._graphs:
            torch.cuda.synchronize()
        self._graphs.clear()
        self._seen.clear()
        self.reasons.clear()
        self._pool = None

    @property
    def captured(self) -> int:
        """How many graphs there are."""
        return sum(graph is not None for graph in self._graphs.values())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        reason = _refusal(leaves, tensors)
        if reason:
            self.reasons[_sizes(tensors)] = reason
            return self.module(*args, **kwargs)
        if not tensors or tensors[0].device.index == torch.cuda.current_device():
            return self._call(args, kwargs, leaves, tensors, spec)
        with torch.cuda.device(tensors[0].device):
            return self._call(args, kwargs, leaves, tensors, spec)

    def _call(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: list[Any],
        tensors: list[torch.Tensor],
        spec: _pytree.TreeSpec,
    ) -> Any:
        key = (spec, *map(_kind, leaves))
        if key not in self._graphs:
            if not self._is_second(key):
                return self.module(*args, **kwargs)
            self._graphs[key] = self._try_capture(leaves, spec)
            if len(self._graphs) > _MOST_GRAPHS:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        graph = self._graphs[key]
        return self.module(*args, **kwargs) if graph is None else self._replay(graph, tensors)

    def _is_second(self, key: Hashable) -> bool:
        if key in self._seen:
            return True
        self._seen[key] = None
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        return False

    def _try_capture(self, leaves: list[Any], spec: _pytree.TreeSpec) -> _Graph | None:
        outer = sys.exc_info()[1]  # that the caller handles
        try:
            return self._capture(leaves, spec)
        except (RuntimeError, Error) as error:  # the call itself follows, without a graph
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            self.reasons[_sizes(tensors)] = f"the capture failed: {first_line(_cause(error, outer))}"
            generator = torch.cuda.default_generators[torch.cuda.current_device()]
            generator.graphsafe_set_state(
                generator.clone_state()
            )  # the old state believes that it is captured
            return None

    def _capture(self, leaves: list[Any], spec: _pytree.TreeSpec) -> _Graph:
        own = [_own(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        inputs = [leaf for leaf in own if isinstance(leaf, torch.Tensor)]
        args, kwargs = _pytree.tree_unflatten(own, spec)
        versions = [tensor._version for tensor in inputs]
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        # Nothing runs here, so that what the module counts or caches is as without a graph.
        with torch.no_grad(), torch.cuda.graph(graph, pool=self._pool):
            outputs = self.module(*args, **kwargs)
        changed = [i for i, tensor in enumerate(inputs) if tensor._version != versions[i]]
        return _Graph(graph, inputs, changed, outputs)

    def _replay(self, graph: _Graph, tensors: list[torch.Tensor]) -> Any:
        for own, given in zip(graph.inputs, tensors, strict=True):
            own.copy_(given, non_blocking=True)
        graph.graph.replay()
        for position in graph.changed:
            tensors[position].copy_(graph.inputs[position], non_blocking=True)
        if not self._clones:
            return graph.outputs
        return _pytree.tree_map(
            lambda value: value.clone() if isinstance(value, torch.Tensor) else value, graph.outputs
        )


def enable_cudagraphs(module: Callable[..., Any], *, pre_allocated_outputs: bool = False) -> CudaGraphs:
    """`module`, compiled or not, with one CUDA graph for all of each call: see `CudaGraphs`.

    A module that is one engine has its graphs by itself, and needs this only for outputs in fixed memory.

        with ingot.runtime.enable_cudagraphs(compiled) as graphs:
            y = graphs(x)
    """
    require(module, Callable, "enable_cudagraphs takes a module")
    return CudaGraphs(module, pre_allocated_outputs)


def _own(tensor: torch.Tensor) -> torch.Tensor:
    """The graph's own input: with the strides of the caller's."""
    own = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return own.copy_(tensor)


def _refusal(leaves: list[Any], tensors: list[torch.Tensor]) -> str:
    """Why a call with these arguments cannot be captured, or nothing."""
    if not tensors:
        return "it has no tensors"
    for position, tensor in enumerate(tensors):
        if not tensor.is_cuda:
            return f"tensor {position} of its arguments is on {tensor.device}"
        if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True)):
            return f"tensor {position} of its arguments is expanded"
    for leaf in leaves:
        if not isinstance(leaf, (torch.Tensor, int, float, bool, str, type(None))):
            return f"an argument is a {type(leaf).__name__}"
    return ""


def _kind(leaf: Any) -> Hashable:
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.stride(), leaf.dtype, leaf.device
    return type(leaf), leaf


def _sizes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}" for tensor in tensors)


def _cause(error: BaseException, outer: BaseException | None) -> BaseException:
    """What went wrong first, behind `outer`: torch complains then that the capture was not completed."""
    while error.__context__ is not None and error.__context__ is not outer:
        error = error.__context__
    return error
