# SPDX-License-Identifier: Apache-2.0
"""Runs a program on calibration data and observes values on the way."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ingot import compat
from ingot.errors import UserError, kind_of

Progress = Callable[[str, int, int, float], Any]
Observer = Callable[[torch.Tensor], None]


class _Watch(torch.nn.Module):
    def __init__(self, observe: Observer) -> None:
        super().__init__()
        self._observe = observe

    def forward(self, value: torch.Tensor) -> None:
        self._observe(value)


def observing(module: GraphModule, observers: Mapping[Node, Observer]) -> GraphModule:
    """The same program, sharing its weights, that also calls the observer of each of these nodes with its value."""
    with compat.without_own_deprecations():
        graph = copy.deepcopy(module.graph)
    by_name = {node.name: observe for node, observe in observers.items()}
    root = GraphModule(module, graph)
    for number, node in enumerate([node for node in graph.nodes if node.name in by_name]):
        root.add_submodule(f"_watch_{number}", _Watch(by_name[node.name]))
        with graph.inserting_after(node):
            graph.call_module(f"_watch_{number}", (node,))
    root.recompile()
    return root


def run(
    module: GraphModule,
    batches: Iterable[Any],
    observers: Mapping[Node, Observer],
    phase: str,
    progress: Progress | None,
) -> None:
    """progress: as for `ingot.compile`, called before each batch; the total is 0 where the data has no length.

    UserError (INGOT-U010) if it returns False, (INGOT-U025) if there is no data or the program does not take it.
    """
    total = _count_of(batches)
    watched, start, done = observing(module, observers), time.monotonic(), 0
    for batch in batches:
        remaining = (time.monotonic() - start) / done * (total - done) if done and total else -1.0
        if progress is not None and progress(phase, done, total, remaining) is False:
            raise UserError("the calibration was cancelled", code="INGOT-U010")
        args, kwargs = arguments_of(batch)
        try:
            with torch.no_grad():
                watched(*args, **kwargs)
        except Exception as error:
            raise UserError(
                f"the program does not take batch {done} of the calibration data: {error}",
                code="INGOT-U025",
                advice="give what the model's forward takes, in sizes for which it was exported",
            ) from error
        done += 1
    if not done:
        raise UserError("there is no calibration data", code="INGOT-U025")


def _count_of(batches: Iterable[Any]) -> int:
    """0 if unknown: a DataLoader of an IterableDataset has the method, and raises."""
    try:
        return len(batches)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return 0


@dataclass(frozen=True)
class Call:
    """The arguments of one call of a model."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def is_loop(data: Any) -> bool:
    return isinstance(data, (FunctionType, MethodType, functools.partial))


def calls_of(model: torch.nn.Module, loop: Callable[[torch.nn.Module], Any]) -> list[Call]:
    """The calls that a function makes of the model that it is given."""
    calls: list[Call] = []

    def record(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append(Call(args, kwargs))

    hook = model.register_forward_pre_hook(record, with_kwargs=True)
    try:
        with torch.no_grad():
            loop(model)
    finally:
        hook.remove()
    return calls


def arguments_of(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a batch of calibration data gives the model: a tensor, a tuple or list of arguments, or a dict of keyword arguments."""
    if isinstance(batch, Call):
        return batch.args, dict(batch.kwargs)
    if isinstance(batch, torch.Tensor):
        return (batch,), {}
    if isinstance(batch, Mapping):
        return (), dict(batch)
    if isinstance(batch, (tuple, list)):
        return tuple(batch), {}
    raise UserError(
        f"a batch of calibration data is {kind_of(batch)}",
        code="INGOT-U025",
        advice="give tensors, tuples of the model's arguments, or dicts of its keyword arguments",
    )
