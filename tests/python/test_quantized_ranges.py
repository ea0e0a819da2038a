# SPDX-License-Identifier: Apache-2.0
"""Ranges of activations, chosen by histograms of calibration data."""

from __future__ import annotations

import pytest
import torch
from ingot.quantization.histogram import Histogram
from ingot.quantization.ranges import METHODS, parameters


def test_histograms_count_more_numbers_than_f32_does() -> None:
    threads, histogram = torch.get_num_threads(), Histogram()
    torch.set_num_threads(1)  # which counts all of them
    try:
        histogram.add(torch.ones(2**24 + 9))
    finally:
        torch.set_num_threads(threads)
    assert histogram.counts.sum() == 2**24 + 9


def test_ranges_of_histograms() -> None:
    """Counts are those of the data, however it arrives; ranges hold what they should."""
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(100_000, generator=generator)
    histogram, whole = Histogram(), Histogram()
    for part in (data * 0.01, data * 0.1, data):
        histogram.add(part)
        whole.add(part)
    assert histogram.counts.sum() == 3 * data.numel()
    assert (histogram.minimum, histogram.maximum) == (data.min().item(), data.max().item())
    outliers = Histogram()
    outliers.add(torch.cat([data, torch.tensor([100.0, float("nan"), float("inf")])]))
    assert outliers.maximum == 100
    assert METHODS["minmax"](outliers) == (data.min().item(), 100)
    for name in ("percentile", "mse", "entropy"):
        low, high = METHODS[name](outliers)
        assert data.min().item() <= low < -0.9
        assert 0.9 < high <= 100
    assert METHODS["percentile"](outliers)[1] < 10


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 255, (1, 0)), (-128, 127, (1, 128)), (2, 255, (1, 0)), (-255, -3, (1, 255)), (0, 0, (1, 0))],
)
def test_zero_is_exact(low: float, high: float, expected: tuple[float, int]) -> None:
    assert parameters(low, high) == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "shape", ["uniform", "one value", "narrow", "near the end of f32", "two values", "half of them zero"]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_values_that_are_far_from_zero_stay_in_the_range(method: str, shape: str, sign: int) -> None:
    numbers = {
        "uniform": torch.linspace(0.5, 1, 5000),
        "one value": torch.full((100,), 3.0),
        "narrow": torch.linspace(0.99, 1, 5000),
        "near the end of f32": torch.linspace(1.5e38, 3.4e38, 5000),
        "two values": torch.tensor([1.0, 2.0]).repeat(100),
        "half of them zero": torch.linspace(-1, 1, 5000).relu(),
    }[shape]
    histogram = Histogram()
    for part in numbers.chunk(4):
        histogram.add(sign * part)
    scale, zero_point = parameters(*METHODS[method](histogram))
    levels = ((sign * numbers.double() / scale).round() + zero_point).clamp(0, 255)
    errors = (levels - zero_point) * scale - sign * numbers.double()
    assert errors.abs().max() < numbers.max().item() / 100
