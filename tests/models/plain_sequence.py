# SPDX-License-Identifier: Apache-2.0
"""Small models of sequences, graphs and tables in plain torch. MODELS as in plain_vision.py."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from models.sequence import LstmTagger


class Dlrm(nn.Module):
    """Naumov et al. 2019, arXiv 1906.00091: bags of embeddings and dense features, and the products of all pairs of them."""

    def __init__(self, tables: int = 3, width: int = 16) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1), persistent=False)

    def forward(self, dense: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        first = self.bottom(dense)
        features = torch.stack([first, *(bag(items[:, k]) for k, bag in enumerate(self.bags))], 1)
        products = features @ features.transpose(1, 2)
        return self.top(torch.cat([first, products[:, self.pairs[0], self.pairs[1]]], -1))


class GraphConvolution(nn.Module):
    """Kipf and Welling 2016, arXiv 1609.02907, on lists of edges: sums over neighbours by index_add."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 32), nn.Linear(32, 7)])

    def forward(self, features: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        ones = torch.ones(source.shape, dtype=features.dtype, device=source.device)
        degrees = 1 + features.new_zeros(len(features)).index_add(0, target, ones)
        weights = degrees[source].rsqrt() * degrees[target].rsqrt()
        for number, layer in enumerate(self.layers):
            hidden = layer(functional.relu(features) if number else features)
            features = hidden / degrees[:, None]
            features = features.index_add(0, target, hidden[source] * weights[:, None])
        return features.log_softmax(-1)


class GraphAttention(nn.Module):
    """Velickovic et al. 2017, arXiv 1710.10903: a softmax over the edges of each node, by scatter_reduce and scatter_add."""

    def __init__(self, heads: int = 2, width: int = 8) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.map = nn.Linear(16, heads * width, bias=False)
        self.weights = nn.Parameter(torch.randn(2, heads, width))

    def forward(self, features: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = self.map(features).view(-1, self.heads, self.width)
        parts = (hidden[None] * self.weights[:, None]).sum(-1)
        scores = functional.leaky_relu(parts[0][source] + parts[1][target], 0.2)
        index = target[:, None].expand(-1, self.heads)
        start = scores.new_zeros(len(features), self.heads)
        highest = start.scatter_reduce(0, index, scores, "amax", include_self=False)
        exponentials = (scores - highest[target]).exp()
        sums = start.scatter_add(0, index, exponentials)
        weighted = hidden[source] * (exponentials / sums[target])[..., None]
        return torch.zeros_like(hidden).index_add(0, target, weighted).flatten(1)


class GruClassifier(nn.Module):
    """Embeddings, a GRU in both directions, and a mean over the words that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.gru(self.embedding(tokens))
        mask = (tokens != 0).unsqueeze(-1)
        return self.head((hidden * mask).sum(1) / mask.sum(1).clamp(min=1))


class ElmanCells(nn.Module):
    """RNNCell, GRUCell and LSTMCell, one above the other."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.RNNCell(8, 12), nn.GRUCell(12, 12)])
        self.last = nn.LSTMCell(12, 8)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        first = second = steps.new_zeros(steps.shape[0], 12)
        state = (steps.new_zeros(steps.shape[0], 8), steps.new_zeros(steps.shape[0], 8))
        for step in steps.unbind(1):
            first = self.cells[0](step, first)
            second = self.cells[1](first, second)
            state = self.last(second, state)
        return state[0]


class FourierOperator(nn.Module):
    """Li et al. 2020, arXiv 2010.08895: products with weights in the frequency domain."""

    def __init__(self, width: int = 8, modes: int = 6) -> None:
        super().__init__()
        self.modes = modes
        self.lift, self.local, self.head = (
            nn.Linear(1, width),
            nn.Conv1d(width, width, 1),
            nn.Linear(width, 1),
        )
        self.weights = nn.Parameter(torch.randn(width, width, modes, 2) / width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        x = self.lift(values).transpose(1, 2)
        spectrum = torch.fft.rfft(x)[..., : self.modes]
        mixed = torch.einsum("bim,iom->bom", spectrum, torch.view_as_complex(self.weights))
        x = functional.gelu(torch.fft.irfft(mixed, n=x.shape[-1]) + self.local(x))
        return self.head(x.transpose(1, 2))


class Spectrogram(nn.Module):
    """The logarithm of the energies of a short-time Fourier transform, and a convolution over them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.head = nn.Conv1d(33, 8, 3)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(sound, 64, 16, window=self.window, return_complex=True)
        return self.head((spectrum.abs().square() + 1e-6).log())


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates and skip connections."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.gated = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=1 << k) for k in range(4))
        self.mixed = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(4))
        self.head = nn.Conv1d(width, 16, 1)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        x, skipped = self.first(sound), 0
        for number, (gated, mixed) in enumerate(zip(self.gated, self.mixed, strict=True)):
            change, gate = gated(functional.pad(x, (1 << number, 0))).chunk(2, 1)
            result = mixed(change.tanh() * gate.sigmoid())
            x, skipped = x + result, skipped + result
        return self.head(functional.elu(skipped))


class Transformer(nn.Module):
    """torch.nn.Transformer with a causal mask and padding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.model = nn.Transformer(32, 4, 1, 1, 48, batch_first=True)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.model(
            self.embedding(source), self.embedding(target), tgt_mask=mask, src_key_padding_mask=source == 0
        )


class RandomField(nn.Module):
    """A conditional random field over an LSTM's scores: the best path by Viterbi's algorithm, and the partition function."""

    def __init__(self) -> None:
        super().__init__()
        self.tagger = LstmTagger(50, 16, 16, 5)
        self.moves = nn.Parameter(torch.randn(5, 5))

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = self.tagger(tokens)
        best = total = scores[:, 0]
        came_from = []
        for step in scores[:, 1:].unbind(1):
            ways = best[:, :, None] + self.moves
            came_from.append(ways.argmax(1))
            best = ways.amax(1) + step
            total = torch.logsumexp(total[:, :, None] + self.moves, 1) + step
        path = [best.argmax(-1)]
        for each in reversed(came_from):
            path.append(each.gather(1, path[-1][:, None])[:, 0])
        return torch.stack(path[::-1], 1), torch.logsumexp(total, -1)


class StateSpace(nn.Module):
    """A diagonal linear recurrence, as the convolution with its impulse response, by FFT."""

    def __init__(self, width: int = 8, states: int = 4) -> None:
        super().__init__()
        self.rates, self.outputs = (
            nn.Parameter(torch.randn(width, states)),
            nn.Parameter(torch.randn(width, states)),
        )
        self.direct = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        steps = torch.arange(length, device=x.device)
        decays = torch.exp(-functional.softplus(self.rates)[..., None] * steps)
        response = (self.outputs[..., None] * decays).sum(1)
        signal = torch.fft.rfft(x.transpose(1, 2), n=2 * length) * torch.fft.rfft(response, n=2 * length)
        return torch.fft.irfft(signal, n=2 * length)[..., :length].transpose(1, 2) + self.direct * x


class Experts(nn.Module):
    """A mixture of experts that computes each expert for the tokens that chose it: sizes that follow from data."""

    def __init__(self, width: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, width)) for _ in range(experts)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            result = result + share * expert(x)
        return result


class PointNet(nn.Module):
    """Qi et al. 2016, arXiv 1612.00593: a learned transform, shared layers, and the maximum over points."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Sequential(
            nn.Conv1d(3, 16, 1), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 9)
        )
        self.body = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 32, 1))
        self.head = nn.Linear(32, 6)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        turn = self.turn(points).view(-1, 3, 3) + torch.eye(3, device=points.device, dtype=points.dtype)
        return self.head(self.body(turn @ points).amax(-1))


class RadianceField(nn.Module):
    """Mildenhall et al. 2020, arXiv 2003.08934: colours along rays, accumulated by a cumulative product."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, start: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
        depths = torch.linspace(0.5, 2.0, 12, device=start.device, dtype=start.dtype)
        points = start[:, None] + depths[:, None] * functional.normalize(direction, dim=-1)[:, None]
        waves = [f(points * (2.0**k)) for k in range(4) for f in (torch.sin, torch.cos)]
        colour, density = self.body(torch.cat([points, *waves], -1)).split([3, 1], -1)
        opacity = 1 - torch.exp(-functional.softplus(density) * 0.1)
        light = torch.cumprod(1 - opacity + 1e-7, 1).roll(1, 1)
        light = torch.cat([torch.ones_like(light[:, :1]), light[:, 1:]], 1)
        return (light * opacity * colour.sigmoid()).sum(1)


class Flow(nn.Module):
    """A normalizing flow of affine couplings, with its log-determinant."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8)) for _ in range(3)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logarithm = x.new_zeros(x.shape[0])
        for each in self.maps:
            kept, changed = x.chunk(2, -1)
            scale, shift = each(kept).chunk(2, -1)
            x = torch.cat([changed * scale.tanh().exp() + shift, kept], -1)
            logarithm = logarithm + scale.tanh().sum(-1)
        return x, logarithm


class KalmanFilter(nn.Module):
    """A linear filter with matrix inverses and triangular factors."""

    def __init__(self) -> None:
        super().__init__()
        self.move, self.observe = nn.Parameter(torch.randn(4, 4) / 2), nn.Parameter(torch.randn(2, 4))

    def forward(self, observed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        unit = torch.eye(4, device=observed.device, dtype=observed.dtype)
        mean, spread = observed.new_zeros(4), unit
        for seen in observed.unbind(0):
            mean, spread = self.move @ mean, self.move @ spread @ self.move.T + 0.1 * unit
            noise = self.observe @ spread @ self.observe.T + 0.5 * torch.eye(2, dtype=unit.dtype)
            gain = torch.linalg.solve(noise, self.observe @ spread).T
            mean = mean + gain @ (seen - self.observe @ mean)
            spread = (unit - gain @ self.observe) @ spread
        return mean, torch.linalg.cholesky(spread + 1e-3 * unit)


MODELS = {
    "conditional_random_field": (RandomField, {"tokens": "i64[2,8]<50"}),
    "dlrm": (Dlrm, {"dense": "f32[4,13]", "items": "i64[4,3,5]<50"}),
    "elman_cells": (ElmanCells, {"steps": "f32[2,5,8]"}),
    "experts": (Experts, {"x": "f32[2,6,16]"}),
    "flow": (Flow, {"x": "f32[3,8]"}),
    "fourier_operator": (FourierOperator, {"values": "f32[2,32,1]"}),
    "graph_attention": (GraphAttention, {"features": "f32[10,16]", "source": "i64[30]<10", "target": "i64[30]<10"}),
    "graph_convolution": (GraphConvolution, {"features": "f32[10,16]", "source": "i64[30]<10", "target": "i64[30]<10"}),
    "gru_classifier": (GruClassifier, {"tokens": "i64[2,9]<50"}),
    "kalman_filter": (KalmanFilter, {"observed": "f32[4,2]"}),
    "lstm_tagger": (lambda: LstmTagger(50, 16, 16, 5), {"tokens": "i64[2,9]<50"}),
    "nn_transformer": (Transformer, {"source": "i64[2,9]<50", "target": "i64[2,7]<50"}),
    "point_net": (PointNet, {"points": "f32[2,3,20]"}),
    "radiance_field": (RadianceField, {"start": "f32[6,3]", "direction": "f32[6,3]"}),
    "spectrogram": (Spectrogram, {"sound": "f32[1,400]"}),
    "state_space": (StateSpace, {"x": "f32[2,16,8]"}),
    "wave_net": (WaveNet, {"sound": "f32[1,1,40]"}),
}  # fmt: skip
