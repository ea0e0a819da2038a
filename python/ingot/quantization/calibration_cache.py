# SPDX-License-Identifier: Apache-2.0
"""What a calibration found, as a JSON file that people can read, change and ship."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ingot.errors import UserError
from ingot.paths import shown

Ranges = dict[str, tuple[float, float]]


def digest(module: torch.nn.Module, options: Mapping[str, Any]) -> str:
    """Of the weights and of what decides the ranges."""
    whole = hashlib.sha256(json.dumps(dict(options), sort_keys=True).encode())
    for name, tensor in sorted(module.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        whole.update(f"{name} {plain.dtype} {tuple(plain.shape)}".encode())
        whole.update(plain.view(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def load(path: Path, expected: str) -> tuple[Ranges, dict[str, torch.Tensor]] | None:
    """(ranges, largest magnitudes of channels); None if there is no such file, and `save` can write it. UserError if it is of another
    model, or no cache, or in no folder."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        if path.parent.is_dir():
            return None
        raise _unusable(path, "its folder does not exist", "make the folder, or give another path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error), "give another path") from error
    try:
        stored = json.loads(text)
        of = stored["program"]
        ranges = {name: (float(low), float(high)) for name, (low, high) in stored["ranges"].items()}
        channels = {name: torch.tensor(each) for name, each in stored["channels"].items()}
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(path, f"it is not a calibration cache: {error}", "remove it") from error
    if of != expected:
        raise _unusable(
            path,
            "it is the calibration of another model, other weights or other options",
            "remove it to calibrate anew, or give another path",
        )
    return ranges, channels


def _unusable(path: Path, reason: str, advice: str) -> UserError:
    return UserError(
        f"{shown(str(path))} cannot hold the calibration: {reason}", code="INGOT-U025", advice=advice
    )


def save(path: Path, program: str, ranges: Ranges, channels: Mapping[str, torch.Tensor]) -> None:
    rows = {name: [float(bound) for bound in each] for name, each in ranges.items()}
    whole = {
        "program": program,
        "ranges": rows,
        "channels": {name: each.tolist() for name, each in channels.items()},
    }
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(whole, indent=1) + "\n")
    partial.replace(path)
