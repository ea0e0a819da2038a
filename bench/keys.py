# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.keys`: how long a model's key takes, by its number of layers.

The key is the text of the imported graph in its canonical form; constants in it are hashed, weights are not read. The models
have the graphs of Llama's and BERT's layers at small widths, which the time does not depend on. Processor time, the least of the rounds.

`--plot FILE.svg` draws it over the number of nodes: docs/key_times.svg is such a plot.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))


def llama(layers: int) -> tuple[Any, Any]:
    import torch
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=2
    )
    return LlamaModel(config).eval(), (torch.zeros(1, 8, dtype=torch.int64),)


def bert(layers: int) -> tuple[Any, Any]:
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=2
    )
    return BertModel(config, add_pooling_layer=False).eval(), (torch.zeros(1, 8, dtype=torch.int64),)


def seconds_of_key(program: Any, rounds: int) -> float:
    import ingot

    from bench.reuse import Clock

    taken = []
    for _ in range(rounds):
        clock = Clock()
        ingot.build(program, progress=clock, optimization_level=0, engine_cache_dir="off")
        taken.append(clock.processor["key"])
    return min(taken)


def plot(rows: dict[str, list[tuple[int, float]]]) -> str:
    """An SVG of milliseconds over nodes, a line per model."""
    width, height, margin = 560, 320, 48
    most_nodes = max(nodes for points in rows.values() for nodes, _ in points) * 1.05
    most_ms = max(ms for points in rows.values() for _, ms in points) * 1.1

    def at(nodes: float, ms: float) -> str:
        return f"{margin + nodes / most_nodes * (width - 2 * margin):.1f},{height - margin - ms / most_ms * (height - 2 * margin):.1f}"

    def label(nodes: float, ms: float, text: str, more: str = "") -> str:
        x, y = at(nodes, ms).split(",")
        return f'<text x="{x}" y="{y}" {more}>{text}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<polyline points="{at(0, most_ms)} {at(0, 0)} {at(most_nodes, 0)}" fill="none" stroke="black"/>',
        label(most_nodes / 2, 0, "nodes of the exported graph", 'dy="36" text-anchor="middle"'),
        label(0, most_ms, "ms of processor time for the key", 'dy="-8"'),
    ]
    for (name, points), color in zip(rows.items(), ("#1f77b4", "#d62728"), strict=True):
        line = " ".join(at(nodes, ms) for nodes, ms in [(0, 0), *points])
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for nodes, ms in points:
            x, y = at(nodes, ms).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>')
            parts.append(label(nodes, 0, str(nodes), 'dy="16" text-anchor="middle" font-size="9"'))
        nodes, ms = points[-1]
        parts.append(label(nodes, ms, f"{name}, {ms:.1f} ms", f'dy="-8" text-anchor="end" fill="{color}"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="bench.keys", description=__doc__)
    parser.add_argument("--layers", type=int, nargs="*", default=[4, 8, 16, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    rows: dict[str, list[tuple[int, float]]] = {"bert": [], "llama": []}
    for name, make in (("bert", bert), ("llama", llama)):
        for layers in arguments.layers:
            model, args = make(layers)
            program = torch.export.export(
                model,
                args,
                kwargs={"use_cache": False, "return_dict": False}
                if name == "llama"
                else {"return_dict": False},
            )
            seconds = seconds_of_key(program, arguments.rounds)
            nodes = sum(node.op == "call_function" for node in program.graph.nodes)
            rows[name].append((nodes, seconds * 1e3))
            print(f"{name:6} {layers:3} layers {nodes:6} nodes  key {seconds * 1e3:7.2f} ms  "
                  f"{seconds / nodes * 1e6:6.2f} us per node", flush=True)  # fmt: skip
    if arguments.plot is not None:
        arguments.plot.write_text(plot(rows))


if __name__ == "__main__":
    main()
