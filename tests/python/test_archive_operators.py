# SPDX-License-Identifier: Apache-2.0
"""Calls that torch would decompose, imported whole from .pt2 files: our own formulas against eager's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot.torch_backend import backend
from torch import nn
from torch.nn import functional
from torch.utils import _pytree


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


def activations(x: torch.Tensor, y: torch.Tensor) -> tuple:
    return (
        functional.softshrink(x),
        functional.hardshrink(x),
        functional.tanhshrink(x),
        functional.threshold(x, 0.1, 20),
        functional.rrelu(x),
        torch.logit(x, 0.1),
        torch.logaddexp(x, y),
        torch.logaddexp2(x, y),
        torch.xlogy(x, y.abs()),
        torch.special.xlog1py(x, y.abs()),
        torch.special.entr(x.abs()),
        torch.sinc(x),
        torch.special.ndtr(x),
        torch.special.erfc(x),
        torch.frac(x),
        torch.deg2rad(x),
        torch.rad2deg(x),
        torch.heaviside(x.round(), y),
        torch.isclose(x, y),
        torch.nan_to_num(x.log()),
        torch.isposinf(1 / (x - x)),
        torch.float_power(x, 2),
        torch.ldexp(x, torch.tensor(3)),
        torch.exp2(x),
        torch.log2(x.abs()),
        x.new_full((2,), 1.5).less_equal(1),
    )


def arrangements(x: torch.Tensor, y: torch.Tensor) -> tuple:
    image = x.reshape(2, 4, 3, 2)
    return (
        functional.pixel_shuffle(image, 2),
        functional.pixel_unshuffle(x.reshape(2, 4, 6), 2),
        functional.channel_shuffle(image, 2),
        *torch.meshgrid(x[0], y[0], indexing="ij"),
        *torch.meshgrid(x[0], y[0], indexing="xy"),
        *torch.broadcast_tensors(x, y[:1]),
        torch.hstack([x, y]),
        torch.vstack([x, y]),
        torch.dstack([x, y]),
        torch.column_stack([x[:, 0], y]),
        torch.block_diag(x[:1], y[:, :2]),
        *torch.atleast_3d(x, y[0]),
        *(torch.rot90(x, k) for k in range(-1, 4)),
        torch.fliplr(x),
        torch.diag(x[0], 1),
        torch.diag(x, -1),
        torch.diag_embed(x, -2),
        torch.diagflat(x[:2, :2], 1),
        torch.trace(x),
        torch.take_along_dim(x, x.argsort(1), 1),
        x.swapaxes(0, 1),
        x.ravel(),
        *torch.tensor_split(x, 3, 1),
        torch.isin(x.round(), y.round()),
        functional.one_hot(x.abs().long(), 6),
        torch.tril_indices(3, 4, 1),
        torch.triu_indices(3, 4, -1),
    )


def products(x: torch.Tensor, y: torch.Tensor) -> tuple:
    square = x[:, :4]
    return (
        torch.inner(x, y),
        torch.tensordot(x, y, dims=([1], [1])),
        torch.kron(x, y[:2]),
        torch.vdot(x[0], y[0]),
        torch.linalg.vecdot(x, y),
        torch.linalg.multi_dot([x, y.t(), x, y[0]]),
        torch.linalg.matrix_power(square, 5),
        torch.linalg.cross(x[:, :3], y[:, :3]),
        torch.cross(x[:3], y[:3], dim=0),
        torch.addr(square, x[0, :4], y[1, :4]),
        torch.linalg.norm(x),
        torch.linalg.norm(x, 1),
        torch.linalg.norm(x, float("inf"), dim=(0, 1)),
        torch.linalg.norm(x, 3, dim=1),
        torch.linalg.matrix_norm(x),
        torch.dist(x, y, 3),
        functional.pairwise_distance(x, y),
        functional.cosine_similarity(x, y),
        functional.bilinear(x, y, torch.ones(2, 12, 12)),
        torch.einsum("...i,ij->...j", x, y.t()),
        torch.einsum("ii->i", square),
        torch.einsum("b...,b...->...", x, y),
        torch.einsum("i,j", x[0], y[0]),
    )


def images(x: torch.Tensor, y: torch.Tensor) -> list:
    image, theta = x.reshape(2, 1, 4, 6), y.reshape(8, 2, 3)[:2]
    grid = functional.affine_grid(theta, [2, 1, 3, 5], align_corners=False)
    grids = [
        functional.grid_sample(image, grid, mode, outside, align)
        for mode in ("bilinear", "nearest", "bicubic")
        for outside in ("zeros", "border", "reflection")
        for align in (False, True)
    ]
    resized = [
        functional.interpolate(image, size=(7, 4), mode="bicubic", align_corners=align)
        for align in (False, True)
    ]
    resized += [
        functional.interpolate(image, scale_factor=0.5, mode=mode, antialias=True)
        for mode in ("bilinear", "bicubic")
    ]
    resized += [functional.interpolate(image, size=(7, 4), mode="nearest-exact")]
    patches = functional.unfold(image, (2, 3), padding=1, stride=2)
    return [
        *grids,
        *resized,
        functional.affine_grid(theta, [2, 1, 3, 5], True),
        patches,
        functional.fold(patches, (4, 6), (2, 3), padding=1, stride=2),
    ]


def single_images(x: torch.Tensor, y: torch.Tensor) -> list:
    """Windows over one sample, which has no dim for the batch."""
    line, image, volume = (x.reshape(2, *sizes) for sizes in ((24,), (4, 6), (4, 3, 2)))
    weights = torch.cat([y, -y]).flatten()
    results = [functional.unfold(image, (2, 3), padding=1, stride=2)]
    results += [functional.fold(results[0], (4, 6), (2, 3), padding=1, stride=2)]
    for n, sample in enumerate((line, image, volume), start=1):
        weight = weights[: 8 * 2**n].reshape(4, 2, *[2] * n)
        of_dim = {
            name: getattr(functional, f"{name}{n}d")
            for name in (
                "conv",
                "conv_transpose",
                "max_pool",
                "avg_pool",
                "adaptive_avg_pool",
                "adaptive_max_pool",
            )
        }
        results += [
            of_dim["conv"](sample, weight, stride=2, padding=1),
            of_dim["conv"](sample, weight, padding="same"),
            of_dim["conv_transpose"](sample, weight.transpose(0, 1), stride=2),
            of_dim["max_pool"](sample, 2, padding=1),
            *of_dim["max_pool"](sample, 2, return_indices=True),
            of_dim["avg_pool"](sample, 2, ceil_mode=True),
            of_dim["adaptive_avg_pool"](sample, 2),
            *of_dim["adaptive_max_pool"](sample, 2, return_indices=True),
        ]
    return results


def written(x: torch.Tensor, y: torch.Tensor) -> tuple:
    """Calls that write an argument, which some of them name otherwise than their twins that do not."""
    return (
        functional.dropout(x * 2, 0.5, training=False, inplace=True),
        functional.dropout2d(x.reshape(2, 4, 3, 2) * 2, 0.5, training=False, inplace=True),
        functional.relu(x * 2, inplace=True),
        (x * 2).add_(y, alpha=3).clamp_(max=1).copy_(y[0]),
    )


def normalizations(x: torch.Tensor, y: torch.Tensor) -> tuple:
    image, channels = x.reshape(2, 4, 3, 2), y[:, 0]
    return (
        functional.batch_norm(image, channels, channels.abs(), training=False),
        functional.batch_norm(image, None, None, channels, channels, training=True, momentum=0.0),
        functional.batch_norm(x, None, None, training=True),
        functional.instance_norm(image, weight=channels),
    )


def losses(x: torch.Tensor, y: torch.Tensor) -> list:
    classes, weight = torch.tensor([3, -100, 0, 11]), y[0].abs()
    return [
        functional.mse_loss(x, y),
        functional.l1_loss(x, y),
        functional.smooth_l1_loss(x, y, reduction="none"),
        functional.huber_loss(x, y, delta=0.7),
        functional.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
        functional.binary_cross_entropy(x.sigmoid(), y.sigmoid(), weight),
        functional.binary_cross_entropy_with_logits(x, y.sigmoid(), weight, pos_weight=weight),
        functional.cross_entropy(x, classes),
        functional.cross_entropy(x, classes, weight, label_smoothing=0.1),
        functional.nll_loss(x.log_softmax(1), classes, reduction="sum"),
        functional.cross_entropy(x.reshape(1, 4, 12), classes.clamp(0, 3).repeat(3)[None], reduction="none"),
    ]


def statistics(x: torch.Tensor, y: torch.Tensor) -> tuple:
    holes = torch.where(x > 0.5, torch.nan, x)
    return (
        torch.nansum(holes, 1),
        torch.nanmean(holes),
        *torch.aminmax(x, dim=1),
        torch.histc(x, 8, -1, 1),
        torch.trapezoid(x, dx=0.5),
        *torch.var_mean(x, 1),
        *torch.std_mean(x),
        torch.linspace(0.3, 2, 7),
        torch.linspace(3, 40, 5, dtype=torch.int32),
        torch.logspace(0, 3, 4, dtype=torch.int64),
        torch.arange(0.5, 4.2, dtype=torch.int64),
        torch.diff(x, n=0),
    )


def quantiles(x: torch.Tensor, y: torch.Tensor) -> tuple:
    holes = torch.where(x > 0.5, torch.nan, x)
    return (
        torch.quantile(x, 0.3, dim=1, keepdim=True),
        torch.quantile(x, torch.tensor([0.1, 0.75]), dim=0),
        torch.quantile(holes, 0.5),
        torch.quantile(x, 0.4, interpolation="nearest"),
    )


OLDER = torch.__version__.startswith("2.11.")


@pytest.mark.parametrize(
    "function",
    [
        *(
            activations,
            arrangements,
            written,
            products,
            images,
            single_images,
            normalizations,
            losses,
            statistics,
        ),
        pytest.param(quantiles, marks=pytest.mark.skipif(OLDER, reason="torch 2.11 cannot export them")),
    ],
)
def test_functions(function: Callable[..., Any], tmp_path: Path) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> list:
            return list(function(x, y))

    assert_archive(Model(), (noise(4, 12), noise(4, 12, 1).squeeze(-1)), tmp_path)


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm, self.rnn = (
            nn.GRUCell(5, 6),
            nn.LSTMCell(5, 6),
            nn.RNNCell(5, 6, nonlinearity="relu"),
        )

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple:
        return self.gru(x, state), self.lstm(x, (state, state * 2)), self.rnn(x, state)


class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(9, 4, mode=mode) for mode in ("sum", "mean", "max"))
        self.padded = nn.EmbeddingBag(9, 4, mode="mean", padding_idx=2)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> list:
        return [bag(indices, offsets) for bag in [*self.bags, self.padded]]


class Encoder(nn.Module):
    """In evaluation mode torch calls its fused layer."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.layer(x, src_key_padding_mask=padding)


