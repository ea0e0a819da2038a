# SPDX-License-Identifier: Apache-2.0
"""One checkpoint and one engine for the ranks of the block in rank_models.py, for rank_checks.py."""

from pathlib import Path

import ingot
import numpy as np
import torch
import torch.distributed as dist
from accuracy import assert_accurate
from rank_models import PLAN, Shard, whole_block
from safetensors.torch import save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module


def whole_checkpoint() -> dict[str, torch.Tensor]:
    """By the names of `Shard`, whose biases after a collective are its own."""
    values = dict(whole_block()[0].state_dict())
    values["bias"] = values.pop("attention.out.bias")
    values["last_bias"] = values.pop("perceptron.down.bias")
    return {name: value.clone() for name, value in values.items()}


def check(folder: Path, rank: int, size: int) -> None:
    """Engines without weights, or that leave them to a file, are the same from each rank, and run on each with the whole tensors."""
    whole, x = whole_block()
    exact = whole_block()[0].double()(x.double())
    shard = Shard(whole, rank, size).eval()
    eager = shard(x)
    declared = ingot.distributed.shards_of(
        parallelize_module(whole_block()[0], init_device_mesh("cpu", (size,)), PLAN)
    )
    assert len(declared) == len(set(declared)) == 12, declared  # seven weights, and five biases of columns
    assert f"attention.out.weight:1/{size}" in declared
    checkpoint = folder / "whole.safetensors"
    if rank == 0:
        save_file(whole_checkpoint(), checkpoint)
    dist.barrier()
    ways = {"stripped": {"strip_engine_weights": True}, "file": {"weights_file": checkpoint}}
    for name, options in ways.items():
        own = folder / f"{name}{rank}.ingot"
        module = ingot.compile(
            shard, inputs=[x], rank="any", shards=declared, require_full_compilation=True, **options
        )
        module.engine.save(own)
        dist.barrier()
        files = [(folder / f"{name}{other}.ingot").read_bytes() for other in range(size)]
        assert all(file == files[0] for file in files), name
        given = {} if name == "file" else {"weights": checkpoint}
        engine = ingot.Engine.load(folder / f"{name}0.ingot", **given)
        assert_accurate(engine(x), eager, exact)
        doubled = {key: value * 2 for key, value in whole_checkpoint().items()}
        engine.refit(doubled)
        kept = engine.weights
        assert "perceptron.up.weight" in kept
        np.testing.assert_array_equal(
            engine(x), ingot.Engine.load(folder / f"{name}0.ingot", weights=doubled)(x)
        )
