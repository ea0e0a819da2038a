# SPDX-License-Identifier: Apache-2.0
"""Models of the transformers library as `architectures.toml` describes them, and their arguments."""

from __future__ import annotations

import copy
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from models.sequence import initialize
from models.vision import randomize_statistics

os.environ.setdefault("HF_HUB_OFFLINE", "1")

_DTYPES = {"f32": torch.float32, "i64": torch.int64}
_TENSOR = re.compile(r"(?:(\d+) )?(f32|i64)\[([\d,]+)\](?:<(\d+))?")


@dataclass
class Architecture:
    """A model in evaluation mode, and a function that makes its keyword arguments, which calls may change."""

    model: nn.Module
    arguments: Callable[[], dict[str, Any]]


@cache
def table() -> dict[str, dict[str, Any]]:
    """The rows by name, each with what its family gives it."""
    content = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    rows = {}
    for name, row in content["model"].items():
        family = content["family"][row["family"]] if "family" in row else {}
        rows[name] = {
            "class": row["class"],
            "prompt": row.get("prompt", 0),
            "cause": row.get("cause", ""),
            "config": _merged("config", family, row),
            "inputs": _merged("inputs", family, row),
        }
    return rows


def _merged(key: str, family: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    both = {**family.get(key, {}), **row.get(key, {})}
    return {name: value for name, value in both.items() if value != "none"}


def tensor(spec: str | list[str], generator: torch.Generator) -> torch.Tensor:
    """The tensor that `spec` describes: see the file."""
    if isinstance(spec, list):
        return torch.cat([tensor(each, generator) for each in spec], dim=-1)
    found = _TENSOR.fullmatch(spec)
    if found is None:
        raise ValueError(f'"{spec}" does not describe a tensor')
    value, dtype, sizes, bound = found.groups()
    shape = [int(size) for size in sizes.split(",")]
    if value is not None:
        return torch.full(shape, int(value), dtype=_DTYPES[dtype])
    if dtype == "i64":
        return torch.randint(0, int(bound), shape, generator=generator)
    return torch.randn(shape, generator=generator)


def prepared(model: nn.Module, inputs: dict[str, Any], prompt: int = 0) -> Architecture:
    """The model with seeded weights, and arguments as `inputs` describes them."""
    model = randomize_statistics(initialize(model)).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    arguments = {key: tensor(spec, generator) for key, spec in inputs.items()}
    if prompt:
        with torch.no_grad():
            result = model(input_ids=torch.arange(prompt)[None], use_cache=True)
        arguments["past_key_values"] = result.past_key_values
    return Architecture(model, lambda: copy.deepcopy(arguments))


def architecture(name: str) -> Architecture:
    """The model of a row."""
    import transformers

    row = table()[name]
    model_class = getattr(transformers, row["class"])
    torch.manual_seed(0)
    config = model_class.config_class(**copy.deepcopy(row["config"]))
    return prepared(model_class(config), row["inputs"], row["prompt"])
