# SPDX-License-Identifier: Apache-2.0
"""How many rows a batch should have, as measured: more rows are not always faster per row."""

from __future__ import annotations

import statistics
from collections import OrderedDict, deque

_ENOUGH = 3  # measurements before a size is judged
_KEPT = 5  # measurements per size, whose median counts: conditions change
_NEAR = 1.05  # of two sizes that are as close, the smaller one: its requests wait less
_PROBE_EACH = 64  # batches, of which one has another size
_MOST_PACES = 64


class Pace:
    """For requests of one key: the limit of rows per batch.

    Sizes are powers of two; a batch counts as the next larger one. Whatever the queue can fill is tried, from the largest size down. After
    that, batches have the smallest size whose time per row is near the shortest. Smaller ones, and the next larger one, are measured again
    now and then, in turn.
    """

    def __init__(self, minimum: int, maximum: int) -> None:
        sizes = [minimum]
        while sizes[-1] < maximum:
            sizes.append(min(2 * sizes[-1], maximum))
        self._sizes = sizes
        self._times: list[deque[float]] = [deque(maxlen=_KEPT) for _ in sizes]
        self._batches = 0

    def limit(self, queued: int) -> int:
        """Of the next batch, where so many rows are waiting."""
        self._batches += 1
        for k in range(self._index(queued), -1, -1):
            if len(self._times[k]) < _ENOUGH:
                return self._sizes[k]
        chosen = self._chosen()
        if self._batches % _PROBE_EACH == 0:
            chosen = self._batches // _PROBE_EACH % min(chosen + 2, len(self._sizes))
        return self._sizes[chosen]

    def worth_waiting_for(self) -> int:
        """Rows from which on more are known to bring nothing; the maximum while that is unknown."""
        measured = self._measured()
        chosen = self._chosen() if measured else None
        return self._sizes[-1 if chosen is None or chosen == measured[-1] else chosen]

    def add(self, rows: int, seconds: float) -> None:
        self._times[self._index(rows)].append(seconds / rows)

    def _index(self, rows: int) -> int:
        """Of the smallest size with as many rows; of the largest if none has."""
        return next((k for k, size in enumerate(self._sizes) if size >= rows), len(self._sizes) - 1)

    def _measured(self) -> list[int]:
        return [k for k, times in enumerate(self._times) if len(times) >= _ENOUGH]

    def _chosen(self) -> int:
        medians = {k: statistics.median(self._times[k]) for k in self._measured()}
        best = min(medians.values())
        return next(k for k, median in medians.items() if median <= best * _NEAR)


class Paces:
    """One per key; those that were not asked for longest are forgotten. Not for several threads at a time."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self._bounds = minimum, maximum
        self._of: OrderedDict[tuple, Pace] = OrderedDict()

    def of(self, key: tuple) -> Pace:
        pace = self._of.get(key)
        if pace is None:
            pace = self._of[key] = Pace(*self._bounds)
            if len(self._of) > _MOST_PACES:
                self._of.popitem(last=False)
        self._of.move_to_end(key)
        return pace
