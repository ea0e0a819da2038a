# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.refit [MODEL ...]`: how long new weights take.

In turns, in one process: a refit with all weights of a built and of a loaded engine, from a state dict and from a .safetensors file; with
one layer's weights; and, to compare, a copy of as many bytes. Minimum and median of the rounds, in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

LAYERS = {
    "bert_base": "encoder.layer.5.",
    "resnet50": "layer3.2.",
    "vit_b16": "encoder.layers.encoder_layer_5.",
}


def ways(name: str, folder: Path) -> tuple[int, dict[str, Callable[[], Any]]]:
    import ingot
    import torch
    from models import build
    from safetensors.torch import save_file

    case = build(name)
    module = ingot.compile(case.model, inputs=list(case.args))
    ingot.save(module, folder / "engine.ingot", output_format="engine")
    loaded = ingot.Engine.load(folder / "engine.ingot")
    state = {key: value.clone() for key, value in case.model.state_dict().items()}
    layer = {
        key: value
        for key, value in state.items()
        if LAYERS.get(name, "") in key and value.is_floating_point()
    }
    save_file(state, folder / "new.safetensors")
    size = sum(value.nbytes for value in state.values())
    source, target = torch.empty(size, dtype=torch.uint8), torch.empty(size, dtype=torch.uint8)
    return size, {
        "copy of the bytes": lambda: target.copy_(source),
        "built, state dict": lambda: module.refit(state),
        "built, one layer": lambda: module.refit(layer, partial=True),
        "loaded, state dict": lambda: loaded.refit(state),
        "loaded, safetensors": lambda: loaded.refit(folder / "new.safetensors"),
        "loaded, one layer": lambda: loaded.refit(layer, partial=True),
    }


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="bench.refit", description=__doc__)
    parser.add_argument("models", nargs="*", default=["bert_base", "resnet50"], metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            size, calls = ways(name, Path(folder))
            taken: dict[str, list[float]] = {way: [] for way in calls}
            for _ in range(arguments.rounds):
                for way, call in calls.items():
                    start = time.perf_counter()
                    call()
                    taken[way].append((time.perf_counter() - start) * 1e3)
        print(f"{name}: {size / 1e6:.0f} MB of weights")
        for way, times in taken.items():
            print(f"  {way:20} {min(times):8.1f} ms, median {statistics.median(times):8.1f}")


if __name__ == "__main__":
    main()
