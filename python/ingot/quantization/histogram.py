# SPDX-License-Identifier: Apache-2.0
"""The distribution of a value over the calibration data, in one pass and bounded memory."""

from __future__ import annotations

import torch

BINS = 8192
_LARGE, _SHRUNK = 1e30, 2.0**-64  # histc multiplies the width of its range by the bins, in f32
_COUNTED = 1 << 24  # histc counts in f32, which has no larger odd integers


class Histogram:
    """Counts over [-reach, reach]; `reach` doubles, and pairs of bins are joined, when data is beyond it.

    minimum, maximum: of all numbers seen, exactly. NaN and infinities are left out.
    """

    def __init__(self) -> None:
        self.counts = torch.zeros(BINS, dtype=torch.float64)
        self.reach = 0.0
        self.minimum = float("inf")
        self.maximum = float("-inf")

    def add(self, values: torch.Tensor) -> None:
        numbers = values.detach().float().flatten()
        numbers = numbers[numbers.isfinite()]
        if not numbers.numel():
            return
        low, high = (bound.item() for bound in torch.aminmax(numbers))
        self.minimum, self.maximum = min(self.minimum, low), max(self.maximum, high)
        self._reach_to(max(-low, high))
        if self.reach > 0:
            share = _SHRUNK if self.reach > _LARGE else 1.0
            reach = self.reach * share
            for part in numbers.split(_COUNTED):
                self.counts += torch.histc(part * share, BINS, -reach, reach).double().cpu()

    def _reach_to(self, bound: float) -> None:
        if self.reach == 0:
            self.reach = bound
        while self.reach < bound:
            joined = self.counts.view(-1, 2).sum(1)
            self.counts = torch.zeros_like(self.counts)
            self.counts[BINS // 4 : BINS * 3 // 4] = joined
            self.reach *= 2

    @property
    def is_empty(self) -> bool:
        return self.minimum > self.maximum

    def centers(self) -> torch.Tensor:
        """The middle of each bin: f64 [BINS]."""
        return ((torch.arange(BINS, dtype=torch.float64) + 0.5) / BINS * 2 - 1) * self.reach
