# SPDX-License-Identifier: Apache-2.0
"""Which range of a value 256 integers cover: what is beyond becomes the nearest number in it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ingot.quantization.histogram import BINS, Histogram

Range = tuple[float, float]

LEVELS = 256
_PERCENTILE = 99.99
_SHARES = torch.linspace(0.25, 1, 76, dtype=torch.float64).tolist()  # of the whole range, that are tried


def whole(histogram: Histogram) -> Range:
    return histogram.minimum, histogram.maximum


def percentile(histogram: Histogram) -> Range:
    """All but one number in 10,000, as many above as below."""
    if not bool(histogram.counts.any()):  # all are zero
        return whole(histogram)
    beyond = (100 - _PERCENTILE) / 200 * histogram.counts.sum()
    sums, centers = histogram.counts.cumsum(0), histogram.centers()
    low = centers[int((sums > beyond).nonzero()[0])].item()
    high = centers[int((sums >= sums[-1] - beyond).nonzero()[0])].item()
    return max(low, histogram.minimum), min(high, histogram.maximum)


def least_squares(histogram: Histogram) -> Range:
    """The smallest sum of squared errors."""
    centers, counts = histogram.centers(), histogram.counts

    def error(low: float, high: float) -> float:
        scale, zero_point = parameters(low, high)
        levels = ((centers / scale).round() + zero_point).clamp(0, LEVELS - 1)
        return (counts * ((levels - zero_point) * scale - centers) ** 2).sum().item()

    return _best(histogram, error)


def least_divergence(histogram: Histogram) -> Range:
    """The smallest Kullback-Leibler divergence of the quantized distribution from the clipped one (S. Migacz, 8-bit Inference with
    TensorRT, GTC 2017). Every range has an integer for 0, whose bin counts as much as its neighbours at most."""
    centers, counts = histogram.centers(), histogram.counts.clone()
    zero = BINS // 2
    counts[zero] = min(counts[zero], max(counts[zero - 1], counts[zero + 1]))
    whole = counts.sum()

    def divergence(low: float, high: float) -> float:
        inside = (centers >= low) & (centers <= high)
        first, last = (int(inside.nonzero()[i]) for i in (0, -1))
        clipped = counts[first : last + 1].clone()
        clipped[0] += counts[:first].sum()
        clipped[-1] += counts[last + 1 :].sum()
        level = torch.arange(len(clipped)) * LEVELS // len(clipped)
        present = counts[first : last + 1] > 0
        sums = torch.zeros(LEVELS, dtype=torch.float64).index_add_(0, level, counts[first : last + 1])
        members = torch.zeros(LEVELS, dtype=torch.float64).index_add_(0, level, present.double())
        spread = torch.where(present, sums[level] / members[level].clamp(min=1), 0)
        p, q = clipped / whole, spread / whole  # q lacks what is beyond: else one bin would be perfect
        smallest = 1e-12  # outliers that are moved into an empty bin count as all but impossible
        return torch.where(p > 0, p * (p / q.clamp(min=smallest)).log(), 0).sum().item()

    return _best(histogram, divergence)


def _best(histogram: Histogram, cost: Callable[[float, float], float]) -> Range:
    low, high = min(histogram.minimum, 0.0), max(histogram.maximum, 0.0)
    width = 2 * histogram.reach / BINS
    tried = [(share * low, share * high) for share in _SHARES if share * (high - low) >= LEVELS * width]
    return min(tried or [(low, high)], key=lambda range_: cost(*range_))


METHODS: dict[str, Callable[[Histogram], Range]] = {
    "minmax": whole,
    "percentile": percentile,
    "mse": least_squares,
    "entropy": least_divergence,
}


def parameters(low: float, high: float) -> tuple[float, int]:
    """(scale, zero point) of u8 for that range, which is widened to hold 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if high - low < torch.finfo(torch.float32).tiny * LEVELS:
        return 1.0, 0
    scale = (high - low) / (LEVELS - 1)
    return scale, min(max(round(-low / scale), 0), LEVELS - 1)
