# SPDX-License-Identifier: Apache-2.0
"""Engines that several ranks run together: processes, or threads of one (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ingot import _core, ranks
from ingot.engine import Engine
from ingot.errors import UserError, require

__all__ = [
    "bind",
    "connect",
    "distributed_context",
    "group_names",
    "join",
    "listen",
    "set_distributed_mode",
    "shards_of",
]


def listen(address: str = "127.0.0.1:0") -> _core.GroupListener:
    """A port at which rank 0 of a group listens from now on, so that the others can be told where: `listener.address()`.

    address: "host:port" of this machine; port 0: one that is free.
    """
    require(address, str, 'address must be "host:port"')
    return _core.GroupListener(address)


def join(
    address: str | _core.GroupListener,
    rank: int,
    size: int,
    *,
    name: str = "",
    deadline: float = ranks.DEADLINE,
) -> _core.Group:
    """Joins a group without torch: returns when all ranks have called this, each with its own `rank`.

    address: "host:port", at which rank 0 listens; rank 0 may pass what `listen` returned.
    deadline: seconds for all ranks to join, and for each collective: when a rank ends, hangs or runs something else, the calls of
    all ranks raise DeviceError within it, and the group is unusable from then on.
    name: for messages.
    """
    return ranks.joined(address, rank, size, name, deadline)


def connect(
    group: Any = None, *, deadline: float = ranks.DEADLINE, address: str | None = None
) -> _core.Group:
    """Connects the ranks of a group of torch.distributed: a process group or its name, by default that of all ranks.

    All of its ranks call this. Engines find the group by its name. Building and loading engines connects the groups that they
    name, with a deadline of 60 seconds: call this before for another one, and after a failure for a new connection.

    address: "host:port" of the group's rank 0, at which it listens; by default that of the network on which it reaches torch's store, or
    127.0.0.1 if the store is a file. Needed from rank 0 only.
    """
    found = ranks.torch_group(group)
    return ranks.connected(found.group_name, found, deadline, address)


def group_names(module: Any) -> list[str]:
    """The groups that the collectives of an engine, or of a compiled module, name."""
    names = [name for engine in _engines_of(module) for name in engine.group_names()]
    return list(dict.fromkeys(names))


def bind(module: Any, groups: _core.Group | Mapping[str, _core.Group]) -> None:
    """Binds the groups of an engine or a compiled module, for threads that are ranks, or programs without torch.

    groups: by the names that the module has for them (`group_names`), or one for all. Key-value caches and other states of an
    engine's own start anew.
    """
    engines = _engines_of(module)
    for group in groups.values() if isinstance(groups, Mapping) else [groups]:
        require(group, _core.Group, "a group is what join or connect returned")
    given = groups if isinstance(groups, Mapping) else dict.fromkeys(group_names(module), groups)
    _require_known(given, group_names(module))
    for engine in engines:
        names = engine.group_names()
        engine.set_groups({name: given[name] for name in names if name in given})


def shards_of(module: Any) -> list[str]:
    """The option `shards` for a model that was divided by torch: which parts of its parameters and buffers, DTensors, this rank has.

    For `ingot.compile(..., shards=shards_of(divided))` of a module with the same names whose parameters are plain tensors of the parts.
    UserError for parts of different sizes, and for placements that are not parts.
    """
    require(getattr(module, "named_parameters", None), Callable, "shards_of takes a module")
    return ranks.shards_of(module)


def set_distributed_mode(group: Any, module: Any) -> Any:
    """Lets the engines of a compiled module use a group of torch.distributed, whatever their programs call theirs; returns the module."""
    bind(module, connect(group))
    return module


@contextmanager
def distributed_context(group: Any, module: Any = None) -> Iterator[Any]:
    """Within the block, the engines of `module` use a group of torch.distributed; yields the module.

    Then they use the groups of before again. As with `bind`, states of an engine's own start anew, at the beginning and at the end.
    Without a module the group is connected, so that engines that name it find it.
    """
    connection = connect(group)
    if module is None:
        yield None
        return
    before = [(engine, engine.groups()) for engine in _engines_of(module)]
    bind(module, connection)
    try:
        yield module
    finally:
        for engine, groups in before:
            engine.set_groups(groups)


def _require_known(given: Mapping[str, _core.Group], names: list[str]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(f"'{name}'" for name in names)
        raise UserError(
            f"the module has no group '{unknown[0]}'",
            code="INGOT-U352",
            advice=f"its collectives name {known}" if names else "it has no collectives",
        )


def _engines_of(module: Any) -> list[_core.Engine]:
    if isinstance(module, Engine):
        return [module._core]
    from ingot.front import report

    try:
        return list(report(module).engines)
    except UserError:
        raise UserError(
            f"{type(module).__name__} has no engines",
            code="INGOT-U007",
            advice="pass an engine, what ingot.compile or ingot.load returned, or what torch.compile did, after its first call",
        ) from None
