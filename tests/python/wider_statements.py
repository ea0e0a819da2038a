# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs beyond plain tensor functions: control flow, sizes from data, random numbers and composites."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from statement_operands import dim_of, size_of

if TYPE_CHECKING:
    from random_programs import Drawing


def branch(
    condition: torch.Tensor,
    then: Callable[..., torch.Tensor],
    otherwise: Callable[..., torch.Tensor],
    operands: tuple[torch.Tensor, ...],
) -> Any:
    """torch.cond where torch captures it; eager's own compiles its branches, which takes long."""
    if torch.compiler.is_compiling():
        return torch.cond(condition, then, otherwise, operands)
    return then(*operands) if bool(condition) else otherwise(*operands)


def repeat(
    condition: Callable[..., torch.Tensor], body: Callable[..., Any], carried: tuple[torch.Tensor, ...]
) -> Any:
    if torch.compiler.is_compiling():
        return torch.while_loop(condition, body, carried)
    while bool(condition(*carried)):
        carried = body(*carried)
    return tuple(
        value.clone() for value in carried
    )  # that share no memory with operands, also if nothing ran


def found(value: torch.Tensor, dim: int, by: torch.Tensor) -> torch.Tensor:
    """The part of `value` at a position that the first element of `by` decides."""
    position = int((by.flatten()[0].to(torch.int64).abs() % value.shape[dim]).item())
    torch._check(position >= 0)
    torch._check(position < value.shape[dim])
    return value.narrow(dim, position, 1)


def branching(d: Drawing, a: str, b: str, c: str) -> str:
    condition = d.random.choice(
        (f"{b}.sum() > 0", f"{b}.float().mean() < {c}.float().mean()", f"({b} > 0).any()")
    )
    zero = "torch.zeros((), dtype=torch.int64)"
    inner = "branch(x.sum() > 1, lambda x: x + 1, lambda x: x * 3, (x,))"
    return d.random.choice(
        (
            f"branch({condition}, lambda x, y: x * 2 + y, lambda x, y: x - y, ({a}, {b}))",
            f"branch({condition}, lambda x: torch.sin(x), lambda x: torch.exp(-x), ({a},))",
            f"branch({condition}, lambda x, y: x @ y.mT, lambda x, y: (x @ y.mT) + 1, ({a}, {b}))",
            f"branch({condition}, lambda x: x.flip(0), lambda x: x.clone(), ({a},))",
            f"branch({condition}, lambda x, y: {inner}, lambda x, y: x - 1, ({a}, {b}))",
            f"repeat(lambda i, x: i < 3, lambda i, x: (i + 1, torch.tanh(x) + x), ({zero}, {a}))[1]",
            f"repeat(lambda i, x: (i < 4) & (x.sum() < 50), lambda i, x: (i + 1, x * 2 + 1), ({zero}, {a}))[1]",
            f"repeat(lambda i, x: i < 2, lambda i, x: (i + 1, {inner}), ({zero}, {a}))[1]",
            f"torch.vmap(lambda x: torch.softmax(x, -1) * x)({a})",
            f"torch.vmap(lambda x, y: x @ y.mT)({a}, {b})",
        )
    )  # fmt: skip


def found_sizes(d: Drawing, a: str, b: str, c: str) -> str:
    i = dim_of(d, a)
    return d.random.choice(
        (
            f"torch.masked_select({a}, {b} > 0)",
            f"{a}[{b} > 0]",
            f"torch.nonzero({a})",
            f"torch.unique({a})",
            f"found({a}, {i}, {b})",
            f"found({a}, {i}, {b}) + {c}",
            f"torch.index_select({a}, {i}, torch.nonzero(torch.arange({a}.shape[{i}]) % 2 == 0).flatten())",
            f"torch.argwhere({a} > 0).sum(0)",
            f"{a}.repeat_interleave(({b}.flatten()[0].to(torch.int64).abs() % 3 + 1).expand({a}.shape[{i}]), {i})",
        )
    )


def counted(d: Drawing, a: str, b: str, c: str) -> str:
    """With `count`, an integer that calls choose."""
    i = dim_of(d, a)
    return d.random.choice(
        (
            f"{a} * count",
            f"{a}.roll(count, {i})",
            f"{a}[..., :count]",
            f"{a}[count - 1]",
            f"{a}[-count:]",
            f"torch.arange(count) + {a}.sum()",
            "torch.full((count, 2), 1.5)",
            f"{a}.unsqueeze(0).expand(count, *{a}.shape)",
            f"{a}.repeat_interleave(count, {i})",
            f"{a}.narrow({i}, 0, min(count, {a}.shape[{i}]))",
            f"torch.topk({a}, count, {i}).values",
            f"F.pad({a}, (count, 0))",
            f"torch.cat([{a}] * count, {i})",
            f"torch.linspace(0, 1, count) * {a}.sum()",
            f"torch.tril({a}, count - 3)",
            f"torch.pow({a}, count)",
            f"{a}.sum({i}) if count > 2 else {a}.amax({i})",
        )
    )


def random_numbers(d: Drawing, a: str, b: str, c: str) -> str:
    return d.random.choice(
        (
            f"F.dropout({a}, 0.4, training=True)",
            f"torch.rand_like({a}) + {b}",
            f"{a} + torch.randn({a}.shape)",
            f"torch.bernoulli(torch.sigmoid({a}))",
            f"{a} * torch.randint(0, 3, {a}.shape)",
            f"F.dropout1d({a}, 0.5, training=True)",
        )
    )


