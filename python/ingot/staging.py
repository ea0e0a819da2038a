# SPDX-License-Identifier: Apache-2.0
"""Staged builds: engines run while better ones are built (docs/design/042-staged-builds.md)."""

from __future__ import annotations

import copy
import functools
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ingot import background
from ingot.errors import Error, UserError, first_line
from ingot.gate import Gate
from ingot.reporting import Report
from ingot.staged_part import Better, StagedPart, bits_that_differ, times_of
from ingot.stages import Stage
from ingot.traffic import Quiet, StoppedError

_log = logging.getLogger("ingot")
_SLOWER = 1.05  # times as long as before: not taken
BY_USER = "it was stopped"
_T = TypeVar("_T")
Prepared = tuple[list[Better], dict[str, Any]]  # better engines, and the weights that were refitted into them


class NotTakenError(Exception):
    """Why the running engines stay. Later stages may still be better."""


class Staged:
    """The engines of one graph, and the stages in the background that replace them together, between two calls.

    Calls go through `call()`. `lock` is held while weights are replaced, and while engines are.
    """

    def __init__(
        self,
        parts: Sequence[StagedPart],
        levels: Sequence[int],
        first_level: int,
        same_bits: bool = False,
        threads: int = 1,
    ) -> None:
        self.parts, self.same_bits, self.threads = list(parts), same_bits, threads
        self.stages = [Stage(first_level, "runs"), *(Stage(level) for level in levels)]
        self.weights: dict[str, Any] = {}  # new values, since the builders captured the program
        self._start = time.monotonic()
        self._versions: list[tuple[str, Any, int]] | None = None
        self.gate = Gate()
        self.forget_threads()

    def forget_threads(self) -> None:
        self.gate.forget_threads()
        self.lock = threading.RLock()
        self._state = threading.Lock()  # of the stages, held for a moment
        is_finished = hasattr(self, "_finished") and self.is_finished
        self._finished, self._stop_reason = threading.Event(), ""
        self._awaits_call = False
        if is_finished:
            self._finished.set()

    def __deepcopy__(self, memo: dict[int, Any]) -> Staged:
        """The copy goes on from the engines that run now, once it is started."""
        with self.lock:
            twin = copy.copy(self)
            memo[id(self)] = twin
            twin.parts, twin.stages = copy.deepcopy((self.parts, self.stages), memo)
            twin.weights = dict(self.weights)
            twin.gate = Gate()
            twin.forget_threads()
        for stage in twin.stages:
            if stage.state == "is built":
                stage.state = "waits"
        return twin

    # ---- for the module ----
    @property
    def is_finished(self) -> bool:
        return self._finished.is_set()

    @contextmanager
    def call(self) -> Iterator[None]:
        with background.TRAFFIC.call(), self.gate.call():
            yield
        if self._awaits_call and self._has_samples():
            self._submit_once()

    def _submit_once(self) -> None:
        """Of several calls that end at once, for the first."""
        with self._state:
            if not self._awaits_call:
                return
            self._awaits_call = False
        self._submit()

    def _has_samples(self) -> bool:
        return all(part.sample is not None for part in self.parts)

    def start(self, owner: Any, report: Report, own_weights: bool) -> None:
        """Goes on in the background, until the owner is gone. own_weights: builds read the tensors of `owner`'s model, which tell
        when they are written to; otherwise the runners of the parts notice that.
        """
        report.stages, report.staged = self.stages, [self]
        self._report_builds = report.builds
        for part in self.parts:  # timings of the build ran them on invented arguments
            part.sample, part.wants_sample = None, True
        background.WORKER.watch(self)
        weakref.finalize(owner, self.stop, "the module is gone").atexit = False
        if own_weights and self._versions is None:
            self._versions = [
                (name, value, _version(value)) for part in self.parts for name, value in part.weights
            ]
        self._submit()

    def wait(self, timeout: float | None = None) -> bool:
        """Until no stage is left. False after so many seconds."""
        if timeout is None and self._awaits_call:
            raise UserError(
                'staged="same_bits" compares engines on the arguments of a call, and there was none yet',
                code="INGOT-U006",
                advice="call the module first, or pass a timeout",
            )
        return self._finished.wait(timeout)

    def stop(self, reason: str = BY_USER) -> None:
        """The running engines stay; a build that is under way ends soon."""
        if not self.is_finished:
            self._finish(reason)
            _log.info("staged build: %s", self.summary())

    def lose_thread(self, reason: str) -> None:
        self.stop(reason)

    def summary(self) -> str:
        return "; ".join(str(stage) for stage in self.stages)

    def keep_weights(self, values: Mapping[str, Any]) -> None:
        """A refit, whose values nobody changes any more; the caller holds `lock`."""
        if not self.is_finished:
            self.weights |= values

    # ---- in the background ----
    def _finish(self, reason: str) -> None:
        with self._state:
            self._stop_reason = reason
            for stage in self.stages:
                if stage.state in ("waits", "is built"):
                    stage.state, stage.reason = "is stopped", reason
            self._finished.set()
        for part in self.parts:
            part.sample, part.wants_sample = None, False

    def _submit(self) -> None:
        stage = next((stage for stage in self.stages if stage.state == "waits"), None)
        if stage is None:
            self._finish("")
        elif background.WORKER.is_stopped:
            self.stop("the process ends")
        elif self.same_bits and not self._has_samples():
            self._awaits_call = True  # which has the arguments to compare on
        else:
            background.WORKER.submit(stage.level, functools.partial(self._run, stage))

    def _run(self, stage: Stage) -> None:
        self._outcome(stage, self._advance)
        if not self.is_finished:
            self._submit()

    def _outcome(self, stage: Stage, work: Callable[[Stage, Quiet], _T]) -> _T | None:
        """What `work` returns; None if the running engines stay, and the stage says why."""
        with self._state:
            if self.is_finished:
                return None
            stage.state = "is built"
        quiet = Quiet(background.TRAFFIC, lambda: self.is_finished)
        try:
            return work(stage, quiet)
        except NotTakenError as error:
            stage.state, stage.reason = "is not taken", str(error)
        except StoppedError:
            stage.reason = stage.reason or self._stop_reason
        except BaseException as error:  # whatever a user's cache raises: somebody may wait for the stages
            self._fail(stage, quiet, error)
        return None

    def _fail(self, stage: Stage, quiet: Quiet, error: BaseException) -> None:
        if self.is_finished:  # that has cancelled the build
            return
        if quiet.is_too_busy:
            stage.state = "is not taken"
            stage.reason = f"calls left no time for timings ({quiet.discarded} were disturbed)"
            _log.info("staged build: %s", stage)
            return
        stage.state = "has failed"
        stage.reason = (
            str(error) if isinstance(error, Error) else f"{type(error).__name__}: {first_line(error)}"
        )
        _log.warning("staged build: %s; the running engine stays", stage)

    def _advance(self, stage: Stage, quiet: Quiet) -> None:
        better, known = self._prepare(stage, quiet)
        with self.lock:
            self._follow(better, known)
            self._require_unwritten()
            self._require_wanted()
            with self.gate.change():
                self._require_wanted()  # it may have waited for a long call
                self._exchange(stage, better)
        _log.info("staged build: %s", stage)

    def _prepare(self, stage: Stage, quiet: Quiet) -> Prepared:
        for part in self.parts:
            part.wants_sample = True
        refits = [part.core.refits() for part in self.parts]
        known: dict[str, Any] = {}
        with self.lock:
            self._require_unwritten()
        better = [part.better(stage.level, self.threads, quiet, self._proceed) for part in self.parts]
        self._compare(stage, quiet, better, known, refits)
        return better, known

    def _report_exchange(self, stage: Stage) -> None:
        with self._state:
            for other in self.stages:
                if other.state == "runs":
                    other.state = "ran"
            stage.state, stage.reason, stage.seconds = "runs", "", time.monotonic() - self._start

    def _proceed(self, *_progress: Any) -> bool:
        return not self.is_finished

    def _require_wanted(self) -> None:
        if self.is_finished:
            raise StoppedError

    def _require_unwritten(self) -> None:
        """Builds read the model's own tensors: what was written there since may be in one engine, and not in the other."""
        for name, value, version in self._versions or ():
            if _version(value) != version:
                self._finish(f"{name!r} was written to; compile again, or use refit for new weights")
                raise StoppedError

    def _follow(self, better: Sequence[Better], known: dict[str, Any]) -> None:
        """Gives the engines the weights that were refitted since. `known`: those that they have."""
        fresh = {name: value for name, value in self.weights.items() if known.get(name) is not value}
        for each in better:
            own = {name: value for name, value in fresh.items() if each.core.knows_tensor(name)}
            if own:
                each.core.refit(own, True, True)
        known |= fresh

    def _compare(
        self, stage: Stage, quiet: Quiet, better: Sequence[Better], known: dict[str, Any], refits: list[int]
    ) -> None:
        """Raises NotTakenError if bits differ that must not, or if calls take longer."""
        if not self._has_samples():
            return
        with self.lock:
            self._follow(better, known)
            running = [copy.deepcopy(part.core) for part in self.parts]
        samples = [part.sample or [] for part in self.parts]
        if self.same_bits:
            self._compare_bits(running, better, samples, refits)
        try:
            pairs = [
                times_of(own, each.core, sample, quiet)
                for own, each, sample in zip(running, better, samples, strict=True)
            ]
        except StoppedError:
            self._require_wanted()
            return  # calls leave no time: that the engine is better is only predicted
        stage.before_ms, stage.after_ms = (sum(times) for times in zip(*pairs, strict=True))
        if stage.after_ms > stage.before_ms * _SLOWER:
            raise NotTakenError("it is slower")

    def _compare_bits(
        self, running: Sequence[Any], better: Sequence[Better], samples: Sequence[list], refits: list[int]
    ) -> None:
        if self._versions is None and [part.core.refits() for part in self.parts] != refits:
            raise NotTakenError("weights were replaced while it was built, so that no bits can be compared")
        for number, (own, each, sample) in enumerate(zip(running, better, samples, strict=True)):
            what = bits_that_differ(own, each.core, sample)
            if what:
                raise NotTakenError(f"other bits in {what} of engine {number}")

    def _exchange(self, stage: Stage, better: Sequence[Better]) -> None:
        """While no call runs."""
        with background.EXCHANGE:
            self._take(better)
            self._report_exchange(stage)

    def _take(self, better: Sequence[Better]) -> None:
        """All or nothing. Builds read the weights that the program was captured with: a runner that has seen others since, which
        `weights` does not have, refits what it finds at its next call.
        """
        done: list[tuple[StagedPart, Better]] = []
        try:
            for part, each in zip(self.parts, better, strict=True):
                is_followed = self._versions is not None and self.weights
                if part.runner is not None and part.core.refits() and not is_followed:
                    part.runner.forget()
                part.core.take_engine(each.core)
                done.append((part, each))
        except BaseException:
            for part, each in reversed(done):
                part.core.take_engine(each.core)
            raise
        for number, (part, each) in enumerate(zip(self.parts, better, strict=True)):
            part.build = each.build
            if number < len(self._report_builds):
                self._report_builds[number] = each.build


def _version(value: Any) -> int:
    """How often a tensor was written to; tensors of inference mode do not count."""
    return 0 if value.is_inference() else value._version