MODELS = {
    "cells": (Cells(), (noise(3, 5), noise(3, 6))),
    "bags": (Bags(), (torch.tensor([1, 2, 2, 8, 0, 4]), torch.tensor([0, 2, 2, 5]))),
    "weight_norm": (nn.utils.parametrizations.weight_norm(nn.Linear(5, 3)), (noise(2, 5),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, tmp_path: Path) -> None:
    model, args = MODELS[name]
    assert_archive(model.eval(), args, tmp_path)


class Pairs(nn.Module):
    """Formulas of two tensors with promotion rules of their own, for all pairs of `values`."""

    def forward(self, values: list[torch.Tensor]) -> list[torch.Tensor]:
        pairs = [(a, b) for a in values for b in values if a.dim() + b.dim() > 0]
        results = [
            functional.cosine_similarity(a, b, dim=-1)
            for a, b in pairs
            if a.is_floating_point() or b.is_floating_point()
        ]
        return results + [
            functional.pairwise_distance(a, b)
            for a, b in pairs
            if a.is_floating_point() and b.is_floating_point()
        ]


def test_dtypes_of_pairs(tmp_path: Path) -> None:
    dtypes = (torch.float16, torch.float32, torch.float64, torch.int32)
    values = [(3 * noise(*shape).abs() + 1).to(dtype) for dtype in dtypes for shape in ((), (4,), (3, 4))]
    assert_archive(Pairs(), (values,), tmp_path)


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"}])
def test_fused_encoder_layers(options: dict) -> None:
    model, x = Encoder(**options).eval(), noise(2, 5, 8)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        compiled = torch.compile(model, backend=backend, options={"require_full_compilation": True})
        torch.testing.assert_close(compiled(x, padding), torch.compile(model, backend="eager")(x, padding))


def assert_archive(model: nn.Module, args: tuple, folder: Path) -> None:
    with torch.no_grad():
        program = torch.export.export(model, args)
        torch.export.save(program, folder / "model.pt2")
        wanted, got = model(*args), ingot.build(folder / "model.pt2")(*args)
    for one, other in zip(_pytree.tree_leaves(got), _pytree.tree_leaves(wanted), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
