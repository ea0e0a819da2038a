# SPDX-License-Identifier: Apache-2.0
"""Reductions and norms on rows far from 0, of one number, with an outlier, and of very large and very small numbers."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from elementwise import engine_of, in_engine
from torch import nn
from torch.nn import functional

_ROWS, _LENGTH = 16, 700

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "var": lambda x: x.var(-1),
    "var of columns": lambda x: x.var(0),
    "std": lambda x: x.std(-1, correction=0),
    "var_mean": lambda x: torch.stack(torch.var_mean(x, -1)),
    "std_mean": lambda x: torch.stack(torch.std_mean(x, 0)),
    "mean": lambda x: x.mean(-1),
    "sum": lambda x: x.sum(0),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "norm of order 3": lambda x: torch.linalg.vector_norm(x, 3, dim=-1),
    "layer_norm": lambda x: functional.layer_norm(x, (_LENGTH,)),
    "group_norm": lambda x: functional.group_norm(x.view(4, 4, _LENGTH), 2),
    "instance_norm": lambda x: functional.instance_norm(x.view(4, 4, _LENGTH)),
    "batch_norm": lambda x: functional.batch_norm(x.view(4, 4, _LENGTH), None, None, training=True),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "softmax": lambda x: functional.softmax(x, -1),
    "cosine_similarity": lambda x: functional.cosine_similarity(x[:8], x[8:], -1),
    "cdist": lambda x: torch.cdist(x[:4], x[4:8], compute_mode="donot_use_mm_for_euclid_dist"),
    "cumsum": lambda x: x.cumsum(-1),
    "cumsum of columns": lambda x: x.t().contiguous().cumsum(0),
}


def _rows(kind: str) -> torch.Tensor:
    x = torch.randn(_ROWS, _LENGTH, generator=torch.Generator().manual_seed(3))
    if kind == "far from 0":
        return x + 1e6
    if kind == "of one number":
        return torch.full_like(x, 0.1)
    if kind == "with an outlier":
        x[:, 0] = 1e6
        return x
    return x * float(kind)


_KINDS = ("far from 0", "of one number", "with an outlier", "1e10", "1e19", "1e25", "1e-10", "1e-20", "1e-25")
# Their squares are f32, at the speed that models need: a row whose squares overflow becomes 0.
_MODERATE = ("layer_norm", "group_norm", "instance_norm")
_OVERFLOWING = ("1e19", "1e25")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_lost(name: str) -> None:
    compiled = engine_of(FUNCTIONS[name], [_rows("1")])
    kinds = [kind for kind in _KINDS if name not in _MODERATE or kind not in _OVERFLOWING]
    failures = [
        f"{kind}: {what}" for kind in kinds if (what := _loss(FUNCTIONS[name], compiled, _rows(kind)))
    ]
    assert not failures, "\n".join(failures)


def _loss(function: Callable, compiled: Callable, x: torch.Tensor) -> str:
    """Empty if NaN and infinities are where eager or fp64 has them, and errors are small, or at most twice eager's."""
    exact, eager, actual = function(x.double()), function(x), compiled(x)
    in_range = torch.where(torch.isinf(exact.float()), exact.float().double(), exact)
    finite = torch.isfinite(actual)
    if not bool(((finite == torch.isfinite(in_range)) | (finite == torch.isfinite(eager))).all()):
        return "NaN or infinities where there should be none, or the reverse"
    known = finite & torch.isfinite(eager) & torch.isfinite(in_range)
    if not bool(known.any()):
        return ""  # all of them overflow, in all three
    ours, theirs = ((value.double() - exact)[known].abs() for value in (actual, eager))
    scale = exact[known].abs()
    allowed = 1e-5 * scale + 1e-6 * scale.square().mean().sqrt() + 2 * theirs.max()
    if bool((ours <= allowed).all()):
        return ""
    return f"largest error {ours.max():.3e}, eager's {theirs.max():.3e}, of {scale.max():.3e}"


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.3, -3e19, 7e-30])
def test_one_number_has_no_deviation(value: float) -> None:
    x = torch.full((3, 1000), value)
    assert torch.equal(in_engine(lambda x: x.std(-1), [x]), torch.zeros(3))
    if abs(value) < 1e19:
        assert torch.equal(in_engine(lambda x: functional.layer_norm(x, (1000,)), [x]), torch.zeros_like(x))


@pytest.mark.parametrize("function", [torch.cumsum, torch.cumprod])
def test_long_scans(function: Callable) -> None:
    x = 1 + torch.randn(4, 3000, generator=torch.Generator().manual_seed(0)) / 50
    exact = function(x.double(), 1)
    error = (in_engine(lambda x: function(x, 1), [x]).double() / exact - 1).abs().max()
    assert error <= 2 * (function(x, 1).double() / exact - 1).abs().max() + 1e-7


@pytest.mark.parametrize("bias", [False, True])
def test_winograd_keeps_infinities_apart(bias: bool) -> None:
    """Its transforms add elements of a tile; non-finite values come from the convolution itself."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(32, 32, 3, padding=1, bias=bias), nn.ReLU()).eval()
    x = torch.randn(2, 32, 17, 16)
    x[0, 3, 5, 6], x[1, 0, 0, 0], x[1, 5, 16, 8], x[0, 1, 12, 12] = torch.inf, -torch.inf, torch.nan, 3e38
    with torch.no_grad():
        module = ingot.compile(model, inputs=[x], require_full_compilation=True)
        actual, exact = module(x), model.double()(x.double()).float()
    assert "winograd" in str(module.engine.inspect())
    assert torch.equal(actual.isnan(), exact.isnan())
    assert torch.equal(actual.isinf(), exact.isinf())
    moderate = torch.isfinite(exact) & (exact.abs() < 1e6)
    assert torch.allclose(actual[moderate], exact[moderate], rtol=1e-4, atol=1e-5)
