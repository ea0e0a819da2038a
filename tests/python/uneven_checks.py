# SPDX-License-Identifier: Apache-2.0
"""One program for ranks whose parts differ in size (uneven_models.py), for rank_checks.py."""

from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from uneven_models import Changing, Gated, Heads, Own, Perceptron, Sum, Table, TwoAxes, cases

WHOLE = {"rank": "all", "require_full_compilation": True}


def check(folder: Path, rank: int, size: int) -> None:
    for model, x in cases(rank, size):
        check_one_engine(folder, model.eval(), x, rank, size)
    check_weights_inside(folder, rank, size)
    check_saved_modules(folder, rank, size)
    check_between_products(rank, size)
    check_other_sizes(rank, size)
    check_weights_file(folder, rank, size)
    check_wrong_parts(folder, rank, size)
    check_tensors_of_torch(size)
    check_refusals(rank)


def check_one_engine(folder: Path, model: nn.Module, x: torch.Tensor, rank: int, size: int) -> None:
    """One file without weights from all ranks, which takes each rank's own tensors, or the whole ones; and torch.compile."""
    eager, name = model(x), type(model).__name__
    cache = folder / f"cache_{name}"
    module = ingot.compile(model, inputs=[x], strip_engine_weights=True, engine_cache_dir=str(cache), **WHOLE)
    module.engine.save(folder / f"{name}{rank}.ingot")
    dist.barrier()
    files = [(folder / f"{name}{other}.ingot").read_bytes() for other in range(size)]
    assert all(file == files[0] for file in files), name
    kinds = [path.read_bytes()[32:38] for path in cache.glob("??/*")]
    assert kinds.count(b"engine") == 1, kinds
    own = dict(model.state_dict())
    for weights in (own, {**own, **model.whole}):
        engine = ingot.Engine.load(folder / f"{name}0.ingot", weights=weights)
        torch.testing.assert_close(engine(x), eager)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="ingot", options=WHOLE)
    torch.testing.assert_close(compiled(x), eager)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    torch.testing.assert_close(compiled(x), model(x))  # a refit by a smaller part


def check_weights_inside(folder: Path, rank: int, size: int) -> None:
    """An engine with its weights runs on the rank that they are of, and says so on others. Refits, copies and partial compilation work."""
    model, x = Perceptron(rank, size).eval(), torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    module = ingot.compile(model, inputs=[x], **WHOLE)
    torch.testing.assert_close(module(x), model(x))
    module.engine.save(folder / f"inside{rank}.ingot")
    dist.barrier()
    torch.testing.assert_close(ingot.Engine.load(folder / f"inside{rank}.ingot")(x), model(x))
    other = ingot.Engine.load(folder / f"inside{(rank + 1) % size}.ingot")
    with pytest.raises(
        ingot.UserError, match=f"has the weights of rank {(rank + 1) % size} of group"
    ) as info:
        other(x)
    assert info.value.code == "INGOT-U358"
    doubled = {name: 2 * value for name, value in model.state_dict().items()}
    module.engine.refit(doubled)
    again = Perceptron(rank, size).eval()
    again.load_state_dict(doubled)
    torch.testing.assert_close(module.engine(x), again(x))
    part = ingot.compile(model, inputs=[x], rank="all", torch_executed_ops=["aten.gelu.default"])
    torch.testing.assert_close(part(x), model(x))
    in_torch = {node.op for node in ingot.report(part).fallbacks if "size" not in node.op}
    assert in_torch == {"aten.gelu.default"}, in_torch


def check_saved_modules(folder: Path, rank: int, size: int) -> None:
    """Whole modules and those that torch runs in part, whose engines return tensors of the rank's size, each saved by its rank."""
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    for name, options in (("whole", {}), ("parts", {"torch_executed_ops": ["aten.gelu.default"]})):
        model = Perceptron(rank, size).eval()
        module = ingot.compile(model, inputs=[x], rank="all", **options)
        ingot.save(module, folder / f"{name}{rank}.pt2")
        loaded = ingot.load(folder / f"{name}{rank}.pt2")
        torch.testing.assert_close(loaded(x), model(x))
        model.load_state_dict({key: value * 1.5 for key, value in model.state_dict().items()})
        loaded.refit(model.state_dict())
        torch.testing.assert_close(loaded(x), model(x))


def check_between_products(rank: int, size: int) -> None:
    """What is by element is part of a product, as where parts are equal; behind the rank's own columns nothing is read, not even NaN."""
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(3))
    x[0, 1], x[1, 2] = float("inf"), float("nan")
    for make in (Perceptron, Gated):
        model = make(rank, size).eval()
        model.down.bias = None
        module = ingot.compile(model, inputs=[x], **WHOLE)
        torch.testing.assert_close(module(x), model(x), equal_nan=True)
        names = [step["name"] for step in module.engine.inspect()["main"]["steps"]]
        assert {name for name in names if "linear" not in name} <= {"mean", "all_reduce", "add"}, names
        for name in ("linear", "silu", "gelu", "mul"):
            overload = "aten.mul.Tensor" if name == "mul" else f"aten.{name}.default"
            parts = ingot.compile(model, inputs=[x], rank="all", torch_executed_ops=[overload])
            torch.testing.assert_close(parts(x), model(x), equal_nan=True)


