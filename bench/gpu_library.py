# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.gpu_library [WORD ...]`: layers by the kernels of Ingot and by NVIDIA's libraries, as levels 4 and 5 time them.

Prints, for products of BERT-base (32 x 128 tokens, f16) and of prefill of 512 tokens of Llama 1B (bf16), and for convolutions of
ResNet-50 and MobileNetV2 (32 images, f16) and others, the microseconds of the kernel that level 3 predicts, of the fastest of
Ingot's own, and of what is fastest with cuBLASLt and cuDNN, with their names. Only the cases whose names have one of the words.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from bench.library_cases import CASES, Layer


def export(folder: Path, name: str) -> Path:
    case = CASES[name]
    model = Layer(case).eval().requires_grad_(False)
    inputs = [case.input()]
    if "residual" in case.behind:
        inputs.append(torch.randn(model(*inputs).movedim(1, -1).shape))
    program = torch.export.export(model.to(case.dtype), tuple(value.to(case.dtype) for value in inputs))
    path = folder / "layer.pt2"
    torch.export.save(program, path)
    return path


def ingot(*arguments: object, library: bool = True) -> str:
    environment = dict(os.environ)
    if not library:
        environment |= {"INGOT_CUBLASLT": "/nonexistent", "INGOT_CUDNN": "/nonexistent"}
    words = ["ingot", *map(str, arguments)]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(words)}\n{run.stdout}{run.stderr}")
    return run.stdout


def timed(model: Path, architecture: str, level: int, library: bool) -> tuple[float, str]:
    """Microseconds of the layer's step, and its kernel."""
    engine = model.with_suffix(".ingot")
    ingot("build", model, "-o", engine, "--device", f"cuda:{architecture}", "--engine-cache-dir", "off", "--numerics", "fast",
          "--timing-cache-path", engine.with_suffix(f".{level}{library}"), "--optimization-level", level, library=library)  # fmt: skip
    steps = json.loads(ingot("profile", engine, "--json", "--seconds", 0.5))["steps"]
    step = next(
        each for each in steps if {"linear", "convolution"} & {own["op"] for own in each["operators"]}
    )
    return step["median_ns"] / 1e3, step["kernel"]


def main() -> None:
    major, minor = torch.cuda.get_device_capability()
    architecture = f"sm_{major}{minor}" + ("a" if major == 9 else "")
    words = sys.argv[1:] or [""]
    print(torch.cuda.get_device_name())
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name in CASES if any(word in name for word in words)):
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
