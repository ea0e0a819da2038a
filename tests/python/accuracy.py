# SPDX-License-Identifier: Apache-2.0
"""The only rule for the accuracy of floating-point results."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

# dtype -> (relative tolerance, absolute tolerance as a part of the result's RMS)
_TOLERANCES = {
    torch.float64: (1e-9, 1e-11),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (2e-2, 2e-2),
    torch.bfloat16: (2e-2, 2e-2),
}


def golden(model: torch.nn.Module, args: Sequence[Any]) -> Any:
    """The result of a copy of the model in fp64."""
    wide = [
        arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args
    ]
    return copy.deepcopy(model).double()(*wide)


def assert_accurate(actual: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    """Passes if `actual` is as near to `exact` (fp64) as torch's own `eager` is, or nearer."""
    assert actual.dtype == eager.dtype
    assert actual.shape == eager.shape
    if not actual.is_floating_point():
        assert torch.equal(actual, eager)
        return
    reference = (eager if actual.dtype == torch.float64 else exact).double()
    finite = torch.isfinite(reference)
    assert torch.equal(torch.isfinite(actual), finite), (
        "NaN or infinities where there should be none, or the reverse"
    )
    assert torch.equal(actual[~finite].double().nan_to_num(), reference[~finite].nan_to_num())
    error = (actual.double() - reference)[finite].abs()
    if error.numel() == 0:
        return
    relative, absolute = _TOLERANCES[actual.dtype]
    rms = reference[finite].square().mean().sqrt()
    tolerance = relative * reference[finite].abs() + absolute * rms
    if bool((error <= tolerance).all()):
        return
    assert actual.dtype != torch.float64, f"largest error {error.max():.3e}, RMS of the result {rms:.3e}"
    eager_error = (eager.double() - reference)[finite].abs()
    rms_error, rms_eager = error.square().mean().sqrt(), eager_error.square().mean().sqrt()
    assert rms_error <= 2 * rms_eager + 1e-6 * rms, f"RMS error {rms_error:.3e}, eager's {rms_eager:.3e}"
    assert bool((error <= 4 * eager_error.max() + tolerance).all()), (
        f"largest error {error.max():.3e}, eager's {eager_error.max():.3e}"
    )
