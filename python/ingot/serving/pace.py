# SPDX-License-Identifier: Apache-2.0
"""How many rows a batch should have, as measured: more rows are not always faster per row."""

from __future__ import annotations

import statistics
from collections import OrderedDict, deque

_ENOUGH = 5  # measurements before a size is judged
_KEPT = 9  # measurements per size, whose median counts: conditions change
_NEAR = 1.05  # of two sizes that are as close, the smaller one: its requests wait less
_GAIN = 1.1  # of a size over all smaller ones; less may be noise, and hardly pays for twice the wait
_PROBE_EACH = 64  # batches, of which one has another size
_MOST_PACES = 64


class Pace:
    """For requests of one key: the limit of rows per batch.

    Sizes are powers of two; a batch counts as the next larger one. They are tried from the smallest up, until two in a row bring little
    gain: small ones cost little to try. After that, batches have the smallest size whose time per row is near the shortest. Smaller ones,
    and the next larger one, are measured again now and then, in turn.
    """

    def __init__(self, minimum: int, maximum: int, like: Pace | None = None) -> None:
        """like: of another key, whose times count until there are some of this one, since they change alike with the size."""
        sizes = [minimum]
        while sizes[-1] < maximum:
            sizes.append(min(2 * sizes[-1], maximum))
        self._sizes = sizes
        self._times = [deque(each, maxlen=_KEPT) for each in like._times] if like else _no_times(len(sizes))
        self._is_borrowed = like is not None
        self._batches = 0

    def limit(self, queued: int) -> int:
        """Of the next batch, where so many rows are waiting."""
        self._batches += 1
        trial = self._trial()
        if trial is not None and trial <= self._index(queued):
            return self._sizes[trial]
        chosen = self._chosen()
        if self._batches % _PROBE_EACH == 0:
            chosen = self._batches // _PROBE_EACH % min(chosen + 2, len(self._sizes))
        return self._sizes[chosen]

    def worth_waiting_for(self) -> int:
        """Rows from which on more are not known to bring anything."""
        trial = self._trial()
        return self._sizes[self._chosen() if trial is None else trial]

    def add(self, rows: int, seconds: float) -> None:
        k, time = self._index(rows), seconds / rows
        if self._is_borrowed and self._times[k]:
            scale = time / statistics.median(self._times[k])
            self._times = [deque((scale * each for each in times), maxlen=_KEPT) for times in self._times]
        self._is_borrowed = False
        self._times[k].append(time)

    def _index(self, rows: int) -> int:
        """Of the smallest size with as many rows; of the largest if none has."""
        return next((k for k, size in enumerate(self._sizes) if size >= rows), len(self._sizes) - 1)

    def _trial(self) -> int | None:
        """The smallest size that was not measured enough, if it may bring a gain."""
        trial = next((k for k, times in enumerate(self._times) if len(times) < _ENOUGH), None)
        if trial is None or trial <= 2:
            return trial
        medians = [statistics.median(times) for times in self._times[:trial]]
        gains = (medians[k] * _GAIN < min(medians[:k]) for k in (trial - 1, trial - 2))
        return trial if any(gains) else None

    def _chosen(self) -> int:
        """Among those that were measured enough; the first one was, or is the trial."""
        medians = {
            k: statistics.median(times) for k, times in enumerate(self._times) if len(times) >= _ENOUGH
        }
        best = min(medians.values())
        return next(k for k, median in medians.items() if median <= best * _NEAR)


def _no_times(count: int) -> list[deque[float]]:
    return [deque(maxlen=_KEPT) for _ in range(count)]


class Paces:
    """One per key; those that were not asked for longest are forgotten. Not for several threads at a time."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self._bounds = minimum, maximum
        self._of: OrderedDict[tuple, Pace] = OrderedDict()

    def of(self, key: tuple) -> Pace:
        pace = self._of.get(key)
        if pace is None:
            last = next(reversed(self._of.values()), None)
            pace = self._of[key] = Pace(*self._bounds, like=last)
            if len(self._of) > _MOST_PACES:
                self._of.popitem(last=False)
        self._of.move_to_end(key)
        return pace
