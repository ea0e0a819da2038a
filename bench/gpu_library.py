# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.gpu_library`: products by the templates of Ingot and by cuBLASLt, as level 4 times them, with the `ingot` program.

Prints, for products of BERT-base (32 x 128 tokens, f16) and of prefill of 512 tokens of Llama 1B (bf16), the microseconds of the
kernel that level 3 predicts, of the fastest of Ingot's own, and of what is fastest with cuBLASLt, with their names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

# Rows, columns, depth, and what is behind the sums.
PRODUCTS = {
    "BERT attention's output": (torch.float16, 4096, 768, 768, "bias and residual"),
    "BERT second linear": (torch.float16, 4096, 768, 3072, "bias and residual"),
    "BERT queries, keys, values": (torch.float16, 4096, 2304, 768, "bias"),
    "Llama attention's output": (torch.bfloat16, 512, 2048, 2048, "residual"),
    "Llama down": (torch.bfloat16, 512, 2048, 8192, "residual"),
    "Llama gate and up": (torch.bfloat16, 512, 16384, 2048, ""),
}


class Product(nn.Module):
    def __init__(self, columns: int, depth: int, behind: str) -> None:
        super().__init__()
        self.linear = nn.Linear(depth, columns, bias="bias" in behind)
        self.behind = behind

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        y = self.linear(x)
        return y if residual is None else y + residual


def export(folder: Path, name: str) -> Path:
    dtype, rows, columns, depth, behind = PRODUCTS[name]
    model = Product(columns, depth, behind).eval().requires_grad_(False).to(dtype)
    inputs = [torch.randn(rows, depth, dtype=dtype)]
    if "residual" in behind:
        inputs.append(torch.randn(rows, columns, dtype=dtype))
    path = folder / "product.pt2"
    torch.export.save(torch.export.export(model, tuple(inputs)), path)
    return path


def ingot(*arguments: object, library: bool = True) -> str:
    environment = dict(os.environ)
    if not library:
        environment["INGOT_CUBLASLT"] = "/nonexistent"
    words = ["ingot", *map(str, arguments)]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(words)}\n{run.stdout}{run.stderr}")
    return run.stdout


def timed(model: Path, architecture: str, level: int, library: bool) -> tuple[float, str]:
    """Microseconds of the product's step, and its kernel."""
    engine = model.with_suffix(".ingot")
    ingot("build", model, "-o", engine, "--device", f"cuda:{architecture}", "--engine-cache-dir", "off",
          "--timing-cache-path", engine.with_suffix(f".{level}{library}"), "--optimization-level", level, library=library)  # fmt: skip
    steps = json.loads(ingot("profile", engine, "--json", "--seconds", 0.5))["steps"]
    step = max(steps, key=lambda each: each["median_ns"])
    return step["median_ns"] / 1e3, step["kernel"]


def main() -> None:
    major, minor = torch.cuda.get_device_capability()
    architecture = f"sm_{major}{minor}" + ("a" if major == 9 else "")
    print(torch.cuda.get_device_name())
    with tempfile.TemporaryDirectory() as folder:
        for name in PRODUCTS:
            model = export(Path(folder), name)
            ways = {
                "level 3": (3, False),
                "level 4, own": (4, False),
                "level 4": (4, True),
                "level 5": (5, True),
            }
            for way, (level, library) in ways.items():
                us, kernel = timed(model, architecture, level, library)
                print(f"{name}, {way}: {us:.1f} us, {kernel}", flush=True)
            for old in Path(folder).iterdir():
                old.unlink()


if __name__ == "__main__":
    main()
