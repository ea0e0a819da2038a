# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref

from ingot._ctypes.library import Handle, check, lib
from ingot._ctypes.structs import GroupBinding, GroupOptions


class _Group(Handle, free="group_free"):
    pass


class _Listener(Handle, free="group_listener_free"):
    pass


class _Work(Handle, free="group_end_work"):
    pass


class GroupListener:
    """A port at which rank 0 listens before the ranks meet."""

    def __init__(self, address: str) -> None:
        self.handle = _Listener.made(lib.group_listen, address.encode())

    def address(self) -> str:
        return lib.group_listener_address(self.handle).decode()


class GroupWork:
    """Tells the other ranks that this one is alive, until `end`."""

    def __init__(self, group: Group) -> None:
        self._handle: _Work | None = _Work.made(lib.group_begin_work, group.handle)

    def end(self) -> None:
        self._handle = None


class Group:
    """The connections of this rank to the others of its group."""

    def __init__(
        self,
        address: str,
        rank: int,
        size: int,
        name: str,
        deadline_ms: int,
        listener: GroupListener | None = None,
    ) -> None:
        options = GroupOptions(
            name=name.encode(),
            address=address.encode(),
            rank=rank,
            size=size,
            deadline_ms=deadline_ms,
            listener=None if listener is None else listener.handle.value,
        )
        self.handle = _Group.made(lib.group_join, byref(options))

    def rank(self) -> int:
        return lib.group_rank(self.handle)

    def size(self) -> int:
        return lib.group_size(self.handle)

    def is_usable(self) -> bool:
        return lib.group_is_usable(self.handle) != 0


def share_group(name: str, group: Group | None) -> None:
    check(lib.group_share(name.encode(), None if group is None else group.handle))


def bindings_of(groups: Mapping[str, Group]) -> tuple[GroupBinding, ...]:
    return tuple(GroupBinding(name=name.encode(), group=group.handle.value) for name, group in groups.items())
