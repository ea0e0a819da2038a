# SPDX-License-Identifier: Apache-2.0
"""What ranks tell each other while they build one program for all of them, by way of the store that torch's ranks met at."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from typing import Any

from ingot import held_groups, ranks
from ingot.errors import DeviceError, Error


@dataclass
class _Build:
    """One that is under way."""

    store: Any
    numbers: Iterator[int] = field(default_factory=itertools.count)  # of its texts
    has_failed: bool = False  # on another rank, which says why


@dataclass
class _Failure:
    """Of a call, before its build began."""

    call: str  # what it was to compile
    reason: str
    # The groups that the build may have been for: which of their builds it was, or, while that is not known, the first that it may be.
    groups: dict[str, int]


class _Call(threading.local):
    """A thread's call of the user's that is under way."""

    what = ""  # it compiles
    has_begun = False  # a build


class _Builds:
    """Those of this process."""

    def __init__(self) -> None:
        self.by_group: dict[str, _Build] = {}
        self.counts: dict[str, int] = {}  # by group: how many there were
        self.failed: list[_Failure] = []  # the last ones

    def fail(self, reason: str, names: list[str] | None) -> None:
        """In groups of these names; None: in any."""
        groups = [group for group in ranks.torch_groups() if names is None or group.group_name in names]
        numbers = {group.group_name: _next_number(group) for group in groups}
        self.failed = [*self.failed[1 - _KEPT :], _Failure(_call.what, reason, numbers)]
        self.show_failures()

    def show_failures(self) -> None:
        from torch.distributed import get_rank

        rows = [astuple(failure) for failure in self.failed]
        _shared_store("calls").set(str(get_rank()), json.dumps(rows))


_KEPT = 64  # failures that others may still ask for
_call, _builds = _Call(), _Builds()


@contextmanager
def one_call(what: str, model: Any) -> Iterator[None]:
    """A call of the user's on all ranks that ends in a build of all of them. Where it fails on one before the build, those that wait
    for it in `shared_texts` hear of it. `what`: the same on all ranks, which tells it from others."""
    if _call.what or not ranks.torch_groups():
        yield
        return
    _call.what, _call.has_begun = what, False
    try:
        yield
    except BaseException as error:
        if not _call.has_begun:
            _builds.fail(_reason(error), held_groups.names_in(model))
        raise
    finally:
        _call.what = ""


@contextmanager
def one_build(group: Any) -> Iterator[None]:
    """A build that all ranks of a group of torch do at the same time. Where it fails on one, the others hear of it in `shared_texts`."""
    name = group.group_name
    if name in _builds.by_group:  # which is part of one that is under way
        yield
        return
    _call.has_begun = True
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
    first = number = _next_number(group)
    open_failures = [each for each in _builds.failed if each.groups.get(name, -1) >= first]
    for failure in open_failures:
        what = failure.call if failure.call == _call.what else _call_of(group, number)
        if failure.call == what:
            failure.groups = {name: number}
            number += 1
        elif what is not None:
            del failure.groups[name]
    if open_failures:
        _builds.show_failures()
    _builds.counts[name] = number + 1
    store = _store_of(name, number)
    store.set("what", _call.what)
    return store


def _next_number(group: Any) -> int:
    """Without the builds that the others gave up, because this rank did not come: what failed here before nothing could tell them."""
    number = _builds.counts.get(group.group_name, 0)
    while _store_of(group.group_name, number).check([f"missed/{group.rank()}"]):
        number += 1
    return number


def _call_of(group: Any, number: int) -> str | None:
    """What the others build there; None if all of them failed before."""

    def found() -> str | None:
        what = _what(group.group_name, number)
        are_all = what is None and all(_failed_call(group, rank, number) for rank in range(group.size()))
        return "" if are_all else what

    return _wait_for(found, group, "no rank built") or None


def _what(group: str, number: int) -> str | None:
    store = _store_of(group, number)
    return store.get("what").decode() if store.check(["what"]) else None


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
    def shown() -> str | None:
        return build.store.get(key).decode() if build.store.check([key]) else None

    def found() -> str | None:
        if (text := shown()) is not None:
            return text
        for other in range(group.size()):
            failure = _failure_of(other, build.store, group)
            if failure is None:
                continue
            if (text := shown()) is not None:
                return text  # a rank that had all texts before failed by them
            build.has_failed = True
            raise DeviceError(
                f"group '{group.group_name}': rank {other} did not build the program: {failure}",
                code="INGOT-D350",
                advice='with rank="all" all ranks build at the same time: mend what is wrong there, and build on all of them',
            )
        return None

    return _wait_for(found, group, f"rank {rank} did not build", build)


def _wait_for(found: Callable[[], str | None], group: Any, failure: str, build: _Build | None = None) -> str:
    """Nothing blocks inside of the store, whose lock the process shares."""
    end, pause = time.monotonic() + ranks.DEADLINE, 2e-3
    while (text := found()) is None:
        if time.monotonic() > end:
            if build is not None:
                _give_up(build, group)
            raise DeviceError(
                f"group '{group.group_name}': {failure} the program within {round(ranks.DEADLINE)} s",
                code="INGOT-D350",
                advice='with rank="all" all ranks build at the same time: look for what is wrong there, and build on all of them',
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return text


def _give_up(build: _Build, group: Any) -> None:
    """Tells the ranks that did not come that the others' next build is another one."""
    for rank in range(group.size()):
        if not build.store.check([f"0/{rank}"]) and not build.store.check([f"failed/{rank}"]):
            build.store.set(f"missed/{rank}", "")


def _failure_of(rank: int, store: Any, group: Any) -> str | None:
    """Of that rank of the group: in this build, or in the call that was to begin it."""
    key = f"failed/{rank}"
    if store.check([key]):
        return store.get(key).decode()
    failure = _failed_call(group, rank, _builds.counts[group.group_name] - 1)
    return None if failure is None else failure.reason


def _failed_call(group: Any, rank: int, number: int) -> _Failure | None:
    """How that rank failed before that build. Of what it failed to compile, the n-th that was for this group is the n-th that the
    others built there."""
    from torch.distributed import get_global_rank

    calls, caller = _shared_store("calls"), str(get_global_rank(group, rank))
    rows = json.loads(calls.get(caller)) if calls.check([caller]) else []
    at = 0
    for failure in itertools.starmap(_Failure, rows):
        if group.group_name not in failure.groups:
            continue
        at = max(at, failure.groups[group.group_name])
        if _what(group.group_name, at) not in (failure.call, None):
            continue
        if at == number:
            return failure
        at += 1
    return None
