# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.prepared [MODEL]`: loading an engine that leaves its weights to a file, in processes of their own.

In turns: a first load that waits until the prepared weights are written (`INGOT_CACHE_WRITE_POLICY=through`), a first load that does not
(the default), a first load that keeps nothing, and a load that maps what another process kept. Minimum and median of the rounds, in
milliseconds; `until it ends` is the time from the load to the end of the process, which waits for what is still being written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

_LOAD = """
import sys, time, ingot
start = time.perf_counter()
engine = ingot.Engine.load(sys.argv[1])
loaded = time.perf_counter()
ingot.cache_flush(600)
print((loaded - start) * 1e3, (time.perf_counter() - start) * 1e3)
"""
_WAYS = {
    "first, waits": ("through", True),
    "first, in the background": ("back", True),
    "first, keeps nothing": ("none", True),
    "mapped": ("back", False),
}


def load(folder: Path, policy: str, is_first: bool) -> tuple[float, float]:
    if is_first:
        shutil.rmtree(folder / "cache", ignore_errors=True)
    environment = {
        **os.environ,
        "INGOT_ENGINE_CACHE_DIR": str(folder / "cache"),
        "INGOT_CACHE_WRITE_POLICY": policy,
    }
    command = [sys.executable, "-c", _LOAD, folder / "model.ingot"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    loaded, ended = map(float, done.stdout.split())
    return loaded, ended


def main() -> None:
    import ingot
    import torch
    from models import build
    from safetensors.torch import save_file

    parser = argparse.ArgumentParser(prog="bench.prepared", description=__doc__)
    parser.add_argument("model", nargs="?", default="bert_base", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    case = build(arguments.model)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = {key: value.clone() for key, value in case.model.state_dict().items()}
        save_file(state, folder / "model.safetensors")
        module = ingot.compile(case.model, inputs=list(case.args), weights_file=folder / "model.safetensors")
        ingot.save(module, folder / "model.ingot", output_format="engine")
        taken: dict[str, list[tuple[float, float]]] = {way: [] for way in _WAYS}
        for _ in range(arguments.rounds):
            for way in ("first, waits", "first, keeps nothing", "first, in the background", "mapped"):
                taken[way].append(load(folder, *_WAYS[way]))
    for way, times in taken.items():
        loads, ends = zip(*times, strict=True)
        print(
            f"{way:26} {min(loads):8.1f} ms, median {statistics.median(loads):8.1f}; until it ends {statistics.median(ends):8.1f}"
        )


if __name__ == "__main__":
    main()
