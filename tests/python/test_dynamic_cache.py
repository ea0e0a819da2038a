# SPDX-License-Identifier: Apache-2.0
"""Decoding with a cache that grows: the lengths of keys and values are symbols of their own, and must be equal."""

import ingot
import pytest
import torch
from torch import nn
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

pytestmark = pytest.mark.usefixtures("binding")


def small_llama():
    return LlamaForCausalLM(
        LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                    vocab_size=128, max_position_embeddings=128)
    )  # fmt: skip


def small_gpt2():
    return GPT2LMHeadModel(
        GPT2Config(
            n_embd=64, n_layer=2, n_head=4, vocab_size=128, n_positions=128, bos_token_id=0, eos_token_id=0
        )
    )


@torch.no_grad()
def decode(model, steps=6):
    cache, ids, rows = DynamicCache(), torch.arange(7)[None] + 1, []
    for _ in range(steps):
        result = model(input_ids=ids, past_key_values=cache, use_cache=True)
        rows.append(result.logits[:, -1])
        ids, cache = result.logits[:, -1:].argmax(-1), result.past_key_values
    return torch.stack(rows)


@pytest.mark.parametrize("make", [small_llama, small_gpt2], ids=lambda make: make.__name__)
def test_decoding_stays_in_engines(make):
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = make().eval()
    compiled = torch.compile(model, backend="ingot", dynamic=True)
    torch.testing.assert_close(decode(compiled), decode(model), rtol=1e-4, atol=1e-5)
    report = ingot.report(compiled)
    assert report.fallbacks == []
    assert (
        len(report.engines) <= 3
    )  # the prompt, the steps, and one more where torch sees another length first


class Attention(nn.Module):
    def forward(self, query, key, value):
        return nn.functional.scaled_dot_product_attention(query, key, value)


@pytest.mark.parametrize("from_file", [False, True])
def test_two_symbols_are_one_size(from_file, tmp_path):
    shapes = [{2: torch.export.Dim(name, min=2, max=64)} for name in ("Q", "K", "V")]
    tensors = [torch.randn(2, 4, length, 16) for length in (3, 9, 9)]
    program = torch.export.export(Attention(), tuple(tensors), dynamic_shapes=tuple(shapes))
    if from_file:
        torch.export.save(program, tmp_path / "attention.pt2")
        program = tmp_path / "attention.pt2"
    engine = ingot.build(program)
    for queries, keys in ((3, 9), (2, 20), (5, 2)):
        query, key, value = (torch.randn(2, 4, length, 16) for length in (queries, keys, keys))
        torch.testing.assert_close(
            torch.as_tensor(engine(query, key, value)), Attention()(query, key, value), rtol=1e-4, atol=1e-5
        )
    with pytest.raises(ingot.UserError, match=r"one value per key") as refusal:
        engine(torch.randn(2, 4, 3, 16), torch.randn(2, 4, 9, 16), torch.randn(2, 4, 8, 16))
    assert refusal.value.code == "INGOT-U312"
