# SPDX-License-Identifier: Apache-2.0
"""Groups of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref

from ingot._ctypes.library import Handle, check, lib
from ingot._ctypes.structs import GroupBinding, GroupOptions


class _Group(Handle, free="group_free"):
    pass


class Group:
    """The connections of this rank to the others of its group."""

    def __init__(self, address: str, rank: int, size: int, name: str, deadline_ms: int) -> None:
        options = GroupOptions(
            name=name.encode(), address=address.encode(), rank=rank, size=size, deadline_ms=deadline_ms
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
