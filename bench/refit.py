# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.refit [MODEL ...]`: how long new weights take.

In turns, in one process: a refit with all weights of a built and of a loaded engine, from a state dict and from a .safetensors file; with
one layer's weights; and, to compare, a copy of as many bytes. Then calls of `MutableModule`, without a change and after one layer was
updated in place: the difference is what noticing and refitting take. Minimum and median of the rounds, in milliseconds.

`--watch`: calls of torch.compile with 200 small weights and with 2, beside those of a backend that does nothing, so that torch's own guards
do not count: what watching one weight costs, in processor time of the calling thread.
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


def do_nothing(module: Any, _example_inputs: Any) -> Callable[..., Any]:
    """A backend whose calls return the result of the first."""
    import torch

    result = module(*_example_inputs)
    return lambda *_: result if isinstance(result, torch.Tensor) else tuple(result)


def watching(rounds: int) -> None:
    import torch

    class Sums(torch.nn.Module):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.randn(8) for _ in range(count))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.stack(list(self.weights)).sum(0)

    x, calls = torch.randn(8), 200
    modules = {
        (backend, count): torch.compile(Sums(count).eval(), backend=backend)
        for backend in (do_nothing, "ingot")
        for count in (2, 200)
    }
    taken: dict[Any, list[float]] = {key: [] for key in modules}
    for _ in range(rounds + 1):
        for key, module in modules.items():
            module(x)
            start = time.thread_time()
            for _ in range(calls):
                module(x)
            taken[key].append((time.thread_time() - start) / calls * 1e6)
    least = {key: min(times[1:]) for key, times in taken.items()}
    for count in (2, 200):
        own, nothing = least["ingot", count], least[do_nothing, count]
        print(f"{count} weights: {own:.1f} us per call, of which torch {nothing:.1f}")
    watch = least["ingot", 200] - least[do_nothing, 200] - least["ingot", 2] + least[do_nothing, 2]
    print(f"watching 198 weights: {watch:.1f} us per call, {watch / 198 * 1e3:.0f} ns each")


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="bench.refit", description=__doc__)
    parser.add_argument("models", nargs="*", default=["bert_base", "resnet50"], metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--watch", action="store_true")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    if arguments.watch:
        watching(arguments.rounds)
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
