# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks that programs name: which there are, and their connections."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ingot import _core
from ingot.durations import seconds
from ingot.errors import DeviceError, UserError, require

if TYPE_CHECKING:
    from torch.fx import GraphModule

    from ingot.settings import Settings

DEADLINE = 60.0  # seconds
NAMESPACES = ("_c10d_functional::", "_c10d_functional_autograd::")  # of collectives
GROUP_ARGUMENTS = ("group_name", "group_names")
_NAMED = (*NAMESPACES, "ingot::size_of_rank")


def settings_for(module: GraphModule, settings: Settings) -> Settings:
    """`settings` with the rank that traced the graph, if it has collectives and torch knows the groups."""
    names = sorted(set(groups_in(module)))
    if not names or "rank" in settings.compiler:
        return settings
    groups = {name: _torch_group(name) for name in names}
    ranks = [f"{name}:{group.rank()}" for name, group in groups.items() if group is not None]
    return replace(settings, compiler={**settings.compiler, "rank": ",".join(ranks)}) if ranks else settings


def groups_in(module: GraphModule) -> Iterator[str]:
    """The names of groups in calls of functional collectives and sizes of ranks, also in those of nested graphs."""
    for child in module.modules():
        for node in getattr(getattr(child, "graph", None), "nodes", ()):
            schema = getattr(node.target, "_schema", None)
            if schema is None or not schema.name.startswith(_NAMED):
                continue
            position = next(
                (k for k, argument in enumerate(schema.arguments) if argument.name in GROUP_ARGUMENTS), None
            )
            if position is None:
                continue
            name = schema.arguments[position].name
            given = node.args[position] if position < len(node.args) else node.kwargs.get(name)
            yield from [given] if isinstance(given, str) else given or []


def connect_engine(engine: _core.Engine) -> None:
    """Connects the groups that an engine names and torch knows, unless they are connected: all ranks make the same engines."""
    connect_groups(engine.group_names())


def connect_groups(names: Iterable[str]) -> None:
    """The same, before a build, whose time does not count then: `at_work`."""
    for name in names:
        group = _torch_group(name)
        if group is not None:
            connected(name, group, DEADLINE)


def connections_of(names: Iterable[str]) -> list[_core.Group]:
    """Of torch's groups, those that are connected."""
    groups = [_torch_group(name) for name in names]
    known = [_connections.groups.get(group.group_name) for group in groups if group is not None]
    return [row[1] for row in known if row is not None]


def next_use(name: str) -> int:
    """How often this was asked for before, by all ranks alike."""
    return _connections.next_of(name)


def require_group(name: str) -> Any:
    """torch's group, by which ranks agree on the stages of a build."""
    group = _torch_group(name)
    if group is None:
        raise UserError(
            f"staged builds agree by way of torch, which has no process group '{name}'",
            code="INGOT-U353",
            advice="call torch.distributed.init_process_group on all ranks, or leave the option staged out",
        )
    return group


def rank_text(rank: int | Mapping[str, int] | None) -> str:
    """Which parts of sharded weights this rank reads: what the user gives, or the ranks in torch's groups."""
    if isinstance(rank, int):
        return str(rank)
    if rank is None:
        rank = {}
        for group in torch_groups():  # the runtime knows other sources
            rank[group.group_name] = group.rank()
            if alias_of(group):
                rank[alias_of(group)] = group.rank()
    return ",".join(f"{name}:{number}" for name, number in rank.items() if number >= 0)


def alias_of(group: Any) -> str:
    """What the user called the group: the same on ranks that have other groups of that kind. "" if it is not the only one here."""
    alias = group.group_desc
    if alias in ("", "undefined", "default_pg"):
        return ""
    return alias if [each.group_desc for each in torch_groups()].count(alias) == 1 else ""


def torch_groups() -> list[Any]:
    """Those of this rank."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return []
    return list(distributed.distributed_c10d._world.pg_names)


def _torch_group(name: str) -> Any:
    """torch's process group of that name, or alias; None if there is none, or torch is not used."""
    groups = torch_groups()
    by_name = {group.group_name: group for group in groups}
    return by_name.get(name) or next((group for group in groups if alias_of(group) == name), None)


class _Connections:
    """Those of this process, by the names of torch's groups. torch's groups are found by name too."""

    def __init__(self) -> None:
        self.groups: dict[str, tuple[Any, _core.Group]] = {}
        self.joined: dict[str, int] = {}  # how often, so that ranks agree on a key of the store
        self._working = 0  # builds under way
        self._works: list[_core.GroupWork] = []
        self._lock = threading.Lock()

    def add(self, name: str, group: Any, made: _core.Group) -> None:
        with self._lock:
            self.groups[name] = (group, made)
            if self._working:
                self._works.append(_core.GroupWork(made))

    def next_of(self, name: str) -> int:
        """How often it was asked for before, by all ranks alike."""
        count = self.joined.get(name, 0)
        self.joined[name] = count + 1
        return count

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with self._lock:
            if not self._working:
                self._works = [_core.GroupWork(made) for _, made in self.groups.values()]
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working -= 1
                ended = [] if self._working else self._works
                self._works = self._works if self._working else []
            for work in ended:
                work.end()


_connections = _Connections()


@contextmanager
def at_work() -> Iterator[None]:
    """Meanwhile the other ranks of all groups, also of those that are connected in the block, hear that this one is alive: their
    collectives wait for it."""
    with _connections.at_work():
        yield


