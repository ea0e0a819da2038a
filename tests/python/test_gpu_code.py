# SPDX-License-Identifier: Apache-2.0
"""The machine code of kernels for GPUs: what runs once takes as long as its instructions, and ptxas decides how many there are."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from gpu_targets import needs_nvrtc

_PACKAGE = importlib.util.find_spec("nvidia")  # the Python packages of CUDA, if there are any
_FOLDERS = [] if _PACKAGE is None else list(_PACKAGE.submodule_search_locations or [])
_DISASSEMBLERS = [path for folder in _FOLDERS for path in Path(folder).glob("*/bin/nvdisasm")]
_ELF = b"\x7fELF"
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?([A-Z][A-Z0-9_.]+)")

pytestmark = [
    needs_nvrtc,
    pytest.mark.skipif(not _DISASSEMBLERS, reason="there is no nvdisasm"),
]


class Attention(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(x, x, x)


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = (
            torch.nn.LayerNorm(768),
            torch.nn.Linear(768, 3072),
            torch.nn.Linear(3072, 768),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def instructions_of(engine: ingot.Engine, folder: Path) -> list[list[str]]:
    """The names of the instructions of each kernel."""
    data, kernels = engine.to_bytes(), []
    for number, start in enumerate(match.start() for match in re.finditer(re.escape(_ELF), data)):
        path = folder / f"{number}.cubin"
        path.write_bytes(data[start:])  # what lies behind an ELF file is not read
        command = [str(_DISASSEMBLERS[0]), "-c", str(path)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        kernels.append(_INSTRUCTION.findall(text))
    return kernels


_CASES = {
    "warp groups": (torch.nn.Linear(768, 768), (128, 768)),
    "warp groups, shares of the depth": (torch.nn.Linear(3072, 768), (128, 3072)),
    "norms beside products": (torch.nn.Sequential(Block(), Block()), (128, 768)),
    "tiles in turns": (torch.nn.Linear(768, 2304), (4096, 768)),
    "attention by warps": (Attention(), (1, 12, 128, 64)),
    "attention by groups of warps": (Attention(), (32, 12, 197, 64)),
}


@pytest.mark.parametrize("case", _CASES)
def test_bulk_copies_are_issued_once(case: str, tmp_path: Path) -> None:
    model, shape = _CASES[case]
    program = torch.export.export(model.eval().half(), (torch.zeros(shape).half(),))
    kernels = instructions_of(ingot.build(program, device="cuda:sm_90a"), tmp_path)
    copying = [names for names in kernels if any(name.startswith("UTMALDG") for name in names)]
    assert copying, "operands come by bulk copies"
    for names in copying:
        assert "BRA.U.ANY" not in names, "no loop over the lanes of a warp is around a copy"


_PRODUCTS = ["warp groups", "warp groups, shares of the depth", "norms beside products", "tiles in turns"]


@pytest.mark.parametrize("case", _PRODUCTS)
def test_products_follow_each_other(case: str, tmp_path: Path) -> None:
    model, shape = _CASES[case]
    program = torch.export.export(model.eval().half(), (torch.zeros(shape).half(),))
    kernels = instructions_of(ingot.build(program, device="cuda:sm_90a"), tmp_path)
    multiplying = [names for names in kernels if any(name.startswith("HGMMA") for name in names)]
    assert multiplying
    for names in multiplying:
        places = [place for place, name in enumerate(names) if name.startswith("HGMMA")]
        assert not [name for name in names[places[0] : places[-1]] if name.startswith("R2UR")]
