# SPDX-License-Identifier: Apache-2.0
"""Linear layers with weights of 4 and 8 bits, and what they stand for in fp64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torchao import quantization as ao

DEPTH, COLUMNS = 256, 40


@dataclass
class Format:
    """Quantizes the layers of a model, and dequantizes a layer's weight."""

    quantize: Callable[[nn.Module], None]
    bits: float  # of an element of the weight, with its share of scales in f32

    def weight(self, layer: nn.Linear) -> torch.Tensor:
        stored: Any = layer.weight
        return dequantized(stored.qdata, stored.scale, getattr(stored, "zero_point", None))


def dequantized(numbers: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None) -> torch.Tensor:
    """Of blocks along the last dim, in fp64."""
    scale = scale.double().reshape(-1, scale.shape[-1])
    blocks = numbers.double().reshape(numbers.shape[0], scale.shape[-1], -1)
    if zero is not None:
        blocks = blocks - zero.double().reshape(*scale.shape, 1)
    return (blocks * scale[..., None]).reshape(numbers.shape)


def torchao_format(config: Any, bits: float) -> Format:
    return Format(lambda model: ao.quantize_(model, config), bits)


def int4(granularity: Any, bits: float, mapping: Any = ao.MappingType.SYMMETRIC) -> Format:
    config = ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=granularity, mapping_type=mapping)
    return torchao_format(config, bits)


FORMATS = {
    "int4_g32": int4(ao.PerGroup(32), 4 + 40 / 32),
    "int4_g64": int4(ao.PerGroup(64), 4 + 40 / 64),
    "int4_g128_zeros": int4(ao.PerGroup(128), 4 + 40 / 128, ao.MappingType.ASYMMETRIC),
    "int4_rows": int4(ao.PerAxis(0), 4 + 40 / 128),
    "int8_g64": torchao_format(
        ao.IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=ao.PerGroup(64)), 8 + 40 / 64
    ),
    "int8": torchao_format(ao.Int8WeightOnlyConfig(), 8),
    "e4m3": torchao_format(ao.Float8WeightOnlyConfig(), 8),
    "e5m2": torchao_format(ao.Float8WeightOnlyConfig(weight_dtype=torch.float8_e5m2), 8),
}


def layer(format_of: Format, dtype: torch.dtype, *, bias: bool, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(DEPTH, COLUMNS, bias=bias)).eval().to(dtype)
    format_of.quantize(model)
    return model


def exact(format_of: Format, model: Any, x: torch.Tensor) -> torch.Tensor:
    product = x.double() @ format_of.weight(model[0]).t()
    return product if model[0].bias is None else product + model[0].bias.double()
