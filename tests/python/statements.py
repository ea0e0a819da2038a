# SPDX-License-Identifier: Apache-2.0
"""The statements of random programs: one function per family. Most draws do not match their operands and are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from statement_operands import dim_of, size_of
from wider_statements import branching, composite, counted, found_sizes, quantized, random_numbers

if TYPE_CHECKING:
    from random_programs import Drawing, Statement

_UNARY = (
    "torch.abs", "torch.neg", "torch.exp", "torch.log1p", "torch.sqrt", "torch.sin", "torch.cos", "torch.tanh",
    "torch.sigmoid", "torch.erf", "torch.floor", "torch.ceil", "torch.round", "torch.trunc", "torch.sign",
    "torch.square", "torch.reciprocal", "torch.rsqrt", "torch.atan", "torch.isnan", "torch.isinf", "torch.isfinite",
    "torch.logical_not", "F.relu", "F.gelu", "F.silu", "F.mish", "F.softplus", "F.hardswish", "F.elu",
    "F.leaky_relu", "F.hardtanh", "F.logsigmoid", "F.relu6", "torch.expm1", "torch.log2", "torch.signbit",
    "torch.nan_to_num", "torch.asinh", "torch.frac", "torch.positive", "torch.clone", "torch.exp2",
)  # fmt: skip
_BINARY = (
    "torch.add", "torch.sub", "torch.mul", "torch.div", "torch.maximum", "torch.minimum", "torch.pow", "torch.fmod",
    "torch.remainder", "torch.atan2", "torch.hypot", "torch.floor_divide", "torch.logaddexp", "torch.xlogy",
    "torch.copysign", "torch.fmax", "torch.fmin", "torch.eq", "torch.lt", "torch.ge", "torch.ne",
    "torch.logical_and", "torch.logical_or", "torch.logical_xor", "torch.rsub", "torch.bitwise_and",
    "torch.bitwise_or", "torch.heaviside",
)  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "<", ">=", "==", "+", "-", "*")
_REDUCTIONS = (
    "sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "norm", "any", "all", "argmax", "argmin",
    "count_nonzero", "nansum", "median_values", "cumsum", "cumprod", "softmax", "log_softmax",
)  # fmt: skip
_INPLACE = (
    "add_({b})", "sub_({b})", "mul_({b})", "copy_({b})", "clamp_(-1, 1)", "relu_()", "zero_()", "fill_(2)",
    "neg_()", "exp_()", "sigmoid_()", "div_({b})", "masked_fill_({b}.bool(),0.5)", "mul_(2)", "add_(1)", "abs_()",
    "tanh_()", "pow_(2)", "logical_not_()", "clamp_min_({b})", "lerp_({b},0.25)", "addcmul_({b},{b})", "floor_()",
)  # fmt: skip
_DTYPES = ("torch.float32", "torch.float32", "torch.float64", "torch.int64", "torch.bool", "torch.bfloat16", "torch.float16",
           "torch.int32", "torch.uint8")  # fmt: skip


def draw(drawing: Drawing, result: str) -> Statement:
    """A statement that binds `result`, or writes in place."""
    from random_programs import Statement

    random = drawing.random
    family = random.choices(list(_FAMILIES), list(_FAMILIES.values()))[0]
    names = drawing.names()
    recent = names[-6:]
    operands = [random.choice(recent if random.random() < 0.7 else names) for _ in range(3)]
    text = family(drawing, *operands)
    reads = tuple(sorted(name for name in names if name in text))
    if text.startswith("!"):
        return Statement(text[1:], "", reads)
    return Statement(f"{result} = {text}", result, reads)


def unary(d: Drawing, a: str, b: str, c: str) -> str:
    return f"{d.random.choice(_UNARY)}({a})"


def binary(d: Drawing, a: str, b: str, c: str) -> str:
    number = d.random.choice(("2", "0.5", "-1.5", "3", "0", "1e-3"))
    second = number if d.random.random() < 0.25 else b
    if d.random.random() < 0.5:
        return f"{a} {d.random.choice(_OPERATORS)} {second}"
    return f"{d.random.choice(_BINARY)}({a}, {second})"


def several(d: Drawing, a: str, b: str, c: str) -> str:
    return d.random.choice(
        (
            f"torch.where({a}.bool(), {b}, {c})",
            f"torch.where({a} > 0, {b}, 0.5)",
            f"torch.clamp({a}, -1, 1.5)",
            f"torch.addcmul({a}, {b}, {c}, value=0.5)",
            f"torch.lerp({a}, {b}, 0.3)",
            f"{a}.masked_fill({b}.bool(), 2.0)",
            f"torch.clamp({a}, min={b})",
            f"torch.add({a}, {b}, alpha=2)",
            f"torch.addcdiv({a}, {b}, {c})",
            f"torch.isclose({a}, {b})",
            f"torch.where({a} == {b}, {b}, {c})",
        )
    )


def view(d: Drawing, a: str, b: str, c: str) -> str:
    i, j = dim_of(d, a), dim_of(d, a)
    rank = d.value(a).dim()
    order = list(range(rank))
    d.random.shuffle(order)
    size = size_of(d, a, i)
    start = d.random.randrange(max(size, 1))
    return d.random.choice(
        (
            f"{a}.transpose({i}, {j})",
            f"{a}.permute({order})",
            f"{a}.reshape(-1)",
            f"{a}.flatten({min(i % max(rank, 1), j % max(rank, 1))})",
            f"{a}.unsqueeze({d.random.randint(0, rank)})",
            f"{a}.squeeze()",
            f"{a}.select({i}, {start})",
            f"{a}.narrow({i}, {start}, 1)",
            f"{a}[{start}:]",
            f"{a}[..., ::2]",
            f"{a}[..., -1]",
            f"{a}[:, 1:]",
            f"{a}.expand_as({b})",
            f"{a}.view_as({b})",
            f"{a}.reshape({a}.shape[0], -1)",
            f"{a}.view(-1, {a}.shape[-1])",
            f"torch.chunk({a}, 2, {i})[-1]",
            f"{a}.unbind({i})[0]",
            f"torch.split({a}, 2, {i})[0]",
            f"{a}.diagonal()",
            f"{a}.mT",
            f"{a}.unfold({i}, 2, 1)",
            f"{a}.expand(2, *{a}.shape)",
            f"{a}[None]",
            f"{a}.view({a}.shape)",
            f"{a}.detach()",
            f"{a}.movedim({i}, {j})",
            f"{a}.unflatten({i}, (-1, 2))",
            f"{a}.as_strided((2, 2), (1, 2))",
            f"{a}.T",
            f"{a}.contiguous()",
            f"{a}.swapaxes({i}, {j})",
        )
    )


def rearrange(d: Drawing, a: str, b: str, c: str) -> str:
    i = dim_of(d, a)
    return d.random.choice(
        (
            f"torch.cat([{a}, {b}], {i})",
            f"torch.stack([{a}, {b}], {i})",
            f"{a}.flip({i})",
            f"{a}.roll(1, {i})",
            f"F.pad({a}, (1, 2))",
            f"F.pad({a}, (0, 1, 2, 0), value=1.5)",
            f"{a}.repeat(2, *[1] * ({a}.dim() - 1))",
            f"{a}.repeat_interleave(2, {i})",
            f"torch.tril({a})",
            f"torch.triu({a}, 1)",
            f"{a}.to({d.random.choice(_DTYPES)})",
            f"{a}.to({d.random.choice(_DTYPES)})",
            f"torch.full_like({a}, 3)",
            f"torch.zeros_like({a})",
            f"torch.arange({a}.shape[{i}])",
            f"torch.outer({a}.flatten(), {b}.flatten())",
            f"{a}.type_as({b})",
            f"F.pad({a}, (1, 1), mode='reflect')",
            f"torch.cat([{a}.flatten(), {b}.flatten()])",
            f"torch.rot90({a})",
            f"{a}.contiguous(memory_format=torch.channels_last)",
            f"F.pad({a}, (-1, 1))",
            f"torch.meshgrid({a}.flatten(), {b}.flatten(), indexing='ij')[0]",
        )
    )


def reduction(d: Drawing, a: str, b: str, c: str) -> str:
    name, i = d.random.choice(_REDUCTIONS), dim_of(d, a)
    keep = d.random.choice((True, False))
    if name in ("cumsum", "cumprod"):
        return f"torch.{name}({a}, {i})"
    if name in ("softmax", "log_softmax"):
        return f"F.{name}({a}, {i})"
    if name == "median_values":
        return f"torch.sort({a}, {i}).values"
    if name == "count_nonzero":
        return f"torch.count_nonzero({a}, {i})"
    if d.random.random() < 0.2 and name not in ("logsumexp",):
        return f"torch.{name}({a})"
    if name in ("var", "std") and d.random.random() < 0.5:
        return f"torch.{name}({a}, {i}, correction=0, keepdim={keep})"
    if name == "norm":
        return f"torch.linalg.vector_norm({a}, dim={i}, keepdim={keep})"
    return f"torch.{name}({a}, dim={i}, keepdim={keep})"


def contraction(d: Drawing, a: str, b: str, c: str) -> str:
    width = size_of(d, a, -1)
    channels = size_of(d, a, 1) if d.value(a).dim() > 1 else 1
    weight = next((name for name in d.names() if name.startswith("self.p")), b)
    return d.random.choice(
        (
            f"torch.matmul({a}, {b})",
            f"torch.matmul({a}, {b}.mT)",
            f"{a} @ {a}.mT",
            f"torch.einsum('...i,...j->...ij', {a}, {b})",
            f"F.linear({a}, {weight})",
            f"F.relu(F.linear({a}, {weight}))",
            f"F.linear({a}, {b}, {c}.type_as({a}))",
            f"F.conv2d({a}, {weight}, padding=1)",
            f"F.gelu(F.conv2d({a}, {weight})) + 1",
            f"F.linear({a}, {weight}) * 0.5",
            f"torch.addmm({a}, {b}, {c})",
            f"F.conv1d({a}, torch.ones(4, {channels}, 2) / 3)",
            f"F.conv2d({a}, torch.ones(3, {channels}, 2, 2) / 5, padding=1)",
            f"F.conv2d({a}, torch.ones({channels}, 1, 3, 3) / 7, padding=1, groups={channels})",
            f"F.scaled_dot_product_attention({a}, {a}, {b})",
            f"torch.baddbmm({a}, {b}, {c})",
            f"torch.dot({a}.flatten(), {b}.flatten())",
            f"F.conv2d({a}, torch.ones(4, {channels}, 1, 1), stride=2)",
            f"torch.mv({a}, {b})",
            f"F.conv_transpose2d({a}, torch.ones({channels}, 2, 2, 2) / 3)",
            f"F.linear({a}, torch.ones({width}, {width}), {b}.type_as({a}))",
            f"torch.cdist({a}, {b})",
            f"F.cosine_similarity({a}, {b}, dim=-1)",
            f"torch.bmm({a}, {b}.mT)",
        )
    )


def neural(d: Drawing, a: str, b: str, c: str) -> str:
    width = size_of(d, a, -1)
    channels = size_of(d, a, 1) if d.value(a).dim() > 1 else 1
    return d.random.choice(
        (
            f"F.layer_norm({a}, ({width},))",
            f"F.layer_norm({a}, ({width},), {b}, {c})",
            f"F.group_norm({a}, 1)",
            f"F.rms_norm({a}, ({width},))",
            f"F.batch_norm({a}, torch.zeros({channels}), torch.ones({channels}))",
            f"F.instance_norm({a})",
            f"F.max_pool2d({a}, 2, padding=1)",
            f"F.avg_pool2d({a}, 2, stride=1)",
            f"F.adaptive_avg_pool2d({a}, 2)",
            f"F.interpolate({a}, scale_factor=2)",
            f"F.max_pool1d({a}, 2)",
            f"F.interpolate({a}, size=(4, 5), mode='bilinear')",
            f"F.pixel_shuffle({a}, 2)",
            f"F.normalize({a}, dim=-1)",
            f"F.glu({a}, -1)",
            f"F.unfold({a}, 2)",
            f"F.avg_pool1d({a}, 2)",
            f"F.softmin({a}, -1)",
            f"F.batch_norm({a}, None, None, training=True)",
        )
    )


def indexing(d: Drawing, a: str, b: str, c: str) -> str:
    i = dim_of(d, a)
    size = max(size_of(d, a, i), 1)
    places = f"({b}.to(torch.int64).abs() % {a}.shape[{i}])"
    rows = f"({b}.to(torch.int64).abs() % {a}.shape[0])"
    return d.random.choice(
        (
            f"torch.index_select({a}, {i}, {places}.flatten())",
            f"torch.gather({a}, {i}, {places})",
            f"{a}[{rows}]",
            f"{a}[..., [0, -1]]",
            f"torch.take_along_dim({a}, {a}.argsort({i}), {i})",
            f"torch.topk({a}, {d.random.randint(1, size)}, {i}).values",
            f"{a}[{a}.shape[0] - 1]",
            f"F.embedding({rows}, {a})",
            f"torch.scatter({a}, {i}, {places}, 1.5)",
            f"torch.index_add({a}, {i}, torch.arange({a}.shape[{i}]), {a})",
            f"torch.scatter_add({a}, {i}, {places}, {c})",
            f"torch.index_copy({a}, {i}, torch.arange(1), {a}.narrow({i}, 0, 1))",
            f"torch.slice_scatter({a}, {b}, {i}, 0, 1)",
            f"torch.select_scatter({a}, {b}, {i}, 0)",
            f"torch.index_put({a}, ({rows},), {c})",
            f"torch.masked_fill({a}, {a} > 0, -1)",
            f"torch.argsort({a}, {i}, stable=True)",
            f"F.one_hot({rows}, {size})",
            f"torch.where({b}.bool())[0]",
            f"torch.searchsorted({a}.flatten().sort().values, {b})",
            f"torch.bincount({rows}.flatten())",
            f"{a}.select({i}, 0).clone()",
        )
    )


def write(d: Drawing, a: str, b: str, c: str) -> str:
    """In place: on an intermediate, an argument, a buffer, or a view of one."""
    i = dim_of(d, a)
    call = d.random.choice(_INPLACE).format(b=b)
    target = d.random.choice(
        (
            a,
            a,
            f"{a}[0]",
            f"{a}[..., 1:]",
            f"{a}.transpose(0, -1)",
            f"{a}.view(-1)",
            f"{a}.narrow({i}, 0, 1)",
            f"{a}.mT",
        )
    )
    return "!" + d.random.choice(
        (
            f"{target}.{call}",
            f"{target}.{call}",
            f"{a}[0] = {b}",
            f"{a}[..., ::2] = {b}",
            f"{a}[:, 0] = 1.5",
            f"{a}.copy_({b}.mT)",
            f"{a}.index_fill_({i}, torch.arange(1), 3)",
            f"{a}.index_copy_({i}, torch.arange(1), {b}.narrow({i}, 0, 1))",
            f"{a} += {b}" if a[0] != "s" else f"{a}.add_({b})",
            f"{a}.index_add_({i}, torch.zeros({size_of(d, a, i)}, dtype=torch.int64), {a}.clone())",
            f"{a}[{a} > 0] = 0.25",
            f"{a}.view(-1)[:2].zero_()",
            f"{a}.scatter_({i}, ({b}.to(torch.int64).abs() % {a}.shape[{i}]), 2.5)",
            f"{a}.copy_(torch.cat([{a}.narrow({i}, 1, {a}.shape[{i}] - 1), {a}.narrow({i}, 0, 1)], {i}))",
        )
    )


Family = Callable[["Drawing", str, str, str], str]
_FAMILIES: dict[Family, int] = {
    unary: 5, binary: 6, several: 3, view: 6, rearrange: 4, reduction: 5, contraction: 4, neural: 3, indexing: 4, write: 6,
    branching: 1, composite: 6, counted: 1, found_sizes: 1, quantized: 1, random_numbers: 1,
}  # fmt: skip
