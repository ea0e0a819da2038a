# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.weight_streaming MODEL ...`: calls on the first GPU with 100, 75, 50 and 25 % of the weights there.

A time is the median of a call on an idle GPU, by events.
Results must equal those of 100 % bit for bit.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import ingot
import torch
from ingot.devices import architecture

from bench import cuda_cases
from bench.cuda_peers import ROUNDS, call_us, first

SHARES = (100, 75, 50, 25)


def measure(name: str, dtype: torch.dtype) -> dict:
    model, args = cuda_cases.in_dtype(cuda_cases.build(name), dtype)
    engine = ingot.build(torch.export.export(model, args), device=f"cuda:{architecture()}")
    inputs = [tuple(value.cuda().clone() for value in args) for _ in range(2)]
    expected = first(engine(*inputs[0]))
    rows = []
    with ingot.runtime.weight_streaming(engine) as weights:
        for share in SHARES:
            weights.device_budget = weights.total_device_budget * share // 100
            for k in range(6):
                equal = torch.equal(first(engine(*inputs[k % 2])), expected) if k % 2 == 0 else True
                assert equal, f"{name}: other results with {share} % of the weights on the GPU"
            times = [us for _ in range(ROUNDS) for us in call_us(lambda k: engine(*inputs[k % 2]))]
            beside = weights.total_device_budget - weights.resident_bytes
            rows.append(
                {"percent": share, "budget": weights.device_budget, "us": statistics.median(times), "host_bytes": beside}
            )  # fmt: skip
        return {"model": name, "dtype": str(dtype), "total": weights.total_device_budget,
                "minimum": weights.minimum_device_budget, "rows": rows}  # fmt: skip


def main() -> None:
    parser = cuda_cases.parser(__doc__)
    parser.add_argument("--output", type=Path, help="JSON")
    given = parser.parse_args()
    results = []
    with torch.no_grad():
        for name in given.models:
            result = measure(name, getattr(torch, given.dtype))
            results.append(result)
            print(
                f"{name}: {result['total'] / 1e6:.1f} MB of weights, at least {result['minimum'] / 1e6:.1f} MB on the GPU"
            )
            for row in result["rows"]:
                print(
                    f"  {row['percent']:3} %  {row['budget'] / 1e6:8.1f} MB  {row['us']:9.1f} us  "
                    f"{row['host_bytes'] / 1e6:8.1f} MB on the host",
                    flush=True,
                )
    if given.output:
        given.output.write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "results": results}))


if __name__ == "__main__":
    main()
