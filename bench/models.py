# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.models [MODEL ...]`: what becomes of each model of tests/models/architectures.toml and tests/models/plain.

Each model runs in a process of its own, by torch.compile and ahead of time: outcome by the accuracy rule, graph breaks, engines, the
share of nodes in engines, build time, and time beside eager, interleaved. Rows go to a state file at once; a later run continues with
the models that have none, and `--write` makes the page of all rows.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

WAYS = ("jit", "aot")
_LIMIT_S = 900
# What most models import; processes are copies of one that has done so.
_IMPORTED_ONCE = (
    "models.outcomes", "transformers.modeling_utils", "transformers.generation", "transformers.masking_utils",
    "torch._dynamo.backends.common", "torch._inductor.decomposition", "torch._functorch.aot_autograd", "torch.export",
)  # fmt: skip


def measure(name: str, ways: list[str], dtypes: list[str], threads: int, results: Connection) -> None:
    """Runs in a process of its own; sends one row after the other."""
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(threads)
    import ingot
    from models.breadth import build
    from models.outcomes import ahead_of_time, in_dtype, just_in_time

    ingot.set_threads(threads)
    for dtype in dtypes:
        for way in ways:
            run = just_in_time if way == "jit" else ahead_of_time
            outcome = run(in_dtype(build(name), dtype))
            results.send({"name": name, "way": way, "dtype": dtype, **dataclasses.asdict(outcome)})


def run_model(context: Any, name: str, ways: list[str], dtypes: list[str], threads: int) -> list[dict]:
    """The rows of one model; what did not come back crashed."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measure, args=(name, ways, dtypes, threads, sender))
    process.start()
    sender.close()
    rows = []
    deadline = time.monotonic() + _LIMIT_S
    while receiver.poll(max(0.0, deadline - time.monotonic())):
        try:
            rows.append(receiver.recv())
        except EOFError:
            break
    if time.monotonic() >= deadline:
        process.kill()
    process.join()
    missing = [(way, dtype) for dtype in dtypes for way in ways][len(rows) :]
    reason = f"took more than {_LIMIT_S} s" if time.monotonic() >= deadline else f"status {process.exitcode}"
    for way, dtype in missing:
        rows.append({"name": name, "way": way, "dtype": dtype, "kind": "crashed", "message": reason})
    return rows


def read_rows(state: Path) -> dict[str, list[dict[str, Any]]]:
    """By model; later rows replace earlier ones of the same way and dtype."""
    rows: dict[str, dict[tuple[str, str], dict]] = {}
    for line in state.read_text().splitlines() if state.exists() else []:
        row = json.loads(line)
        rows.setdefault(row["name"], {})[row["way"], row["dtype"]] = row
    return {name: list(each.values()) for name, each in rows.items()}


def summary(row: dict[str, Any]) -> str:
    text = f"{row['way']} {row['dtype']} {row['kind']}"
    if row["message"]:
        return f"{text}: {row['message']}"
    text += f", {row['in_engines']} of {row['nodes']} nodes in {row['engines']} engines"
    return text + (f", {len(row['breaks'])} breaks" if row["breaks"] else "")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="bench.models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="only these, again; default: all without a row"
    )
    parser.add_argument("--ways", default="jit,aot", help="jit, aot or both")
    parser.add_argument("--dtypes", default="f32", help="f32, bf16 or both")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--state", type=Path, default=ROOT / "build/models.jsonl")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="writes the page of all rows; runs nothing"
    )
    arguments = parser.parse_args(words)
    from models.breadth import NAMES

    if arguments.write:
        from bench.models_page import page

        arguments.write.write_text(page(read_rows(arguments.state), NAMES))
        return
    if unknown := set(arguments.models) - set(NAMES):
        parser.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    ways, dtypes = arguments.ways.split(","), arguments.dtypes.split(",")
    run_all(arguments, arguments.models or without_rows(arguments.state, NAMES, ways, dtypes), ways, dtypes)


def without_rows(state: Path, names: list[str], ways: list[str], dtypes: list[str]) -> list[str]:
    """The models that a run has to continue with."""
    rows = read_rows(state)
    wanted = {(way, dtype) for way in ways for dtype in dtypes}
    return [name for name in names if not wanted <= {(r["way"], r["dtype"]) for r in rows.get(name, [])}]


def run_all(arguments: argparse.Namespace, names: list[str], ways: list[str], dtypes: list[str]) -> None:
    os.environ["INGOT_ENGINE_CACHE_DIR"] = "off"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED_ONCE))
    arguments.state.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    for number, name in enumerate(names):
        rows = run_model(context, name, ways, dtypes, arguments.threads)
        with arguments.state.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        left = (time.monotonic() - start) / (number + 1) * (len(names) - number - 1)
        print(
            f"{number + 1}/{len(names)} {name}: "
            + "; ".join(map(summary, rows))
            + f" (about {left / 60:.0f} min left)",
            flush=True,
        )


if __name__ == "__main__":
    main()
