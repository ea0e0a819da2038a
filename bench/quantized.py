# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.quantized [--model bert | llama | resnet50]`: f32, 8 and 4 bits, in eager mode, inductor and Ingot.

bert: layers of BERT-base, quantized by torchao (weights alone, or activations too, while they run). llama: layers of a decoder of 2,048
columns with weights of int8, fp8 and int4, for one token, whose time is that of reading weights: the gigabytes per second of that are
printed, and those of adding up an array of f32 beside them. resnet50: quantized by PT2E for x86; its peer is what torchao lowers the
same program to (oneDNN), which inductor cannot freeze. TORCHINDUCTOR_FREEZING=1 for the best peer. Prints milliseconds per call
(with one thread of the process's own time), the smallest of the turns, in which all ways go round, and the largest difference of each
engine's result to that of the same program in eager mode. `python -m bench --int8` compares whole models with peers' own tools.
"""

from __future__ import annotations

import argparse
import copy
import logging
import time
from collections.abc import Callable
from typing import Any

import ingot
import torch
from torch import nn
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerGroup,
    quantize_,
)


def _int4() -> IntxWeightOnlyConfig:
    return IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32))


CONFIGS = {
    "f32": None,
    "weights": Int8WeightOnlyConfig,
    "fp8": Float8WeightOnlyConfig,
    "int4": _int4,
    "dynamic": Int8DynamicActivationInt8WeightConfig,
}
BITS = {
    "f32": 32,
    "weights": 8,
    "fp8": 8,
    "int4": 4 + 40 / 32,
}  # of a weight, with its scales and zero points
CALIBRATION = 4  # batches: accuracy is not what is measured here
Ways = dict[str, Callable[[], Any]]


def encoder(layers: int) -> nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return BertModel(BertConfig(num_hidden_layers=layers), add_pooling_layer=False).eval()


def engine_of(model: nn.Module, name: str, x: torch.Tensor) -> Any:
    engine = ingot.compile(model, inputs=[x], require_full_compilation=True)
    difference = (engine(x)[0] - model(x)[0]).abs().max().item()
    print(f"{name}: engine differs from eager by at most {difference:.2g}", flush=True)
    return engine


def ways_of(model: nn.Module, name: str, tokens: torch.Tensor) -> Ways:
    if (config := CONFIGS[name]) is not None:
        model = copy.deepcopy(model)
        quantize_(model, config())
    torch._dynamo.reset()
    inductor = torch.compile(model)
    engine = engine_of(model, name, tokens)
    return {
        f"{name} eager": lambda: model(tokens),
        f"{name} inductor": lambda: inductor(tokens),
        f"{name} ingot": lambda: engine(tokens),
    }


def resnet50() -> nn.Module:
    from transformers import ResNetConfig, ResNetModel

    torch.manual_seed(0)
    model = ResNetModel(ResNetConfig()).eval()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(0, 0.1)
            norm.running_var.uniform_(0.5, 1.5)
    return model


def quantized_by_pt2e(model: nn.Module, x: torch.Tensor) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, (x,)).module(), quantizer)
    for _ in range(CALIBRATION):
        prepared(torch.randn_like(x))
    return convert_pt2e(prepared)


def ways_of_resnet() -> Ways:
    from torchao.quantization.pt2e.lowering import lower_pt2e_quantized_to_x86

    model, x = resnet50(), torch.randn(1, 3, 224, 224)
    program = quantized_by_pt2e(model, x)
    wide, narrow = engine_of(model, "f32", x), engine_of(program, "static", x)
    lowered = lower_pt2e_quantized_to_x86(copy.deepcopy(program), (x,))
    inductor = torch.compile(model)
    return {
        "f32 eager": lambda: model(x),
        "f32 inductor": lambda: inductor(x),
        "f32 ingot": lambda: wide(x),
        "static onednn": lambda: lowered(x),
        "static ingot": lambda: narrow(x),
    }


def llama(layers: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 2048, "intermediate_size": 5632, "num_attention_heads": 16, "vocab_size": 1000}
    return LlamaModel(LlamaConfig(num_hidden_layers=layers, use_cache=False, **sizes)).eval()


def stream() -> float:
    """Gigabytes per second of reading f32 that no cache holds."""
    array = torch.ones(1 << 27)
    times = smallest({"sum": array.sum}, 4)
    return array.numel() * 4 / times["sum"] / 1e9


def show_llama(layers: int, rounds: int, alone: bool) -> None:
    model, tokens = llama(layers), torch.zeros((1, 1), dtype=torch.int64)
    linear = sum(each.weight.numel() for each in model.modules() if isinstance(each, nn.Linear))
    ways: Ways = {}
    for name in BITS:
        ways |= ways_of(model, name, tokens)
    if alone:
        ways = {name: way for name, way in ways.items() if name.endswith("ingot")}
    print(
        f"one token, {linear / 1e6:.0f} M weights in linear layers; adding up f32 {stream():.1f} GB/s",
        flush=True,
    )
    for name, seconds in smallest(ways, rounds).items():
        rate = linear * BITS[name.split()[0]] / 8 / seconds / 1e9
        print(f"  {name:18} {seconds * 1e3:8.2f} ms {rate:6.1f} GB/s", flush=True)


def smallest(ways: Ways, rounds: int) -> dict[str, float]:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = dict.fromkeys(ways, float("inf"))
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            start = clock()
            way()
            times[name] = min(times[name], clock() - start)
    return times


def show(title: str, ways: Ways, rounds: int) -> None:
    for name, seconds in smallest(ways, rounds).items():
        print(f"{title}  {name:18} {seconds * 1e3:8.2f} ms", flush=True)


def show_bert(layers: int, lengths: list[int], rounds: int) -> None:
    model = encoder(layers)
    for length in lengths:
        tokens = torch.randint(0, 1000, (1, length))
        ways: Ways = {}
        for name in CONFIGS:
            ways |= ways_of(model, name, tokens)
        show(f"{length:4} tokens", ways, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.quantized", description=__doc__)
    parser.add_argument("--model", choices=("bert", "llama", "resnet50"), default="bert")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 1])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="llama: without eager mode and inductor")
    arguments = parser.parse_args()
    logging.getLogger("ingot").setLevel(logging.ERROR)
    torch.set_num_threads(arguments.threads)
    ingot.set_threads(arguments.threads)
    with torch.no_grad():
        if arguments.model == "resnet50":
            show("resnet50", ways_of_resnet(), arguments.rounds)
        elif arguments.model == "llama":
            show_llama(arguments.layers, arguments.rounds, arguments.alone)
        else:
            show_bert(arguments.layers, arguments.tokens, arguments.rounds)


if __name__ == "__main__":
    main()
