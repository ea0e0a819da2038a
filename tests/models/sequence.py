# SPDX-License-Identifier: Apache-2.0
"""Sequence models that no package has in the form that we need."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional


class LstmTagger(nn.Module):
    """A bidirectional two-layer LSTM that gives each token one of `tags` classes."""

    def __init__(self, words: int = 5000, width: int = 128, hidden: int = 128, tags: int = 17) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.embedding(tokens))
        return self.head(hidden)


class Gpt2Step(nn.Module):
    """GPT-2 that decodes one token a call, with a static key-value cache that it updates in place.

    forward(token [1, 1], position [1]) -> logits [1, 1, words]. The cache holds `length` positions.
    """

    def __init__(
        self, words: int = 50257, width: int = 768, layers: int = 12, heads: int = 12, length: int = 1024
    ) -> None:
        super().__init__()
        self.heads = heads
        self.length = length
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_Gpt2Block(width, heads, length) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(token) + self.positions(position)
        mask = (torch.arange(self.length, device=token.device) <= position).unsqueeze(0)
        for block in self.blocks:
            hidden = block(hidden, position, mask)
        return functional.linear(self.norm(hidden), self.tokens.weight)


class _Gpt2Block(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        shape = (1, heads, length, width // heads)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, hidden: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, count, width = hidden.shape
        split = self.qkv(self.norm_1(hidden)).view(batch, count, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        mixed = functional.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=mask)
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, count, width))
        return hidden + self.down(functional.gelu(self.up(self.norm_2(hidden)), approximate="tanh"))


class LlamaStep(nn.Module):
    """A Llama that decodes one token a call, with a static key-value cache that it updates in place.

    forward(token [1, 1], position [1]) -> logits [1, 1, words]. The cache holds `length` positions. The defaults are the sizes of
    Llama 3.2 1B.
    """

    def __init__(
        self, words: int = 128256, width: int = 2048, layers: int = 16, heads: int = 32, pairs: int = 8,
        inner: int = 8192, length: int = 1024,
    ) -> None:  # fmt: skip
        super().__init__()
        self.length = length
        self.tokens = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(_LlamaBlock(width, heads, pairs, inner, length) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        half = width // heads // 2
        angles = torch.outer(torch.arange(length), 500000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cosines", angles.cos().repeat(1, 2))
        self.register_buffer("sines", angles.sin().repeat(1, 2))

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(token)
        turn = (self.cosines[position], self.sines[position])
        mask = (torch.arange(self.length, device=token.device) <= position).unsqueeze(0)
        for block in self.blocks:
            hidden = block(hidden, position, turn, mask)
        return functional.linear(self.norm(hidden), self.tokens.weight)


class _LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, pairs: int, inner: int, length: int) -> None:
        super().__init__()
        self.heads, self.pairs, self.size = heads, pairs, width // heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, pairs * self.size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.register_buffer("keys", torch.zeros(1, pairs, length, self.size))
        self.register_buffer("values", torch.zeros(1, pairs, length, self.size))

    def forward(
        self, hidden: torch.Tensor, position: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], mask: torch.Tensor
    ) -> torch.Tensor:  # fmt: skip
        x = self.norm_1(hidden)
        query = self._turned(self._cut(self.q(x), self.heads), turn)
        self.keys.index_copy_(2, position, self._turned(self._cut(self.k(x), self.pairs), turn))
        self.values.index_copy_(2, position, self._cut(self.v(x), self.pairs))
        mixed = functional.scaled_dot_product_attention(
            query, self.keys, self.values, attn_mask=mask, enable_gqa=True
        )
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(hidden.shape))
        x = self.norm_2(hidden)
        return hidden + self.down(functional.silu(self.gate(x)) * self.up(x))

    def _cut(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        return x.view(1, -1, heads, self.size).transpose(1, 2)

    @staticmethod
    def _turned(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * turn[0] + torch.cat([-second, first], dim=-1) * turn[1]


class SentenceEmbedder(nn.Module):
    """An encoder with mean pooling over the mask and normalization: as in sentence-transformers around MiniLM."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask)[0]
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return functional.normalize(mean, dim=1)


class FirstOutput(nn.Module):
    """A transformers model that returns its first output only, called with positional arguments."""

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, args, strict=True)), use_cache=False, return_dict=False)[0]


def initialize(model: nn.Module, seed: int = 0) -> nn.Module:
    """Seeded weights whose activations keep their size through the layers, so that errors show."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                fan_in = parameter[0].numel()
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / math.sqrt(fan_in))
    return model
