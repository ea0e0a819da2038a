# SPDX-License-Identifier: Apache-2.0
"""Composites that torch cannot trace, because its own code looks at values to check them: the same formulas without the checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _covariance(
    x: torch.Tensor,
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> torch.Tensor:
    rows = x.reshape(1, -1) if x.dim() < 2 else x
    given = [each for each in (fweights, aweights) if each is not None]
    weights = given[0] * given[1] if len(given) == 2 else given[0] if given else None
    total: Any = rows.shape[1] if weights is None else weights.sum()
    weighted = rows if weights is None else rows * weights
    norm = total - correction
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum() / total
    mean = weighted.sum(1) / total
    centered = rows - mean.unsqueeze(1)
    product = centered @ (centered if weights is None else centered * weights).t().conj()
    norm = norm.clamp(min=0) if isinstance(norm, torch.Tensor) else max(norm, 0)
    return torch.true_divide(product, norm).squeeze()


def _correlation(x: torch.Tensor) -> torch.Tensor:
    covariance = _covariance(x)
    if covariance.dim() == 0:
        return covariance / covariance
    deviation = covariance.diag().sqrt()
    result = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    return result if result.is_complex() else result.clip(-1, 1)


FORMULAS: dict[Any, Callable] = {
    torch.ops.aten.corrcoef.default: _correlation,
    torch.ops.aten.cov.default: _covariance,
}
