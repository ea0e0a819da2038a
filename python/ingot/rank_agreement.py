# SPDX-License-Identifier: Apache-2.0
"""What the ranks of one program tell each other outside of calls, through the store at which torch's ranks met."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from ingot import ranks
from ingot.errors import DeviceError
from ingot.traffic import StoppedError

_LOOK_S, _LONGEST_LOOK_S = 2e-3, 0.1  # between two looks at the store

Use = tuple[str, int]  # a group's name, and how many staged programs used it before


class RankStoppedError(Exception):
    """Another rank takes no part any more."""

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(f"rank {rank} has stopped: {reason}")


class RankAgreement:
    """Answers of all ranks that a program's groups connect, directly or by way of others (the ranks of a mesh).

    All ranks make the same staged programs in the same order, so the n-th use of a group is the same program everywhere. Each
    question has a name, and each rank answers it once. Nothing blocks inside of the store, whose lock the process shares.
    """

    def __init__(self, names: Iterable[str]) -> None:
        from torch.distributed import PrefixStore, get_rank
        from torch.distributed.distributed_c10d import _get_default_store

        groups = [ranks.require_group(name) for name in sorted(set(names))]
        self.rank = get_rank()
        self._store = PrefixStore("ingot/staged", _get_default_store())
        self._uses = {
            (group.group_name, ranks.next_use(f"staged/{group.group_name}")): _members(group)
            for group in {group.group_name: group for group in groups}.values()
        }
        rows = [[name, count, members] for (name, count), members in self._uses.items()]
        for name, count in self._uses:
            self._store.set(f"{name}/{count}/{self.rank}", json.dumps(rows))
        self._use_of: dict[int, Use] = {self.rank: next(iter(self._uses))}
        self._key = ""

    @property
    def members(self) -> list[int]:
        return sorted(self._use_of)

    @property
    def leader(self) -> int:
        return self.members[0]

    def meet(self, is_stopped: Callable[[], bool], deadline: float = ranks.DEADLINE) -> None:
        """Finds all ranks of the program. Raises DeviceError, naming a rank that does not come."""
        uses, end = dict(self._uses), time.monotonic() + deadline
        found: set[tuple[Use, int]] = set()
        while missing := [
            (use, rank) for use, own in uses.items() for rank in own if (use, rank) not in found
        ]:
            (name, count), rank = missing[0]
            key = f"{name}/{count}/{rank}"
            for _look in _looks():
                if self._store.check([key]):
                    break
                if is_stopped():
                    raise StoppedError
                if time.monotonic() > end:
                    raise DeviceError(
                        f"rank {rank} did not begin the same staged build within {round(deadline * 1e3)} ms",
                        code="INGOT-D350",
                        advice="all ranks of a group compile the same programs in the same order",
                    )
            found.add(missing[0])
            uses |= {(other, number): members for other, number, members in json.loads(self._store.get(key))}
            self._use_of.setdefault(rank, (name, count))
        first = min(uses)
        self._key = f"{first[0]}/{first[1]}/of"

    def tell(self, question: str, answer: Any) -> None:
        self._store.set(f"{self._key}/{question}/{self.rank}", json.dumps(answer))

    def stop(self, reason: str) -> None:
        """This rank answers no more. Not for what it has answered already."""
        with contextlib.suppress(Exception):  # the store may be gone at exit
            for use in self._uses:
                self._store.set(_stop_key(use, self.rank), json.dumps(reason))

    def answers(self, question: str, among: Iterable[int], goes_on: Callable[[], None]) -> dict[int, Any]:
        """By rank. Raises RankStoppedError if one has stopped without an answer; `goes_on` may raise others."""
        found: dict[int, Any] = {}
        for rank in among:
            for _look in _looks():
                goes_on()
                # In this order: what a rank answered before it stopped counts, for all ranks alike.
                stopped = self._read(_stop_key(self._use_of[rank], rank))
                answer = self._read(f"{self._key}/{question}/{rank}")
                if answer is not None:
                    found[rank] = answer
                    break
                if stopped is not None:
                    raise RankStoppedError(rank, stopped)
        return found

    def _read(self, key: str) -> Any:
        return json.loads(self._store.get(key)) if self._store.check([key]) else None


def _stop_key(use: Use, rank: int) -> str:
    return f"{use[0]}/{use[1]}/stopped/{rank}"


def _looks() -> Iterable[None]:
    """Pauses between them grow."""
    pause = _LOOK_S
    while True:
        yield
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_LOOK_S)


def _members(group: Any) -> list[int]:
    from torch.distributed import get_process_group_ranks

    return sorted(get_process_group_ranks(group))
