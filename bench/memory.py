# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.memory [MODEL ...]`: activation memory of each model and its lower bound.

The bound is the most that is alive at one step, at the typical sizes: no plan of the same steps takes less.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import ingot
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models import MODELS, build


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.memory", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    torch.set_grad_enabled(False)
    for model in parser.parse_args().models:
        case = build(model)
        plan = ingot.build(torch.export.export(case.model, case.args)).inspect()["main"]
        arena, live, buffers = plan["arena_bytes"], plan["live_bytes"], plan["buffer_bytes"]
        over = 100 * (arena / live - 1) if live else 0.0
        print(f"{model:15} arena {arena / 1e6:8.2f} MB  bound {live / 1e6:8.2f} MB  {over:+6.2f} %  "
              f"without sharing {buffers / 1e6:8.2f} MB", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
