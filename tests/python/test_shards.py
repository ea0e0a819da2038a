# SPDX-License-Identifier: Apache-2.0
"""Weights of which each rank has a part: one engine and one checkpoint for all of them."""

from pathlib import Path

import ingot
import numpy as np
import pytest
import rank_engines
import torch
from rank_engines import SHARDS, as_ranks, join
from torch import nn


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rank_engines.make(tmp_path_factory.mktemp("engines"))


def test_threads_read_their_parts_of_one_checkpoint(folder: Path, binding: str) -> None:
    """Each with its rank; without one, whole tensors are refused, and so are the weights of another rank."""
    engine = ingot.build(folder / "model.pt2", rank="any", shards=SHARDS, strip_engine_weights=True)
    path, whole, listener = folder / "shards.ingot", folder / "whole.safetensors", ingot.distributed.listen()
    engine.save(path)
    x = np.load(folder / "x.npy")
    with pytest.raises(ingot.UserError, match="is the whole tensor") as info:
        ingot.Engine.load(path, weights=whole)
    assert info.value.code == "INGOT-U357"

    def work(rank: int) -> np.ndarray:
        group = join(listener, rank, deadline=60)
        other = ingot.Engine.load(path, weights=whole, rank=1 - rank)
        ingot.distributed.bind(other, group)
        with pytest.raises(ingot.UserError, match=f"has the weights of rank {1 - rank} of group") as info:
            other(x)
        assert info.value.code == "INGOT-U358"
        own = ingot.Engine.load(path, weights=whole, rank={"0": rank})
        ingot.distributed.bind(own, group)
        return own(x)

    for result in as_ranks(2, work):
        assert isinstance(result, np.ndarray), result
        np.testing.assert_allclose(result, np.load(folder / "expected.npy"), rtol=1e-5)


def test_an_engine_with_shards_has_no_weights(folder: Path) -> None:
    with pytest.raises(ingot.UserError, match="takes its weights when it is loaded") as info:
        ingot.build(folder / "model.pt2", rank="any", shards=["up.weight:0/2"])
    assert info.value.code == "INGOT-U356"
    with pytest.raises(ingot.UserError, match="with immutable_weights no weight can be a part") as info:
        ingot.build(
            folder / "model.pt2", rank="any", shards=SHARDS, strip_engine_weights=True, immutable_weights=True
        )
    assert info.value.code == "INGOT-U002"


def test_parts_of_different_ranks_do_not_mix(tmp_path: Path, binding: str) -> None:
    """Without collectives too: the rank is the caller's."""
    layer = nn.Linear(6, 8).eval()
    module = ingot.compile(
        layer, inputs=[torch.ones(2, 6)], shards=["weight:0/2", "bias:0/2"], strip_engine_weights=True
    )
    module.engine.save(tmp_path / "half.ingot")
    whole = {"weight": torch.randn(16, 6), "bias": torch.randn(16)}
    engine = ingot.Engine.load(tmp_path / "half.ingot", weights=whole, rank=1)
    x = torch.randn(2, 6)
    assert engine.inspect()["weights_ranks"] == {"": 1}
    with pytest.raises(
        ingot.UserError, match=r"has the weights of rank 1 .* the new ones are of rank 0"
    ) as info:
        engine.refit({"bias": whole["bias"]}, partial=True, rank=0)
    assert info.value.code == "INGOT-U358"
    engine.refit({"bias": 2 * whole["bias"]}, partial=True)
    expected = nn.functional.linear(x, whole["weight"][8:], 2 * whole["bias"][8:])
    torch.testing.assert_close(torch.as_tensor(engine(x)), expected)
    with pytest.raises(ingot.UserError, match="rank 2 is none of the 2 of group"):
        engine.refit(whole, rank=2)
