# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.bfloat16 [--threads 1 4 16] [--batch N] [MODEL ...]`: models in bf16 by torch, and by Ingot for several levels.

Turns of all ways alternate in one process, and the smallest time of each counts, with one thread the process's own.
Torch runs the model in bf16 as its libraries see fit, which is by matrix registers where the processor has
them. `mixed` is the f32 model with `enabled_precisions`, beside torch's autocast. Errors are against f64, relative to the
root mean square.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from models import build  # noqa: E402

ROUNDS, BURST_S = 6, 0.4
WITHOUT = {"amx-tile", "amx-bf16", "amx-int8"}


def levels() -> dict[str, str]:
    """This processor, and without its matrix registers."""
    import ingot

    program = torch.export.export(torch.nn.Linear(2, 2).eval(), (torch.ones(1, 2),))
    host = ingot.build(program).target.split()[0].removeprefix("cpu:")
    plain = "+".join(word for word in host.split("+") if word not in WITHOUT)
    return {"native": host} if plain == host else {"matrices": host, "vectors": plain}


def repeated(case: Any, batch: int) -> tuple[Any, ...]:
    return tuple(value.repeat(batch, *[1] * (value.dim() - 1)) for value in case.args)


def in_bfloat16(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.bfloat16() if value.is_floating_point() else value for value in values)


def why_not(run: Callable[[], Any]) -> str | None:
    """Why torch cannot: autocast gives a cache of f32 keys of bf16, for example."""
    try:
        run()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return None


def ways(model: torch.nn.Module, args: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
    import ingot

    narrow, given = copy.deepcopy(model).bfloat16(), in_bfloat16(args)

    def autocast() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(*args)

    runs: dict[str, Callable[[], Any]] = {"torch bf16": lambda: narrow(*given)}
    if reason := why_not(autocast):
        print(f"torch autocast left out: {reason}", flush=True)
    else:
        runs["torch autocast"] = autocast
    for name, cpu in levels().items():
        engine = ingot.build(torch.export.export(narrow, given), cpu=cpu)
        runs[f"{name} bf16"] = lambda engine=engine: engine(*given)
        mixed = ingot.build(
            torch.export.export(model, args), cpu=cpu, enabled_precisions={torch.float32, torch.bfloat16}
        )
        runs[f"{name} mixed"] = lambda mixed=mixed: mixed(*args)
    return runs


def first(result: Any) -> torch.Tensor:
    return (result[0] if isinstance(result, (tuple, list)) else result).double()


def fastest(runs: dict[str, Callable[[], Any]], clock: Callable[[], float]) -> dict[str, float]:
    """Milliseconds of each."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            end = clock() + BURST_S / len(runs)
            while True:
                begin = clock()
                run()
                now = clock()
                best[name] = min(best[name], (now - begin) * 1e3)
                if now > end:
                    break
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["bert_base"], metavar="MODEL")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--batch", type=int, default=1)
    options = parser.parse_args()
    import ingot

    torch.set_grad_enabled(False)
    for name in options.models:
        case = build(name)
        args = repeated(case, options.batch)
        wide = copy.deepcopy(case.model).double()
        exact = first(wide(*[value.double() if value.is_floating_point() else value for value in args]))
        runs = ways(case.model, args)
        scale = exact.square().mean().sqrt()
        errors = {way: float((first(run()) - exact).abs().mean() / scale) for way, run in runs.items()}
        for threads in options.threads:
            torch.set_num_threads(threads)
            ingot.set_threads(threads)
            clock = time.process_time if threads == 1 else time.perf_counter
            for way, milliseconds in fastest(runs, clock).items():
                print(
                    f"{name} batch {options.batch} threads {threads} {way:16} {milliseconds:9.3f} ms"
                    f"  mean error {errors[way]:.5f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
