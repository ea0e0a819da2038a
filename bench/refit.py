# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.refit [MODEL ...]`: how long new weights take.

In turns, in one process: a refit with all weights of a built and of a loaded engine, from a state dict and from a .safetensors file; with
one layer's weights; and, to compare, a copy of as many bytes. Then calls of `MutableModule`, without a change and after one layer was
updated in place: the difference is what noticing and refitting take. Minimum and median of the rounds, in milliseconds.

`--watch`: calls of what torch.compile calls, with 200 small weights, and the same calls if the engine is not told of them, in turns:
the difference is what watching them takes, with nothing between the calls, and with half of a second-level cache read between them.
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
    mutable = ingot.MutableModule(case.model)
    parameters = [value for key, value in case.model.named_parameters() if LAYERS.get(name, "") in key]

    def after_an_update() -> None:
        for value in parameters:
            value.mul_(1.0)
        mutable(*case.args)

    mutable(*case.args)
    size = sum(value.nbytes for value in state.values())
    source, target = torch.empty(size, dtype=torch.uint8), torch.empty(size, dtype=torch.uint8)
    return size, {
        "copy of the bytes": lambda: target.copy_(source),
        "built, state dict": lambda: module.refit(state),
        "built, one layer": lambda: module.refit(layer, partial=True),
        "loaded, state dict": lambda: loaded.refit(state),
        "loaded, safetensors": lambda: loaded.refit(folder / "new.safetensors"),
        "loaded, one layer": lambda: loaded.refit(layer, partial=True),
        "call": lambda: mutable(*case.args),
        "call, one layer": after_an_update,
    }


def runners(count: int) -> tuple[list[Any], list[Any]]:
    """What torch.compile calls, with and without weights to watch, and the arguments."""
    import ingot
    import torch
    from ingot import _core, watching

    class Sums(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.randn(8) for _ in range(count))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.stack(list(self.weights)).sum(0)

    model, x = Sums().eval(), torch.randn(8)
    engine = ingot.compile(model, inputs=[x]).compiled.engines[0]
    weights = [(name, value, k + 1) for k, (name, value) in enumerate(model.named_parameters())]
    both = [
        _core.Runner(engine, [0], rows, torch.empty(0), "fast", watching.tensors()) for rows in (weights, [])
    ]
    return both, [x, *model.parameters()]


def watch(rounds: int) -> None:
    import numpy

    count = 200
    both, arguments = runners(count)
    for kilobytes in (0, 256):
        other = numpy.zeros(kilobytes << 7)
        taken: list[list[float]] = [[], []]
        for _ in range(400 * rounds):
            for times, runner in zip(taken, both, strict=True):
                other.sum()
                start = time.perf_counter()
                runner(arguments)
                times.append((time.perf_counter() - start) * 1e6)
        least, median = (
            with_weights - without
            for with_weights, without in (map(min, taken), map(statistics.median, taken))
        )
        print(
            f"watching {count} weights, {kilobytes:3} KB read between calls: {least:.1f} us per call, median {median:.1f}"
        )


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="bench.refit", description=__doc__)
    parser.add_argument("models", nargs="*", default=["bert_base", "resnet50"], metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--watch", action="store_true")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    if arguments.watch:
        watch(arguments.rounds)
        return
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