def connected(name: str, group: Any, deadline: float, address: str | None = None) -> _core.Group:
    """The connections of a group of torch. All ranks call this, in the same order, before the first use and after a failure."""
    known = _connections.groups.get(group.group_name)
    if known is not None and known[0] is group and known[1].is_usable():
        made = known[1]
    else:
        count = _connections.next_of(group.group_name)
        address = _shared_address(group.group_name, group, count, deadline, address)
        made = joined(address, group.rank(), group.size(), group.group_name, deadline)
        _connections.add(group.group_name, group, made)
        _core.share_group(group.group_name, made)
    if name != group.group_name:
        _core.share_group(name, made)
    return made


def joined(
    address: str | _core.GroupListener, rank: int, size: int, name: str, deadline: float
) -> _core.Group:
    require(address, (str, _core.GroupListener), 'address must be "host:port" or what listen returned')
    for what, value in (("rank", rank), ("size", size)):
        require(value, int, f"{what} must be an integer")
        if not 0 <= value < 2**31:
            raise UserError(f"{what} {value} is out of range", code="INGOT-U353")
    require(name, str, "name must be a str")
    listener = None if isinstance(address, str) else address
    text = address if listener is None else ""
    milliseconds = max(1, round(seconds(deadline, "deadline") * 1000))
    return _core.Group(text, rank, size, name, milliseconds, listener)


def _shared_address(
    name: str, group: Any, count: int, deadline: float, given: str | None
) -> str | _core.GroupListener:
    """The address that rank 0 of the group was given, or where it listens, by way of the store that torch's ranks met at."""
    from torch.distributed import PrefixStore
    from torch.distributed.distributed_c10d import _get_default_store

    if group.size() == 1:
        return "127.0.0.1:0"
    default = _get_default_store()
    store = PrefixStore(f"ingot/{name}", default)
    key = f"address/{count}"
    if group.rank() == 0:
        listener = None if given else _core.GroupListener(f"{_own_host(default)}:0")
        store.set(key, given or listener.address())
        return given or listener
    if given:
        return given
    try:
        store.wait([key], timedelta(seconds=seconds(deadline, "deadline")))
    except Exception as error:
        raise DeviceError(
            f"group '{name}': rank 0 did not come within {round(deadline * 1000)} ms",
            code="INGOT-D350",
            advice="docs/ranks.md tells what each rank needs to find the others",
        ) from error
    return store.get(key).decode()


def _own_host(store: Any) -> str:
    """The address of this machine on the way to the store, which the other ranks can reach too; 127.0.0.1 for a store that is a file."""
    while (inner := getattr(store, "underlying_store", None)) is not None:
        store = inner
    host = getattr(store, "host", None)
    if host is None:
        return "127.0.0.1"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # sends nothing
            own = probe.getsockname()[0]
    except OSError as error:
        raise UserError(
            f"no address of this machine is known that other ranks could reach: {host}: {error}",
            code="INGOT-U353",
            advice="give one: ingot.distributed.connect(address=)",
        ) from error
    return f"[{own}]" if ":" in own else own


def shards_of(module: Any) -> list[str]:
    """An entry "NAME:AXIS/PARTS" per axis of a DTensor of the module that a group divides, with "@GROUP" if there are several groups."""
    from torch.distributed.tensor import DTensor

    named = [*module.named_parameters(), *module.named_buffers()]
    return [entry for name, value in named if isinstance(value, DTensor) for entry in _entries(name, value)]


def _entries(name: str, value: Any) -> Iterator[str]:
    from torch.distributed.tensor import Replicate, Shard

    parts = [1] * value.ndim
    for dim, placement in enumerate(value.placements):
        if isinstance(placement, Replicate):
            continue
        if type(placement) is not Shard:
            raise UserError(
                f"'{name}' is placed as {placement}, which is not a part of a tensor", code="INGOT-U356"
            )
        group = value.device_mesh.get_group(dim)
        axis = placement.dim % value.ndim
        parts[axis] *= group.size()
        extent, is_last = value.shape[axis], value.device_mesh.ndim == 1
        if extent % parts[axis] and is_last:
            yield f"{name}:{axis}/{'+'.join(map(str, _chunks(extent, group.size())))}"
            continue
        if extent % parts[axis]:
            raise UserError(
                f"{extent} elements of axis {axis} of '{name}' cannot be divided evenly among {parts[axis]} ranks",
                code="INGOT-U356",
                advice="each rank builds its own engine, with its part of the weights",
            )
        suffix = f"@{group.group_name}" if value.device_mesh.ndim > 1 else ""
        yield f"{name}:{axis}/{group.size()}{suffix}"


def _chunks(extent: int, parts: int) -> list[int]:
    """How torch divides them: the last parts may be smaller, or empty."""
    largest = -(-extent // parts)
    return [max(0, min(largest, extent - largest * part)) for part in range(parts)]


def size_of_rank(group_names: Iterable[str], counts: Iterable[int], sizes: Sequence[int]) -> int:
    """The entry of this rank in a row-major table over its positions in groups of torch."""
    entry = 0
    for name, count in zip(group_names, counts, strict=True):
        entry = entry * count + torch_group(name).rank()
    return sizes[entry]


def torch_group(group: Any) -> Any:
    """The process group that a user means: one, its name, or None for the default one."""
    from torch import distributed

    if not distributed.is_available() or not distributed.is_initialized():
        raise UserError(
            "torch.distributed has no process group",
            code="INGOT-U353",
            advice="call torch.distributed.init_process_group, or join a group by its address: ingot.distributed.join",
        )
    if group is None:
        return distributed.group.WORLD
    if isinstance(group, str):
        found = _torch_group(group)
        if found is None:
            raise UserError(f"torch.distributed has no process group '{group}'", code="INGOT-U353")
        return found
    return group