def check_other_sizes(rank: int, size: int) -> None:
    """Sizes of the rank beside those that vary; as a result; none at all on a rank; and weights that change under a module."""
    model = Perceptron(rank, size).eval()
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(16, 8))
    module = ingot.compile(model, inputs=[rows], **WHOLE)
    for count in (1, 3, 16):
        x = torch.randn(count, 8, generator=torch.Generator().manual_seed(count))
        torch.testing.assert_close(module(x), model(x))
    own = Own(rank)
    module = ingot.compile(own, inputs=[x], **WHOLE)
    for got, wanted in zip(module(x), own(x), strict=True):
        torch.testing.assert_close(got, wanted)
    mutable = ingot.MutableModule(model, **WHOLE)
    torch.testing.assert_close(mutable(x), model(x))
    model.up.weight = nn.Parameter(model.up.weight * 0.5)
    torch.testing.assert_close(mutable(x), model(x))


def check_weights_file(folder: Path, rank: int, size: int) -> None:
    """The checkpoint of the whole model, which the engine opens by itself."""
    from safetensors.torch import save_file

    model = Heads(rank, size).eval()
    x = torch.randn(2, 5, 28, generator=torch.Generator().manual_seed(2))
    checkpoint = folder / "heads.safetensors"
    if rank == 0:
        save_file({name: value.contiguous() for name, value in model.whole.items()}, checkpoint)
    dist.barrier()
    module = ingot.compile(model, inputs=[x], weights_file=checkpoint, **WHOLE)
    torch.testing.assert_close(module.engine(x), model(x))
    module.engine.save(folder / f"heads{rank}.ingot")
    dist.barrier()
    files = [(folder / f"heads{other}.ingot").read_bytes() for other in range(size)]
    assert all(file == files[0] for file in files)
    torch.testing.assert_close(ingot.Engine.load(folder / "heads0.ingot")(x), model(x))


def check_wrong_parts(folder: Path, rank: int, size: int) -> None:
    """Ranks that do not exist, and parts that are not this rank's."""
    model = Table(rank, size).eval()
    ids = torch.tensor([0, 3, 29])
    sizes = [len(part) for part in torch.arange(31).tensor_split(size)]
    module = ingot.compile(model, inputs=[ids], strip_engine_weights=True, **WHOLE)
    module.engine.save(folder / f"wrong{rank}.ingot")
    with pytest.raises(ingot.UserError, match=f"rank {size} is none of the {size} of group") as info:
        ingot.Engine.load(folder / f"wrong{rank}.ingot", weights=model.whole, rank=size)
    assert info.value.code == "INGOT-U357"
    other = torch.zeros(sizes[0] + sizes[-1] - sizes[rank], 4)  # 8 where it is 7, and 7 where it is 8
    with pytest.raises(
        ingot.UserError, match=rf"weight 'own' is f32\[{sizes[rank]},4\] on rank {rank}"
    ) as info:
        ingot.Engine.load(folder / f"wrong{rank}.ingot", weights={"own": other})
    assert info.value.code == "INGOT-U321"
    shards = module.engine.inspect()["sources"][0]["shards"]
    assert shards[0]["extents"] == sizes


def check_tensors_of_torch(size: int) -> None:
    """The entries for DTensors of which torch makes parts of different sizes."""
    model, plan = (
        nn.Sequential(nn.Linear(8, 31), nn.Linear(31, 8)),
        {"0": ColwiseParallel(), "1": RowwiseParallel()},
    )
    divided = parallelize_module(model, init_device_mesh("cpu", (size,)), plan)
    sizes = "+".join(str(len(part)) for part in torch.arange(31).chunk(size))
    assert set(ingot.distributed.shards_of(divided)) == {
        f"0.weight:0/{sizes}",
        f"0.bias:0/{sizes}",
        f"1.weight:1/{sizes}",
    }


def check_refusals(rank: int) -> None:
    rows = torch.ones(6, 3)
    for make, inputs, what in (
        (lambda: TwoAxes(rank), [rows], "a weight has other sizes along several axes"),
        (lambda: Sum(), [torch.ones(2 + rank, 3)], r"its sizes are \[2, 3\] and \[3, 3\].* on the ranks"),
        (lambda: Changing(rank), [rows], r"its sizes are \[1\] and \[2\]"),
    ):
        refused(make, inputs, what)
    varying = ingot.Input(min_shape=(1, 3), opt_shape=(4, 3), max_shape=(8, 3))
    module = ingot.compile(Sum(), inputs=[varying], **WHOLE)
    x = torch.ones(2 + rank, 3)
    torch.testing.assert_close(module(x), Sum()(x))


def refused(make: Callable[[], nn.Module], inputs: list[torch.Tensor], what: str) -> None:
    with pytest.raises(ingot.UserError, match=what) as info:
        ingot.compile(make(), inputs=inputs, **WHOLE)
    assert info.value.code == "INGOT-U359"
    assert info.value.node
