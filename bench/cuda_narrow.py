# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.cuda_narrow llama_1b --dtype bfloat16`: a decoding step on the first GPU with weights of 16, 8 and 4 bits, in turns.

Models are those of bench.cuda_peers. Times are medians of calls on an idle GPU, by events; differences are the largest of the first
result to that of the engine with weights of 16 bits, over its largest value.
"""

from __future__ import annotations

import copy
import statistics
from typing import Any

import ingot
import torch
from ingot.devices import architecture
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerGroup,
    quantize_,
)
from torchao.utils import unwrap_tensor_subclass

from bench import cuda_cases
from bench.cuda_peers import ROUNDS, call_us, first

CONFIGS: dict[str, Any] = {
    "16 bits": None,
    "int8": Int8WeightOnlyConfig(),
    "fp8": Float8WeightOnlyConfig(),
    "int4": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(64)),
}


def engine_of(model: torch.nn.Module, args: tuple, config: Any) -> ingot.Engine:
    if config is not None:
        model = copy.deepcopy(model)
        quantize_(model, config)
    program = torch.export.export(unwrap_tensor_subclass(model), args)
    return ingot.build(program, device=f"cuda:{architecture()}")


def measure(name: str, dtype: torch.dtype) -> None:
    model, args = cuda_cases.in_dtype(cuda_cases.build(name), dtype)
    engines = {bits: engine_of(model, args, config) for bits, config in CONFIGS.items()}
    inputs = [value.cuda() for value in args]
    results = {bits: first(engine(*inputs)).float() for bits, engine in engines.items()}
    times: dict[str, list[float]] = {bits: [] for bits in engines}
    for _ in range(ROUNDS):
        for bits, engine in engines.items():
            times[bits] += call_us(lambda _, engine=engine: engine(*inputs))
    wide = results["16 bits"]
    for bits, taken in times.items():
        difference = float((results[bits] - wide).abs().max() / wide.abs().max())
        print(
            f"{name:10} {bits:8} {statistics.median(taken):8.1f} us  difference {difference:.3f}", flush=True
        )


def main() -> None:
    parser = cuda_cases.parser(__doc__)
    given = parser.parse_args()
    with torch.no_grad():
        for name in given.models:
            measure(name, getattr(torch, given.dtype))


if __name__ == "__main__":
    main()
