# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.keys`: how long a model's key takes, by its number of layers.

The key is the text of the imported graph in its canonical form; constants in it are hashed, weights are not read. The models
have the graphs of Llama's and BERT's layers at small widths, which the time does not depend on.
"""

from __future__ import annotations

import argparse
import statistics
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
        taken.append(clock.seconds["key"])
    return statistics.median(taken)


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="bench.keys", description=__doc__)
    parser.add_argument("--layers", type=int, nargs="*", default=[4, 8, 16, 32])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
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
            print(f"{name:6} {layers:3} layers {nodes:6} nodes  key {seconds * 1e3:7.2f} ms  "
                  f"{seconds / nodes * 1e6:6.2f} us per node", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
