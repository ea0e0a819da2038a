# SPDX-License-Identifier: Apache-2.0
"""What ranks tell each other while they build one program for all of them, by way of the store that torch's ranks met at."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ingot import ranks
from ingot.errors import DeviceError, Error


@dataclass
class _Build:
    """One that is under way."""

    store: Any
    numbers: Iterator[int] = field(default_factory=itertools.count)  # of its texts
    has_failed: bool = False  # on another rank, which says why


class _Builds:
    """Those of this process."""

    def __init__(self) -> None:
        self.by_group: dict[str, _Build] = {}
        self.counts: dict[str, int] = {}  # by group: how many there were
        self.call = ""  # of the user's, which is under way: what it compiles
        self.has_begun = False  # a build in this call
        # Calls that failed one after another before their builds began: what they were to compile, and why they failed. Which groups
        # these builds were for is not known before the next one.
        self.failed: list[tuple[str, str]] = []
        self.counts_before: dict[str, int] = {}  # these calls, in the groups that they may have been for

    def fail(self, reason: str) -> None:
        counts = {group.group_name: self.counts.get(group.group_name, 0) for group in ranks.torch_groups()}
        if self.counts_before != counts:
            self.failed, self.counts_before = [], counts
        self.failed.append((self.call, reason))
        self.show_failures()

    def show_failures(self) -> None:
        from torch.distributed import get_rank

        _shared_store("calls").set(str(get_rank()), json.dumps([self.counts_before, self.failed]))


_builds = _Builds()


@contextmanager
def one_call(what: str) -> Iterator[None]:
    """A call of the user's on all ranks that ends in a build of all of them. Where it fails on one before the build, those that wait
    for it in `shared_texts` hear of it. `what`: the same on all ranks, which tells it from others."""
    if not ranks.torch_groups():
        yield
        return
    _builds.call, _builds.has_begun = what, False
    try:
        yield
    except BaseException as error:
        if not _builds.has_begun:
            _builds.fail(_reason(error))
        raise
    finally:
        _builds.call = ""


@contextmanager
def one_build(group: Any) -> Iterator[None]:
    """A build that all ranks of a group of torch do at the same time. Where it fails on one, the others hear of it in `shared_texts`."""
    name = group.group_name
    if name in _builds.by_group:  # which is part of one that is under way
        yield
        return
    _builds.has_begun = True
    build = _builds.by_group[name] = _Build(_next_store(group))
    try:
        yield
    except BaseException as error:
        if not build.has_failed:
            build.store.set(f"failed/{group.rank()}", _reason(error))
        raise
    finally:
        del _builds.by_group[name]


def _next_store(group: Any) -> Any:
    """Of the next build of the group; those before which this rank failed are the others' alone."""
    name = group.group_name
    number = _builds.counts.get(name, 0)
    if _builds.failed and _builds.counts_before.get(name) == number:
        are_others = True  # what failed was for other groups
        for what, _ in _builds.failed:
            call = what if what == _builds.call else _call_of(group, number)
            number += what == call
            are_others = are_others and call not in (what, None)
        if not are_others:
            _builds.counts_before = {name: _builds.counts_before[name]}
            _builds.show_failures()
    _builds.counts[name] = number + 1
    store = _store_of(name, number)
    store.set("what", _builds.call)
    return store


def _call_of(group: Any, number: int) -> str | None:
    """What the others build there; None if all of them failed before."""
    store = _store_of(group.group_name, number)

    def found() -> str | None:
        if store.check(["what"]):
            return store.get("what").decode()
        are_all = all(_failed_call(group, rank, number) for rank in range(group.size()))
        return "" if are_all else None

    return _wait_for(found, group, "no rank built") or None


def _store_of(group: str, number: int) -> Any:
    return _shared_store(f"builds/{group}/{number}")


def _reason(error: BaseException) -> str:
    """Of torch's errors, which may have many lines, the first."""
    if isinstance(error, Error):
        return str(error)
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])


def _shared_store(name: str) -> Any:
    from torch.distributed import PrefixStore
    from torch.distributed.distributed_c10d import _get_default_store

    return PrefixStore(f"ingot/{name}", _get_default_store())


def shared_texts(group: Any, text: str) -> list[str]:
    """What each rank of a group of torch passes to this call, by rank. Within `one_build` of it."""
    build = _builds.by_group[group.group_name]
    number = next(build.numbers)
    build.store.set(f"{number}/{group.rank()}", text)
    return [_text_of(rank, f"{number}/{rank}", build, group) for rank in range(group.size())]


def _text_of(rank: int, key: str, build: _Build, group: Any) -> str:
    def found() -> str | None:
        if build.store.check([key]):
            return build.store.get(key).decode()
        for other in range(group.size()):
            failure = _failure_of(other, build.store, group)
            if failure is not None:
                build.has_failed = True
                raise DeviceError(
                    f"group '{group.group_name}': rank {other} did not build the program: {failure}",
                    code="INGOT-D350",
                    advice='with rank="all" all ranks build at the same time: mend what is wrong there, and build on all of them',
                )
        return None

    return _wait_for(found, group, f"rank {rank} did not build")


def _wait_for(found: Callable[[], str | None], group: Any, failure: str) -> str:
    """Nothing blocks inside of the store, whose lock the process shares."""
    end, pause = time.monotonic() + ranks.DEADLINE, 2e-3
    while (text := found()) is None:
        if time.monotonic() > end:
            raise DeviceError(
                f"group '{group.group_name}': {failure} the program within {round(ranks.DEADLINE)} s",
                code="INGOT-D350",
                advice='with rank="all" all ranks build at the same time',
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return text


def _failure_of(rank: int, store: Any, group: Any) -> str | None:
    """Of that rank of the group: in this build, or in the call that was to begin it."""
    key = f"failed/{rank}"
    if store.check([key]):
        return store.get(key).decode()
    what, reason = _failed_call(group, rank, _builds.counts[group.group_name] - 1) or ("", None)
    return reason if what == _builds.call else None


def _failed_call(group: Any, rank: int, number: int) -> tuple[str, str] | None:
    """What that rank was to compile in that build if it was for this group, and why it failed before."""
    from torch.distributed import get_global_rank

    calls, caller = _shared_store("calls"), str(get_global_rank(group, rank))
    counts, rows = json.loads(calls.get(caller)) if calls.check([caller]) else ({}, [])
    position = number - counts.get(group.group_name, number + 1)
    return tuple(rows[position]) if 0 <= position < len(rows) else None
