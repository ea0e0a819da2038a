# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.cpu_levels [MODEL]`: an engine of several CPU levels beside engines of one.

Size of the file; time until it is loaded, until the first result, and of a call on one thread. Loads take turns, and the smallest
time of each counts: the files are in the page cache.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from models import build  # noqa: E402

ROUNDS, CALLS = 9, 5


def native() -> str:
    import ingot

    program = torch.export.export(torch.nn.Linear(2, 2).eval(), (torch.ones(1, 2),))
    return ingot.build(program).target.split()[0].removeprefix("cpu:")


def ways() -> dict[str, dict[str, Any]]:
    host = native()
    levels = list(dict.fromkeys(["x86-64-v3", "x86-64-v4", host]))
    return {
        f"{host}, prepared": {"cpu": host},
        f"{host}, original": {"cpu": host, "keep_original_weights": True},
        "x86-64-v3, original": {"cpu": "x86-64-v3", "keep_original_weights": True},
        " and ".join(levels): {"cpu": levels},
        " and ".join([*levels, "aarch64"]): {"cpu": [*levels, "aarch64"]},
    }


def milliseconds(since: float) -> float:
    return 1e3 * (time.perf_counter() - since)


def load(path: Path, args: tuple[Any, ...]) -> tuple[float, float, float]:
    import ingot

    start = time.perf_counter()
    engine = ingot.Engine.load(path, threads=1)
    loaded = milliseconds(start)
    engine(*args)
    first = milliseconds(start)
    calls = []
    for _ in range(CALLS):
        start = time.perf_counter()
        engine(*args)
        calls.append(milliseconds(start))
    return loaded, first, min(calls)


def main() -> None:
    import ingot

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bert_base", metavar="MODEL")
    case = build(parser.parse_args().model)
    program = torch.export.export(case.model, case.args)
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for number, (name, options) in enumerate(ways().items()):
            paths[name] = Path(folder) / f"{number}.ingot"
            start = time.perf_counter()
            ingot.build(program, **options).save(paths[name])
            print(f"built {name} in {milliseconds(start) / 1e3:.1f} s", file=sys.stderr)
        times = {name: [load(path, case.args) for _ in range(1)] for name, path in paths.items()}
        for _ in range(ROUNDS - 1):
            for name, path in paths.items():
                times[name].append(load(path, case.args))
        print(f"{'levels':70} {'MB':>8} {'load ms':>8} {'first ms':>9} {'call ms':>8}")
        for name, path in paths.items():
            loaded, first, call = map(min, zip(*times[name], strict=True))
            print(f"{name:70} {path.stat().st_size / 1e6:8.1f} {loaded:8.1f} {first:9.1f} {call:8.1f}")


if __name__ == "__main__":
    main()
