# SPDX-License-Identifier: Apache-2.0
"""One program for four ranks in two kinds of groups, two rows (dp) of two columns (tp), for rank_checks.py."""

from pathlib import Path

import ingot
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

WHOLE = {"rank": "all", "require_full_compilation": True}


class Divided(nn.Module):
    """31 hidden units on the columns; 5 samples on the rows: of both, one rank has less. A factor is each rank's own."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        torch.manual_seed(4)
        up, down = nn.Linear(8, 31), nn.Linear(31, 8, bias=False)
        self.whole = {
            "up.weight": up.weight.detach(),
            "up.bias": up.bias.detach(),
            "down.weight": down.weight.detach(),
        }
        self.dp, self.tp = (mesh.get_group(name) for name in ("dp", "tp"))
        row, column = self.dp.rank(), self.tp.rank()
        units, self.rows = (
            slice(0, 16) if column == 0 else slice(16, 31),
            slice(0, 3) if row == 0 else slice(3, 5),
        )
        self.factor = 1.0 + 2 * row + column
        self.register_buffer("mask", torch.arange(8) % 4 == 2 * row + column)
        self.up, self.down = (
            nn.Linear(8, units.stop - units.start),
            nn.Linear(units.stop - units.start, 8, bias=False),
        )
        self.up.weight, self.up.bias = (
            nn.Parameter(up.weight[units].clone()),
            nn.Parameter(up.bias[units].clone()),
        )
        self.down.weight = nn.Parameter(down.weight[:, units].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.up(x[self.rows]))
        total = funcol.all_reduce(self.down(hidden), "sum", self.tp)
        scaled = torch.where(self.mask, total * self.factor, total)
        return funcol.all_reduce(scaled.sum(0), "sum", self.dp)


class Beside(nn.Module):
    """Groups of which two ranks are at the same positions, and a number that these two do not share."""

    def __init__(self, groups: list[dist.ProcessGroup], rank: int) -> None:
        super().__init__()
        self.groups, self.rank = groups, rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for group in self.groups:
            x = funcol.all_reduce(x + self.rank, "sum", group)
        return x


def check(folder: Path, rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model, x = Divided(mesh).eval(), torch.randn(5, 8, generator=torch.Generator().manual_seed(2))
    module = ingot.compile(model, inputs=[x], strip_engine_weights=True, **WHOLE)
    assert ingot.distributed.group_names(module) == ["mesh_tp", "mesh_dp"]
    check_files(folder, module, model, x, rank, size)
    check_just_in_time(model, x)
    part = ingot.compile(model, inputs=[x], rank="all", torch_executed_ops=["aten.relu.default"])
    torch.testing.assert_close(part(x), model(x))
    check_refusals(mesh, rank)


def check_files(
    folder: Path, module: nn.Module, model: Divided, x: torch.Tensor, rank: int, size: int
) -> None:
    """The file of each rank is that of all, with the weights of this one or the whole ones, also after a refit."""
    module.engine.save(folder / f"mesh{rank}.ingot")
    dist.barrier()
    files = [(folder / f"mesh{other}.ingot").read_bytes() for other in range(size)]
    assert all(file == files[0] for file in files)
    assert int.from_bytes(files[0][8:12], "little") == 8, "earlier readers reject it by its format"
    for weights in (dict(model.state_dict()), {**model.state_dict(), **model.whole}):
        engine = ingot.Engine.load(folder / "mesh0.ingot", weights=weights)
        torch.testing.assert_close(engine(x), model(x))
    engine.refit({name: value * 2 for name, value in model.whole.items()})
    again = ingot.Engine.load(
        folder / "mesh0.ingot", weights={name: value * 2 for name, value in model.whole.items()}
    )
    torch.testing.assert_close(engine(x), again(x), rtol=0, atol=0)
    with_weights = folder / f"mesh_whole{rank}.ingot"
    engine.save(with_weights)
    torch.testing.assert_close(ingot.Engine.load(with_weights)(x), engine(x), rtol=0, atol=0)
    symbols = engine.inspect()["main"]["symbols"].values()
    groups = [set(symbol["by_rank"]["groups"]) for symbol in symbols if "by_rank" in symbol]
    assert {"mesh_tp"} in groups
    assert {"mesh_dp"} in groups, groups


def check_just_in_time(model: Divided, x: torch.Tensor) -> None:
    torch.compiler.reset()
    compiled = torch.compile(model, backend="ingot", options=WHOLE)
    torch.testing.assert_close(compiled(x), model(x))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    torch.testing.assert_close(compiled(x), model(x))


def check_refusals(mesh: DeviceMesh, rank: int) -> None:
    columns = mesh.get_group("tp")
    again = [dist.new_group(ranks, group_desc="again") for ranks in ([0, 1], [2, 3])][rank // 2]
    unnamed = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])][rank % 2]
    x = torch.ones(3)
    refuse(
        Beside([columns, again], rank), x, r"differs between ranks that have the same position in each group"
    )
    refuse(Beside([columns, unnamed], 1), x, r"without a name in common")


def refuse(model: nn.Module, x: torch.Tensor, what: str) -> None:
    with pytest.raises(ingot.UserError, match=what) as info:
        ingot.compile(model, inputs=[x], **WHOLE)
    assert info.value.code == "INGOT-U359"