def quantized(d: Drawing, a: str, b: str, c: str) -> str:
    i = dim_of(d, a)
    channels = size_of(d, a, i)
    weight = next((name for name in d.names() if name.startswith("self.p")), b)
    per_tensor, per_channel = (f"torch.fake_quantize_per_{what}_affine" for what in ("tensor", "channel"))
    scales = f"torch.full(({channels},), 0.05), torch.zeros({channels}, dtype=torch.int32)"
    return d.random.choice(
        (
            f"{per_tensor}({a}, 0.1, 3, -128, 127)",
            f"{per_channel}({a}, {scales}, {i % max(d.value(a).dim(), 1)}, 0, 255)",
            f"F.linear({per_tensor}({a}, 0.1, 0, -128, 127), {per_tensor}({weight}, 0.02, 0, -128, 127))",
            f"((({a} / 0.1).round() + 2).clamp(-128, 127).to(torch.int8).to(torch.float32) - 2) * 0.1",
            f"torch._int_mm({a}.to(torch.int8), {b}.to(torch.int8))",
        )
    )


def composite(d: Drawing, a: str, b: str, c: str) -> str:
    i = dim_of(d, a)
    channels = size_of(d, a, 1) if d.value(a).dim() > 1 else 1
    rows = f"({b}.to(torch.int64).abs() % {a}.shape[0])"
    places = f"({b}.to(torch.int64).abs() % {a}.shape[{i}])"
    return d.random.choice(
        (
            f"torch.cummax({a}, {i}).values",
            f"torch.cummin({a}, {i}).indices",
            f"torch.kthvalue({a}, 1, {i}).values",
            f"torch.logcumsumexp({a}, {i})",
            f"torch.diff({a}, dim={i})",
            f"torch.hstack([{a}, {b}])",
            f"torch.bucketize({a}, torch.tensor([-1.0, 0.0, 1.5]))",
            f"torch.kron({a}, {b})",
            f"torch.trapezoid({a}, dim={i})",
            f"torch.aminmax({a}, dim={i}).max",
            f"torch.var_mean({a}, {i})[1]",
            f"torch.quantile({a}, 0.3, dim={i})",
            f"torch.tensor_split({a}, 2, {i})[0]",
            f"torch.tensordot({a}, {b}, 1)",
            f"torch.block_diag({a}, {b})",
            f"torch.linalg.inv({a} @ {a}.mT + 2 * torch.eye({a}.shape[-2]))",
            f"torch.linalg.matrix_norm({a})",
            f"torch.linalg.solve({a} @ {a}.mT + 2 * torch.eye({a}.shape[-2]), {b})",
            f"torch.fft.irfft(torch.fft.rfft({a}))",
            f"torch.fft.rfft({a}).abs()",
            f"torch.view_as_real(torch.complex({a}, {b}))",
            f"(torch.complex({a}, {b}) * torch.complex({b}, {a})).imag",
            f"torch.scatter_reduce({a}, {i}, {places}, {c}, 'amax')",
            f"torch.index_reduce({a}, {i}, torch.arange({a}.shape[{i}]), {a}, 'prod')",
            f"torch.take({a}, {rows})",
            f"torch.addr({a}, {b}.flatten(), {c}.flatten())",
            f"torch.chunk({a}, 3, {i})[0] + torch.chunk({a}, 3, {i})[-1]",
            f"torch.stack(torch.unbind({a}, {i}), -1)",
            f"torch.cat(torch.split({a}, 2, {i})[::-1], {i})",
            f"F.cross_entropy({a}, {rows}.flatten())",
            f"F.huber_loss({a}, {b}, reduction='none')",
            f"F.kl_div({a}, {b}, reduction='batchmean')",
            f"F.mse_loss({a}, {b})",
            f"F.pairwise_distance({a}, {b})",
            f"F.selu({a}) + F.celu({b}, 0.7)",
            f"F.prelu({a}, torch.full(({channels},), 0.2))",
            f"F.threshold({a}, 0.1, 20)",
            f"F.local_response_norm({a}, 2)",
            f"F.max_pool3d({a}, 2, padding=1)",
            f"F.conv3d({a}, torch.ones(2, {channels}, 2, 2, 2) / 5)",
            f"F.pixel_unshuffle({a}, 2)",
            f"F.fold({a}, (3, 3), (2, 2))",
            f"F.grid_sample({a}, torch.ones({a}.shape[0], 3, 2, 2) / 3)",
            f"F.interpolate({a}, scale_factor=1.5, mode='bicubic')",
            f"F.max_pool2d({a}, 2, return_indices=True)[1]",
            f"F.adaptive_max_pool2d({a}, 3)",
            f"F.lp_pool2d({a}, 2, 2)",
            f"F.scaled_dot_product_attention({a}, {a}, {a}, is_causal=True)",
            f"F.embedding_bag({rows}, {a}, mode='max')",
            f"torch.ldexp({a}, {b})",
            f"torch.special.xlog1py({a}, {b})",
            f"torch.nanmedian({a}, {i}).values",
            f"torch.mode({a}, {i}).values",
            f"torch.bitwise_left_shift({a}, {b} % 7)",
            f"torch.gcd({a}, {b})",
            f"torch.sort({a}, {i}, descending=True, stable=True).indices",
            f"torch.msort({a})",
            f"torch.renorm({a}, 2, {i}, 1.0)",
            f"torch.cov({a})",
            f"torch.histc({a}, 5, -3, 3)",
            f"torch.cross({a}, {b}, dim={i})",
            f"torch.softmax({a} @ {a}.mT / 3, -1) @ {a}",
            f"F.layer_norm({a} + {b}, {a}.shape[-1:]) * {c}",
            f"torch.where({a}.isnan(), torch.zeros_like({a}), {a}).clamp(-5, 5)",
        )
    )  # fmt: skip
