# SPDX-License-Identifier: Apache-2.0
"""Staged builds of programs with collectives: all ranks change engines between the same two calls (docs/design/042-staged-builds.md)."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ingot import background, ranks
from ingot.errors import DeviceError
from ingot.rank_agreement import RankAgreement
from ingot.reporting import Report
from ingot.stages import Stage
from ingot.staging import BY_USER, NotTakenError, Prepared, Staged
from ingot.traffic import Quiet, StoppedError

_log = logging.getLogger("ingot")
_LOOK_S = 1e-3


class StagedRanks(Staged):
    """`Staged`, whose exchanges all ranks agree on.

    Calls are counted: collectives run in the same calls everywhere, so that the n-th call is the same on all ranks. When all have built
    a stage, the first rank proposes the number of a call before which engines change. Each rank answers how many calls it has begun,
    and from then on that call does not begin until all have answered. If none has begun it, all exchange; otherwise none does, and a
    later call is proposed.
    """

    def forget_threads(self) -> None:
        super().forget_threads()
        self._agreement: RankAgreement | None = None  # a forked child has none: its parent is the rank
        self._line = threading.Lock()  # of the three below, and of answers
        self._ended, self._is_inside = 0, False  # calls
        self._barrier: int | None = None  # the call that may not begin yet
        self._is_unwanted = False  # from the next exchange on
        self._has_met = False

    def start(self, owner: Any, report: Report, own_weights: bool) -> None:
        self._agreement = RankAgreement(self._group_names())
        super().start(owner, report, own_weights)

    # ---- for the module ----
    @contextmanager
    def call(self) -> Iterator[None]:
        self._wait_for_barrier()
        try:
            with super().call():
                yield
        except BaseException:
            self._is_inside = False  # not counted: before its first collective a call may be repeated
            if not self._has_groups():
                self.stop("the group of ranks has failed")
            raise
        with self._line:
            self._ended, self._is_inside = self._ended + 1, False

    def _wait_for_barrier(self) -> None:
        end = time.monotonic() + ranks.DEADLINE
        while True:
            with self._line:
                if self._barrier is None or self._ended < self._barrier:
                    self._is_inside = True
                    return
            if time.monotonic() > end:
                self.stop("the ranks did not agree in time")
                raise DeviceError(
                    f"the ranks did not agree on an exchange of engines within {round(ranks.DEADLINE)} s",
                    code="INGOT-D350",
                    advice="look for the rank that ended or hangs",
                )
            time.sleep(_LOOK_S)

    def _has_groups(self) -> bool:
        return all(group.is_usable() for group in ranks.connections_of(self._group_names()))

    def _group_names(self) -> list[str]:
        return [name for part in self.parts for name in part.core.group_names()]

    def stop(self, reason: str = BY_USER) -> None:
        """Once the other ranks have this one's answer, a user's wish is for the stages after it."""
        with self._line:
            if reason == BY_USER and self._barrier is not None:
                self._is_unwanted = True
                return
        super().stop(reason)

    # ---- in the background ----
    def _finish(self, reason: str) -> None:
        with self._line:
            super()._finish(reason)
            if self._barrier is None:
                self._tell_end()

    def _tell_end(self) -> None:
        if self._agreement is not None and any(stage.state == "is stopped" for stage in self.stages):
            self._agreement.stop(self._stop_reason)

    def _run(self, stage: Stage) -> None:
        """The thread of builds goes on with other modules, which other ranks may have built before this one."""
        built = self._outcome(stage, self._prepare)
        agreement = self._agreement
        if agreement is not None:
            settle = functools.partial(self._settle, stage, built, agreement)
            background.WORKER.start_beside("ingot-staged-ranks", settle)

    def _settle(self, stage: Stage, built: Prepared | None, agreement: RankAgreement) -> None:
        if built is None and not self.is_finished:
            self._tell_failure(stage, agreement)
        elif built is not None:
            self._outcome(stage, functools.partial(self._agree, agreement, built))
        if self._is_unwanted:
            self.stop()
        if self.is_finished:
            self._tell_end()
        else:
            self._submit()

    def _tell_failure(self, stage: Stage, agreement: RankAgreement) -> None:
        with self._guarded(agreement):
            agreement.tell(f"{stage.level}/built", f"it {stage.state}: {stage.reason}")

    def _agree(self, agreement: RankAgreement, built: Prepared, stage: Stage, _quiet: Quiet) -> None:
        with self._guarded(agreement):
            self._require_all_built(stage, agreement)
            self._agree_on_call(stage, agreement)
            try:
                self._replace(stage, *built)
            finally:
                self._barrier = None
        _log.info("staged build: %s", stage)

    @contextmanager
    def _guarded(self, agreement: RankAgreement) -> Iterator[None]:
        """Meets the other ranks; without them there are no further stages."""
        try:
            if not self._has_met:
                agreement.meet(lambda: self.is_finished)
                self._has_met = True
            yield
        except (NotTakenError, StoppedError):
            raise
        except Exception as error:
            self._barrier = None
            self.stop(str(error))

    def _require_all_built(self, stage: Stage, agreement: RankAgreement) -> None:
        question = f"{stage.level}/built"
        agreement.tell(question, "")
        for rank, failure in agreement.answers(question, agreement.members, self._require_wanted).items():
            if failure:
                raise NotTakenError(f"rank {rank} has no engine of level {stage.level}: {failure}")
        with self.lock:
            self._require_unwritten()

    def _agree_on_call(self, stage: Stage, agreement: RankAgreement) -> None:
        """Returns between two calls, of which the second waits for the end of the exchange."""
        number, attempt = 0, 0
        while True:
            name = f"{stage.level}/{attempt}"
            if agreement.rank == agreement.leader:
                agreement.tell(f"{name}/call", max(number, self._begun))
            proposed = agreement.answers(f"{name}/call", [agreement.leader], self._require_wanted)
            number = proposed[agreement.leader]
            self._answer(f"{name}/begun", number, agreement)
            begun = agreement.answers(f"{name}/begun", agreement.members, self._require_ranks)
            if max(begun.values()) <= number:
                break
            self._barrier = None
            number, attempt = max(begun.values()), attempt + 1
        while self._ended < number:
            self._require_ranks()
            time.sleep(_LOOK_S)

    @property
    def _begun(self) -> int:
        return self._ended + self._is_inside

    def _answer(self, question: str, number: int, agreement: RankAgreement) -> None:
        with self._line:
            self._require_wanted()
            agreement.tell(question, self._begun)
            if self._begun <= number:
                self._barrier = number

    def _require_ranks(self) -> None:
        self._require_wanted()
        if not self._has_groups():
            raise DeviceError("the group of ranks has failed", code="INGOT-D352")

    def _replace(self, stage: Stage, better: Sequence[Any], known: dict[str, Any]) -> None:
        with self.lock:
            self._follow(better, known)
            with self.gate.change():
                self._exchange(stage, better)

    def _compare(self, *_unused: Any) -> None:
        """One rank alone cannot run an engine with collectives: that the engine is better is only predicted."""
