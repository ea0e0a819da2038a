# SPDX-License-Identifier: Apache-2.0
"""What tests/tools/try_runtime_wheel.py opens, built by a package with the compiler: make_runtime_models.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import ingot
import numpy as np
import torch


class Named(torch.nn.Module):
    """Keywords in, a dict out; torch runs its middle."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = torch.erfinv(torch.tanh(self.first(x)) * 0.5)
        return {"result": self.second(hidden) * scale, "hidden": hidden}


def save(folder: Path) -> None:
    torch.manual_seed(1)
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(9, 8))
    scale = ingot.Input(shape=(1,))
    generator = np.random.default_rng(2)
    x = generator.standard_normal((5, 8), dtype=np.float32)
    arguments = torch.from_numpy(x), torch.full((1,), 2.0)
    np.save(folder / "x.npy", x)
    layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).eval()
    model = Named().eval()
    with torch.no_grad():
        ingot.cross_compile_for_windows(
            layers, folder / "layers.ingot", inputs=[rows], require_full_compilation=True
        )
        np.save(folder / "layers.npy", np.asarray(ingot.Engine.load(folder / "layers.ingot")(x)))
        for name, options in {
            "whole.pt2": {},
            "hybrid.pt2": {"torch_executed_ops": {"aten.erfinv.default"}, "min_block_size": 1},
        }.items():
            ingot.cross_compile_for_windows(
                model, folder / name, inputs=[rows], kwarg_inputs={"scale": scale}, **options
            )
            loaded = ingot.load_cross_compiled_exported_program(folder / name)
            result = loaded(arguments[0], scale=arguments[1])
            np.savez(folder / f"{name}.npz", **{key: value.numpy() for key, value in result.items()})
        assert len(loaded.report.segments) > 1, "nothing runs in torch"


if __name__ == "__main__":
    save(Path(sys.argv[1]))
