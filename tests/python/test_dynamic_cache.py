# SPDX-License-Identifier: Apache-2.0
"""Decoding with a cache that grows: the lengths of keys and values are symbols of their own, and must be equal."""

import copy
import inspect

import ingot
import pytest
import torch
from torch import nn
from torch.utils import _pytree
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


def cache_name(model):
    """The library is renaming the argument and the result."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def traced_step(model):
    """One step, for caches of all lengths."""
    ids = torch.tensor([[3]])
    cache = model(input_ids=torch.arange(7)[None], use_cache=True)[1]
    lengths = [{2: torch.export.Dim.DYNAMIC} for _ in range(2 * model.config.num_hidden_layers)]
    return ingot.dynamo.trace(
        model,
        kwarg_inputs={"input_ids": ids, cache_name(model): cache, "use_cache": True},
        dynamic_shapes={"input_ids": None, cache_name(model): lengths, "use_cache": None},
    )


@torch.no_grad()
@pytest.mark.parametrize("make", [small_llama, small_gpt2], ids=lambda make: make.__name__)
def test_caches_enter_and_leave_engines(make, tmp_path):
    """Of which torch.export knows nothing by itself."""
    torch.manual_seed(0)
    model = make().eval()
    step = ingot.dynamo.compile(traced_step(model), require_full_compilation=True)
    step.engine.save(tmp_path / "step.ingot")
    for run in (step, ingot.Engine.load(tmp_path / "step.ingot")):
        first = model(input_ids=torch.arange(7)[None] + 1, use_cache=True)
        ours, theirs = copy.deepcopy(first[1]), first[1]
        ids = first.logits[:, -1:].argmax(-1)
        for _ in range(4):
            result = run(**{"input_ids": ids, cache_name(model): ours, "use_cache": True})
            expected = model(**{"input_ids": ids, cache_name(model): theirs, "use_cache": True})
            torch.testing.assert_close(result.logits, expected.logits, rtol=1e-4, atol=1e-5)
            assert type(result[1]) is DynamicCache
            ids, ours, theirs = expected.logits[:, -1:].argmax(-1), result[1], expected[1]
        assert ours.get_seq_length() == 11


class Pair:
    """A tree of two tensors, with a scale that programs have as a constant."""

    def __init__(self, left, right, scale):
        self.left, self.right, self.scale = left, right, scale


class UsesPair(nn.Module):
    def forward(self, pair):
        return Pair(pair.left * pair.scale, pair.left - pair.right, pair.scale)


def flattened_pair(pair):
    # as caches do, values that are not tensors go to the context
    tensors = [value for value in (pair.left, pair.right) if isinstance(value, torch.Tensor)]
    return tensors, {"scale": pair.scale, "tensors": len(tensors)}


def register_pair():
    if Pair not in _pytree.SUPPORTED_NODES:
        _pytree.register_pytree_node(
            Pair,
            flattened_pair,
            lambda values, context: Pair(*values, context["scale"]),
            flatten_with_keys_fn=lambda pair: (
                [(_pytree.SequenceKey(i), value) for i, value in enumerate(flattened_pair(pair)[0])],
                flattened_pair(pair)[1],
            ),
            serialized_type_name="test_dynamic_cache.Pair",
        )


def test_constants_of_arguments_are_compared():
    """A call with another constant than the exported one would silently use that one."""
    register_pair()
    a, b = torch.randn(3), torch.randn(3)
    run = ingot.compile(torch.export.export(UsesPair(), (Pair(a, b, 2),)), check_speed=False)
    for _ in range(2):
        result = run(Pair(b, a, 2))
        torch.testing.assert_close(result.left, b * 2)
        torch.testing.assert_close(result.right, b - a)
    with pytest.raises(ingot.UserError, match="scale was 2, is 3") as refusal:
        run(Pair(a, b, 3))
    assert refusal.value.code == "INGOT-U308"
    torch.testing.assert_close(run(Pair(a, b, 2)).left, a * 2)


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
